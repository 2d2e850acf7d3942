"""The ways to lower one function, best first: the schedule that a source knows, those of the rules
that take the function, its plain nest. What our own checks refuse gives way to the next one, and is
named; it never ends a build, as long as one way is left.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ...runtime.log import log
from ...runtime.model.coverage import tuning_text
from ...schedule.errors import ScheduleError
from ...schedule.rules.default import rules_for
from ...schedule.schedule import Schedule
from ...schedule.source import ReasonedSource, ScheduleSource, schedule_from
from ...tir.errors import InternalError, TargetError, TilewrightError
from ...tir.func import PrimFunc
from ...tir.target.target import Target
from ..lower import Lowered, lower_function

REFUSALS = (ScheduleError, TargetError, InternalError)  # of a schedule, by our own checks


@dataclass(frozen=True, slots=True)
class Refusal:
    """A schedule that gave way. rule: what made it; origin: of the schedule; reason: one line."""

    rule: str
    origin: str
    reason: str

    def __str__(self) -> str:
        made = f"rule '{self.rule}'" if self.origin == "rule" else f"its schedule ({self.origin})"
        return f"{made} gave way: {self.reason}"


@dataclass(frozen=True, slots=True)
class Way:
    """One way that passed our checks, and the better ones that did not.

    why: what is known of where the schedule came from.
    """

    lowered: Lowered
    refusals: tuple[Refusal, ...] = ()
    why: str = ""

    @property
    def tuning(self) -> str:
        """Whether the schedule was tuned, and where not, why: as Coverage says it."""
        origin = self.lowered.schedule.origin
        known = [refusal for refusal in self.refusals if refusal.origin != "rule"]
        return tuning_text(origin, str(known[0]) if known else self.why)

    def notes(self, kernel: str) -> tuple[str, ...]:
        """A line for each better way: why it is not taken."""
        return refusal_notes(kernel, self.refusals, self.lowered.rule)


def refusal_notes(kernel: str, refusals: Sequence[Refusal], rule: str) -> tuple[str, ...]:
    """A line for each schedule of a kernel that gave way to that of a rule."""
    taken = f"; it is scheduled by rule '{rule}'"
    return tuple(f"kernel '{kernel}': {refusal}{taken}" for refusal in refusals)


class Ways:
    """The ways to lower a function that are left; `best` is the best of them.

    strict, allow: as `lower_function` has them. A schedule by hand, that a function of the caller's
    returned, does not give way to a rule: what is wrong with it is raised.
    """

    def __init__(
        self,
        func: PrimFunc,
        target: Target,
        source: ScheduleSource | None = None,
        *,
        strict: bool = False,
        allow: Sequence[str] = (),
    ) -> None:
        self._func = func
        self._target = target
        self._strict = strict
        found = None if source is None else schedule_from(source, func, target)
        self._why = _reason(func, target, source, found)
        self._plans = _plans(func, target, found, strict, tuple(allow))
        self._refusals: list[Refusal] = []
        self._first: TilewrightError | None = None
        self._best: Way | None = None

    def best(self) -> Way:
        """The best way that is left.

        Raises: DefinitionError; where no way is left, what the best of all was refused with.
        """
        while self._best is None:
            plan = next(self._plans, None)
            if plan is None:
                assert self._first is not None  # there is a plain nest to be refused
                raise self._first
            try:
                self._best = Way(self._lowered(plan), tuple(self._refusals), self._why)
            except REFUSALS as error:
                if plan.origin == "hand":
                    raise
                self._note(plan.rule, plan.origin, f"{error.message} [{error.code}]", error)
        return self._best

    def give_up(self, reason: str, error: TilewrightError) -> None:
        """Go on without the best way, whose kernel failed its check: why, and what is raised where
        no way is left, or the schedule is by hand.
        """
        lowered = self.best().lowered
        if lowered.schedule.origin == "hand":
            raise error
        self._best = None
        self._note(lowered.rule, lowered.schedule.origin, reason, error)

    def _note(self, rule: str, origin: str, reason: str, error: TilewrightError) -> None:
        self._refusals.append(Refusal(rule, origin, reason))
        self._first = self._first or error
        log.warning("'%s': %s", self._func.name, self._refusals[-1])

    def _lowered(self, plan: _Plan) -> Lowered:
        began = time.perf_counter()
        schedule = plan.make()
        laps = [("schedule", time.perf_counter() - began)]
        lowered = lower_function(schedule, self._target, strict=self._strict)
        return replace(lowered, rule=plan.rule, seconds=(*laps, *lowered.seconds))


@dataclass(frozen=True, slots=True)
class _Plan:
    """A schedule to be made."""

    rule: str
    origin: str
    make: Callable[[], Schedule]


def _reason(
    func: PrimFunc, target: Target, source: ScheduleSource | None, found: Schedule | None
) -> str:
    """Why a function is not tuned for this machine; "" where it is, or nobody knows."""
    if source is None:
        return "no schedules were given"
    if not isinstance(source, ReasonedSource):
        return "" if found is not None else "the schedules that were given have none for it"
    return source.reason(func, target)


def _plans(
    func: PrimFunc,
    target: Target,
    known: Schedule | None,
    strict: bool,
    allow: tuple[str, ...],
) -> Iterator[_Plan]:
    if known is not None:
        yield _Plan(known.origin, known.origin, lambda: known)
    for rule in rules_for(func, target, strict=strict, allow=allow):
        yield _Plan(rule.name, "rule", partial(rule.schedule, func, target))
