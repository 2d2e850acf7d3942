"""What a search has found so far: a live table on a terminal, a line for each gain elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from ..runtime.timing import seconds_text
from ..tir.canonical import workload_key
from ..tir.func import PrimFunc

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

    from ..autotune.record import Trial

_SHOWN = 12  # functions, those tried last
_PER_SECOND = 4  # pictures


@dataclass
class _Line:
    """One function."""

    name: str
    count: int
    trials: int = 0
    failed: int = 0
    default: float | None = None
    best: float | None = None
    last: float = 0.0

    @property
    def gain(self) -> str:
        """The default's time over the best one."""
        if self.default is None or self.best is None:
            return ""
        return f"{self.default / self.best:.2f}"


class Progress:
    """A context manager; call it with every trial."""

    def __init__(self, pairs: Sequence[tuple[PrimFunc, int]], stream: TextIO) -> None:
        self._lines = {workload_key(func): _Line(func.name, count) for func, count in pairs}
        self._stream = stream
        self._live: Live | None = None
        self._began = time.perf_counter()

    def __enter__(self) -> Progress:
        if self._stream.isatty():
            from rich.console import Console  # start-up: only a terminal needs it
            from rich.live import Live

            console = Console(file=self._stream)
            self._live = Live(
                get_renderable=self._table, console=console, refresh_per_second=_PER_SECOND
            )
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, trial: Trial) -> None:
        """Take a trial in."""
        line = self._lines[trial.workload]
        line.trials += 1
        line.last = time.perf_counter()
        if trial.seconds is None:
            line.failed += 1
            return
        if trial.is_default:
            line.default = trial.seconds
        if line.best is None or trial.seconds < line.best:
            line.best = trial.seconds
            if self._live is None and not trial.is_default:
                tried = sum(one.trials for one in self._lines.values())
                print(
                    f"tilewright: trial {tried}, {line.last - self._began:.0f} s: {line.name} "
                    f"{seconds_text(line.best)}{f', gain {line.gain}' if line.gain else ''}",
                    file=self._stream,
                )

    def _table(self) -> Table:
        from rich.table import Table

        tried = sum(one.trials for one in self._lines.values())
        seconds = time.perf_counter() - self._began
        made = Table(title=f"{tried} trials, {seconds:.0f} s", title_justify="left", box=None)
        made.add_column("function")
        for head in ("places", "trials", "failed", "default", "best", "gain"):
            made.add_column(head, justify="right")
        for line in sorted(self._lines.values(), key=lambda one: -one.last)[:_SHOWN]:
            made.add_row(
                line.name,
                str(line.count),
                str(line.trials),
                str(line.failed),
                "" if line.default is None else seconds_text(line.default),
                "" if line.best is None else seconds_text(line.best),
                line.gain,
            )
        return made
