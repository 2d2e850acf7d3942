"""The result of a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from ..driver.check.clock import Laps
from ..runtime.machine.timing import seconds_text
from ..tir.func import PrimFunc
from ..tir.svg.picture import Picture
from .log.choice import ScheduleChoice
from .log.disturbance import busy_text
from .log.labels import labels
from .log.record import Trial, Workload
from .report.html import TableRow, functions_html
from .report.search_picture import draw_search


@dataclass(frozen=True, slots=True)
class TunedFunction:
    """The result of a search for one function.

    count: how often a model runs the function. choice: what is known of its best schedule.
    history: every trial, those of a resumed log first.
    """

    func: PrimFunc
    count: int
    choice: ScheduleChoice
    history: tuple[Trial, ...] = field(repr=False)

    @property
    def best(self) -> Trial | None:
        """The trial whose schedule a build takes; None where no trial ran."""
        return self.choice.best

    @property
    def seconds(self) -> float | None:
        """Seconds of the best trial; where calls decide sizes, the geometric mean over those at
        which it was timed.
        """
        return self.choice.seconds

    @property
    def default_time(self) -> float | None:
        """Seconds of the default schedule, in the session of the best trial where it took part."""
        return self.choice.default_seconds

    def __str__(self) -> str:
        text = "nothing ran" if self.seconds is None else f"best {seconds_text(self.seconds)}"
        if self.seconds is not None and self.default_time is not None:
            text += f", default {seconds_text(self.default_time)}, {self.choice}"
        failed = sum(trial.outcome != "ok" for trial in self.history)
        if self.best is not None and self.best.sizes:
            text += f" (means of {', '.join(map(str, self.best.sizes))})"
        return f"{self.func.name}: {text}; {len(self.history)} trials, {failed} failed"

    def picture(self) -> Picture | None:
        """Every candidate in the order of the search, the best so far, the default, and what
        confirmation measured; None where nothing ran.
        """
        return draw_search(self.history, str(self))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        drawn = self.picture()
        return f"<p>{escape(str(self))}</p>{'' if drawn is None else drawn.svg}"


@dataclass(frozen=True, slots=True)
class TuneResult:
    """The result of a search. stopped_because: why it ended, in words. log: the log that holds
    every trial. seconds: of the stages of the search on this machine; compiling overlaps others.
    """

    functions: tuple[TunedFunction, ...]
    stopped_because: str
    log: Path | None = None
    seconds: Laps = field(default=(), repr=False)

    @property
    def best(self) -> Trial | None:
        """The best trial of a search for one function."""
        return self.functions[0].best if len(self.functions) == 1 else None

    @property
    def history(self) -> tuple[Trial, ...]:
        """Every trial."""
        return tuple(trial for function in self.functions for trial in function.history)

    @property
    def default_time(self) -> float | None:
        """Seconds of all default schedules, each times its count; None where one is missing."""
        return _total([(f.count, f.default_time) for f in self.functions])

    @property
    def best_time(self) -> float | None:
        """Seconds of all best schedules, each times its count; None where one is missing."""
        return _total([(f.count, f.seconds) for f in self.functions])

    @property
    def ending(self) -> str:
        """Why the search ended, what was disturbed or awaits confirmation, and how to go on."""
        lines = [f"ended: {self.stopped_because}", busy_text(self.history)]
        undecided = [one for one in self.awaiting if one.choice.state == "undecided"]
        waiting = [one for one in self.awaiting if one.choice.state != "undecided"]
        if waiting:
            lines.append(f"not confirmed yet: {', '.join(one.func.name for one in waiting)}")
        lines += [f"undecided: {one.func.name}: {one.choice.why}" for one in undecided]
        if self.log is not None:
            lines.append(f"kept: every trial, in '{self.log}'; the same call goes on from there")
        return "\n".join(filter(None, lines))

    @property
    def awaiting(self) -> tuple[TunedFunction, ...]:
        """The functions with candidates about which no confirmation round has decided."""
        return tuple(one for one in self.functions if one.choice.awaiting)

    def __str__(self) -> str:
        return "\n".join([*map(str, self.functions), self.ending])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        workloads = [Workload.of(one.func) for one in self.functions]
        names = labels(workloads)
        rows = (
            TableRow(names[workload.key], one.count, one.history, one.choice)
            for workload, one in zip(workloads, self.functions, strict=True)
        )
        drawn = self.functions[0].picture() if len(self.functions) == 1 else None
        table = functions_html(rows, f"{len(self.history)} trials", self.ending)
        return table + ("" if drawn is None else drawn.svg)


def _total(parts: Sequence[tuple[int, float | None]]) -> float | None:
    known = [count * seconds for count, seconds in parts if seconds is not None]
    return sum(known) if len(known) == len(parts) else None
