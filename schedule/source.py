"""Where schedules and measured times come from: what tuning knows reaches a build through one
protocol.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ..tir.func import PrimFunc
from ..tir.target.target import Target
from ..tir.text.canonical import workload_key
from .errors import ScheduleError
from .schedule import Schedule

Chooser = Callable[[PrimFunc, Target], Schedule | None]


@runtime_checkable
class ScheduleSource(Protocol):
    """A tuning log is one; `as_source` makes one of a plain callable."""

    def schedule(self, func: PrimFunc, target: Target) -> Schedule | None:
        """How to run `func`; None: by the rule that recognises it."""

    def seconds(self, func: PrimFunc, target: Target) -> float | None:
        """What `func` was measured to take, in seconds, its constants cold; None: not known."""


@runtime_checkable
class ReasonedSource(ScheduleSource, Protocol):
    """A source that says why a function is not tuned for this machine, as a tuning log can."""

    def reason(self, func: PrimFunc, target: Target) -> str:
        """Why it has no schedule, or one that was tuned elsewhere, in what; "" where it is tuned
        here.
        """


@dataclass(frozen=True, slots=True)
class CallableSource:
    """A function of (func, target) that returns a Schedule or None. It knows no times."""

    choose: Chooser

    def schedule(self, func: PrimFunc, target: Target) -> Schedule | None:
        """What the function returns."""
        return self.choose(func, target)

    def seconds(self, func: PrimFunc, target: Target) -> float | None:
        """Nothing was measured."""
        return None


def schedule_from(source: ScheduleSource, func: PrimFunc, target: Target) -> Schedule | None:
    """What a source says of a function.

    Raises: ScheduleError for what is neither a schedule nor None, and for a schedule of another
    function, which would be built in the place of this one.
    """
    found = source.schedule(func, target)
    if found is None:
        return None
    if not isinstance(found, Schedule):
        raise ScheduleError(
            f"schedules: for '{func.name}' the source returned a {type(found).__name__}; expected "
            "a Schedule of it, or None.",
            code="source-result",
            hints=("tw.Schedule(func, target) is one that takes no step.",),
        )
    if found.original is not func and workload_key(found.original) != workload_key(func):
        raise ScheduleError(
            f"schedules: for '{func.name}' the source returned a schedule of "
            f"'{found.original.name}', another function; expected one of the function that it was "
            "given.",
            code="source-function",
            hints=("begin with tw.Schedule(func, target), of the source's own argument.",),
        )
    return found


def as_source(schedules: ScheduleSource | Chooser | None) -> ScheduleSource | None:
    """`schedules` as a source; None stays None.

    Raises: ScheduleError for what is neither a source nor callable.
    """
    if schedules is None or isinstance(schedules, ScheduleSource):
        return schedules
    if callable(schedules):
        return CallableSource(schedules)
    raise ScheduleError(
        f"schedules: {schedules!r} is no source of schedules; expected methods 'schedule' "
        "and 'seconds', or a function of (func, target).",
        code="source-kind",
        hints=("schedules=tilewright.TuningLog(path) takes those of a tuning log.",),
    )
