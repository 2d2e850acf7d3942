from __future__ import annotations

import io

from tilewright.autotune.report.progress_table import ProgressTable
from tilewright.cli.tuning_progress import Progress

from ..autotune.samples import trial


def test_what_a_search_waits_for_is_told_until_the_next_record() -> None:
    stream = io.StringIO()
    with Progress(ProgressTable.of({}), stream) as progress:
        progress.note("process 7 uses the CPU for tuning; waiting for it")
        progress(trial())
    (line,) = stream.getvalue().splitlines()
    assert line.startswith("tilewright: 0 of 0 functions, 0 trials, ")
    assert line.endswith(": process 7 uses the CPU for tuning; waiting for it")


def test_a_terminal_has_the_note_above_its_table() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    with Progress(ProgressTable.of({}), Terminal()) as progress:
        progress.note("waiting")
        assert str(progress.renderable().title).endswith(", waiting")
        progress(trial())
        assert not str(progress.renderable().title).endswith(", waiting")
