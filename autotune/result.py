"""What a search found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..runtime.timing import seconds_text
from ..tir.func import PrimFunc
from .record import Trial


@dataclass(frozen=True, slots=True)
class TunedFunction:
    """What a search found for one function.

    best: the trial whose schedule is to be used: the default's, unless another one is faster beyond
    the noise of paired rounds; None where nothing ran. count: how often a model runs the function.
    history: every trial, those of a log that was resumed first.
    """

    func: PrimFunc
    count: int
    best: Trial | None
    history: tuple[Trial, ...] = field(repr=False)

    @property
    def default_time(self) -> float | None:
        """Seconds of the rule's own schedule, in the rounds of the best one where it was there."""
        found = [trial for trial in self.history if trial.is_default and trial.seconds]
        session = None if self.best is None else self.best.method.session
        paired = [trial for trial in found if trial.method.session == session]
        return (paired or found)[-1].seconds if found else None

    def __str__(self) -> str:
        best = None if self.best is None else self.best.seconds
        told = "nothing ran" if best is None else f"best {seconds_text(best)}"
        if best is not None and self.default_time is not None:
            told += f", default {seconds_text(self.default_time)}"
        failed = sum(trial.outcome != "ok" for trial in self.history)
        return f"{self.func.name}: {told}; {len(self.history)} trials, {failed} failed"


@dataclass(frozen=True, slots=True)
class TuneResult:
    """What a search found. stopped_because: in words."""

    functions: tuple[TunedFunction, ...]
    stopped_because: str

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
        """Seconds of the rule's schedules, each as often as it counts; None without one."""
        return _total([(f.count, f.default_time) for f in self.functions])

    @property
    def best_time(self) -> float | None:
        """Seconds of the best schedules, each as often as it counts; None without one."""
        return _total([(f.count, f.best.seconds if f.best else None) for f in self.functions])

    def __str__(self) -> str:
        return "\n".join([*map(str, self.functions), f"ended: {self.stopped_because}"])


def _total(parts: Sequence[tuple[int, float | None]]) -> float | None:
    known = [count * seconds for count, seconds in parts if seconds is not None]
    return sum(known) if len(known) == len(parts) else None
