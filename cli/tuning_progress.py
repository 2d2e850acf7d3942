"""The progress of a search: a live table on a terminal; elsewhere a line for each gain, and one a
minute.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from ..autotune.report.progress_table import ProgressRow, ProgressTable
from ..runtime.machine.timing import seconds_text
from ..tir.text.display import printable
from .text import duration_text

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

    from ..autotune.log.record import Record, Trial

_SHOWN = 16  # rows, most recent trial first
_PER_SECOND = 4  # refreshes
_SILENCE = 60.0  # seconds without a gain after which a line is written anyway


@dataclass
class TrialBudget:
    """What ends a search: a number of trials, seconds, or neither."""

    trials: int | None = None
    seconds: float | None = None

    def left(self, table: ProgressTable) -> float | None:
        """Seconds until the first limit is reached, at the pace so far; None: unknown."""
        limits = []
        if self.seconds is not None:
            limits.append(self.seconds - table.seconds)
        if self.trials is not None and table.now:
            trials = self.trials - table.tried - table.now
            limits.append(trials * table.seconds / table.now)
        return max(0.0, min(limits)) if limits else None


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

    def __enter__(self) -> Progress:
        if self._stream.isatty():
            from rich.console import Console  # start-up: only a terminal needs it
            from rich.live import Live

            console = Console(file=self._stream, markup=False)
            self._live = Live(
                get_renderable=self.renderable, console=console, refresh_per_second=_PER_SECOND
            )
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, record: Record) -> None:
        """Add a record."""
        row, self._note = self._table.add(record), ""
        if self._live is not None:
            return
        if row is not None and row.trials > 1:
            self._print(f"{row.name} {_text(row)}")
        elif time.monotonic() - self._last_line > _SILENCE:
            self._print("no gain since")

    def resume(self, trials: Sequence[Trial], tried: int) -> None:
        """Add the trials of a resumed log. tried: how many of them count toward the budget."""
        self._table.resume(trials, tried)

    def note(self, text: str) -> None:
        """Show what the search waits for, until the next record."""
        self._note = text
        if self._live is None:
            self._print(text)

    def _print(self, text: str) -> None:
        self._last_line = time.monotonic()
        print(printable(f"tilewright: {self._title()}: {text}"), file=self._stream, flush=True)

    def _title(self) -> str:
        failed = sum(row.failed for row in self._table.all_rows)
        parts = [f"{self._table.trials} trials"]
        if failed:
            parts.append(f"{failed} failed")
        parts.append(duration_text(self._table.seconds))
        left = self._budget.left(self._table)
        if left is not None:
            parts.append(f"at most {duration_text(left)} left" if left else "last rounds")
        if self._note and self._live is not None:
            parts.append(self._note)
        return ", ".join(parts)

    def renderable(self) -> Table:
        """The table for a terminal: the functions with the most recent trials."""
        from rich.table import Table

        made = Table(
            title=printable(self._title()), title_justify="left", title_style="bold", box=None
        )
        made.add_column("function", no_wrap=True, overflow="ellipsis")
        for head in ("places", "trials", "failed", "default", "best", "gain", "of limit"):
            made.add_column(head, justify="right", no_wrap=True)
        rows = self._table.all_rows
        several = len({row.setting.place for row in rows if row.setting is not None}) > 1
        if several:
            made.add_column("setting", overflow="ellipsis", no_wrap=True)
        for row in rows[:_SHOWN]:
            style = "green" if row.gain is not None and row.gain > 1 else ""
            made.add_row(
                *_cells(row), *([printable(str(row.setting or ""))] if several else []), style=style
            )
        if len(rows) > _SHOWN:
            made.caption, made.caption_justify = f"and {len(rows) - _SHOWN} more", "left"
        return made


def _cells(row: ProgressRow) -> tuple[str, ...]:
    return (
        printable(row.name),
        "" if row.places is None else str(row.places),
        str(row.trials),
        str(row.failed),
        "" if row.default is None else seconds_text(row.default),
        "" if row.best is None else seconds_text(row.best),
        "" if row.gain is None else f"{row.gain:.2f}",
        "" if row.share is None else f"{row.share:.0%}",
    )


def _text(row: ProgressRow) -> str:
    """The best time of a function, its gain and its share of the limit."""
    parts = ["" if row.best is None else seconds_text(row.best)]
    if row.gain is not None:
        parts.append(f"gain {row.gain:.2f}")
    if row.share is not None and row.limit is not None:
        parts.append(f"{row.share:.0%} of the {row.limit.name} limit")
    return ", ".join(parts)
