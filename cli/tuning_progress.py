"""The progress of a search: a live table on a terminal; elsewhere a line for each gain, and one a
minute without.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Event, Thread
from typing import TYPE_CHECKING, TextIO

from ..autotune.report.progress_table import ProgressRow, ProgressTable
from ..runtime.machine.timing import seconds_text
from ..tir.text.display import printable
from .text import duration_text

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

    from ..autotune.log.record import Record, Trial

_HEADS = ("places", "trials", "failed", "default", "best", "gain", "state", "of limit")
_SHOWN = 16  # rows, most recent trial first
_PER_SECOND = 4  # refreshes
_SILENCE = 60.0  # seconds without a gain after which a line is written anyway
_BEAT = 5.0  # seconds between looks at the clock


@dataclass
class TrialBudget:
    """What ends a search: a number of trials, seconds, or neither."""

    trials: int | None = None
    seconds: float | None = None

    def text(self, table: ProgressTable) -> str:
        """The time that is left: "about" it by the pace, "at most" by the clock; empty: unknown."""
        limits = self._limits(table)
        if not limits:
            return ""
        word = min(limits, key=lambda word: limits[word])
        return f"{word} {duration_text(limits[word])} left" if limits[word] else "last rounds"

    def _limits(self, table: ProgressTable) -> dict[str, float]:
        limits = {}
        if self.trials is not None and table.now:
            trials = self.trials - table.tried - table.now
            limits["about"] = max(0.0, trials * table.seconds / table.now)
        if self.seconds is not None:
            limits["at most"] = max(0.0, self.seconds - table.seconds)
        return limits


class Progress:
    """Shows a progress table. A context manager; call it with every record."""

    def __init__(
        self, table: ProgressTable, stream: TextIO, budget: TrialBudget | None = None
    ) -> None:
        self._table = table
        self._stream = stream
        self._budget = budget or TrialBudget()
        self._live: Live | None = None
        self._last_line = time.monotonic()
        self._note = ""  # what the search waits for
        self._ended = Event()

    def __enter__(self) -> Progress:
        if self._stream.isatty():
            from rich.console import Console  # start-up: only a terminal needs it
            from rich.live import Live

            console = Console(file=self._stream, markup=False)
            self._live = Live(
                get_renderable=self.renderable, console=console, refresh_per_second=_PER_SECOND
            )
            self._live.start()
        else:
            Thread(target=self._follow, name="tilewright-progress", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._live is not None:
            self._live.stop()

    def __call__(self, record: Record) -> None:
        """Add a record."""
        row, self._note = self._table.add(record), ""
        if self._live is not None:
            return
        if row is not None and row.trials > 1:
            self._print(f"{row.name} {_text(row)}")
        else:
            self._break_silence()

    def resume(self, trials: Sequence[Trial], tried: int) -> None:
        """Add the trials of a resumed log. tried: how many of them count toward the budget."""
        self._table.resume(trials, tried)

    def note(self, text: str) -> None:
        """Show what the search waits for, until the next record."""
        self._note = text
        if self._live is None:
            self._print(text)

    def _follow(self) -> None:
        """Look at the clock until the search has ended: a trial may take minutes."""
        while not self._ended.wait(_BEAT):
            self._break_silence()

    def _break_silence(self) -> None:
        if time.monotonic() - self._last_line > _SILENCE:
            self._print(self._note or "no gain since")

    def _print(self, text: str) -> None:
        self._last_line = time.monotonic()
        print(printable(f"tilewright: {self._title()}: {text}"), file=self._stream, flush=True)

    def _title(self) -> str:
        table = self._table
        failed, latency = sum(row.failed for row in table.all_rows), table.predicted
        parts = [
            f"{table.begun} of {len(table.rows)} functions",
            f"{table.trials} trials",
            f"{failed} failed" if failed else "",
            "" if latency is None else f"model {seconds_text(latency)}",
            duration_text(table.seconds),
            self._budget.text(table),
            self._note if self._live is not None else "",
        ]
        return ", ".join(filter(None, parts))

    def renderable(self) -> Table:
        """The table for a terminal: the functions with the most recent trials."""
        from rich.table import Table

        made = Table(
            title=printable(self._title()), title_justify="left", title_style="bold", box=None
        )
        made.add_column("function", no_wrap=True, overflow="ellipsis")
        for head in _HEADS:
            made.add_column(head, justify="right", no_wrap=True)
        rows = self._table.all_rows
        several = len({row.setting.place for row in rows if row.setting is not None}) > 1
        if several:
            made.add_column("setting", overflow="ellipsis", no_wrap=True)
        for row in rows[:_SHOWN]:
            style = "green" if row.choice.state == "confirmed" else ""
            made.add_row(
                *_cells(row), *([printable(str(row.setting or ""))] if several else []), style=style
            )
        more = f"and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else ""
        busy = f"{self._table.busy} (~)" if self._table.busy else ""
        if more or busy:
            made.caption, made.caption_justify = "; ".join(filter(None, (more, busy))), "left"
        return made


def _cells(row: ProgressRow) -> tuple[str, ...]:
    choice = row.choice
    return (
        printable(row.name),
        "" if row.places is None else str(row.places),
        str(row.trials),
        str(row.failed),
        "" if choice.default_seconds is None else seconds_text(choice.default_seconds),
        "" if choice.seconds is None else seconds_text(choice.seconds),
        "" if choice.gain is None else f"{choice.gain:.2f}",
        "" if choice.best is None else str(choice),
        "" if row.share is None else f"{row.share:.0%}",
    )


def _text(row: ProgressRow) -> str:
    """The best time of a function, its gain, its state and its share of the limit."""
    choice = row.choice
    parts = ["" if choice.seconds is None else seconds_text(choice.seconds)]
    if choice.gain is not None:
        parts.append(f"gain {choice.gain:.2f}")
    parts.append(str(choice))
    if row.share is not None and row.limit is not None:
        parts.append(f"{row.share:.0%} of the {row.limit.name} limit")
    return ", ".join(parts)
