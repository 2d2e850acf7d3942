"""The space of a function's schedules: the decisions of a rule, or of a user's function over a
Schedule.

A point is the list of what was chosen at each sample_* step, as indices of the candidates. Which
steps follow may depend on what was chosen before, so the space is a tree.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ...schedule.errors import ScheduleError
from ...schedule.rules.default import default_schedule, rule_for
from ...schedule.schedule import Schedule
from ...schedule.trace.decisions import Decisions, Question
from ...tir.func import PrimFunc
from ...tir.target import Target

Point = tuple[int, ...]
RuleFunction = Callable[[Schedule], object]


@dataclass
class Walk:
    """Decisions that take the choices of a point, then the rule's own; it notes what it was asked.

    questions: in order; choices: the index of a candidate for each of them.
    """

    start: Point
    choices: list[int] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)

    def choose(self, question: Question) -> int:
        """The next choice; one that is no longer there is the last that is."""
        place = len(self.choices)
        found = self.start[place] if place < len(self.start) else self.beyond(question)
        self.choices.append(min(found, len(question.candidates) - 1))
        self.questions.append(question)
        return self.choices[-1]

    def beyond(self, question: Question) -> int:
        """The choice where the point says nothing."""
        return question.default

    @property
    def widths(self) -> list[int]:
        """How many candidates each question had."""
        return [len(question.candidates) for question in self.questions]

    @property
    def defaults(self) -> list[int]:
        """What the rule would have taken."""
        return [question.default for question in self.questions]


@dataclass
class Drawn(Walk):
    """Decisions drawn with equal probability."""

    source: random.Random = field(default_factory=random.Random)

    def beyond(self, question: Question) -> int:
        return self.source.randrange(len(question.candidates))


@dataclass
class _First(Walk):
    """Decisions that take the choices of a point, then the first candidates."""

    def beyond(self, question: Question) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A point of a space: its schedule, and the questions that it answered."""

    schedule: Schedule
    walk: Walk

    @property
    def point(self) -> Point:
        """What was chosen."""
        return tuple(self.walk.choices)

    @property
    def is_default(self) -> bool:
        """Whether all choices are the rule's own."""
        return self.walk.choices == self.walk.defaults


@dataclass(frozen=True, slots=True)
class TuningSpace:
    """What can be chosen for a function on a target.

    rule: a function of a Schedule that asks with sch.sample_*; None: the rule that fits.
    """

    func: PrimFunc
    target: Target
    rule: RuleFunction | None = None

    @property
    def name(self) -> str:
        """The rule's name."""
        if self.rule is not None:
            return str(getattr(self.rule, "__name__", type(self.rule).__name__))
        return rule_for(self.func, self.target).name

    def candidate(self, point: Point = ()) -> Candidate:
        """The schedule of a point; without one, the default. Raises: ScheduleError."""
        return self.walked(Walk(point))

    def drawn(self, source: random.Random) -> Candidate:
        """A random point. Raises: ScheduleError where its steps are refused."""
        return self.walked(Drawn((), source=source))

    def points(self) -> Iterator[Candidate | ScheduleError]:
        """Every point in order, depth first: its candidate, or why its steps are refused."""
        return (found for _, found in self.every())

    def every(self) -> Iterator[tuple[Walk, Candidate | ScheduleError]]:
        """The walk to each point in order, depth first, and what stands there."""
        start: Point | None = ()
        while start is not None:
            walk = _First(start)
            yield walk, self.reached(walk)
            start = _next(walk)

    def reached(self, walk: Walk) -> Candidate | ScheduleError:
        """The point that decisions lead to, or why its steps are refused."""
        try:
            return self.walked(walk)
        except ScheduleError as error:
            return error

    def walked(self, walk: Walk) -> Candidate:
        """The point that decisions lead to. Raises: ScheduleError where its steps are refused."""
        return Candidate(self._schedule(walk), walk)

    def _schedule(self, decisions: Decisions) -> Schedule:
        if self.rule is None:
            return default_schedule(self.func, self.target, decisions)
        return Schedule(self.func, self.target, decisions, origin="hand").apply(self.rule)


def _next(walk: Walk) -> Point | None:
    """The start of the next point in depth-first order; None behind the last."""
    for place in range(len(walk.choices) - 1, -1, -1):
        if walk.choices[place] + 1 < walk.widths[place]:
            return (*walk.choices[:place], walk.choices[place] + 1)
    return None
