"""The space of a function's schedules: the decisions of a rule, or of a user's function over a
Schedule.

A point lists the choice at each sample_* step, as an index of its candidates. Which steps follow
may depend on earlier choices, so the space is a tree.
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
from ...tir.target.target import Target

Point = tuple[int, ...]
RuleFunction = Callable[[Schedule], object]


@dataclass
class Walk:
    """Takes the choices of a point, then the rule's own, and records the questions.

    questions: in order; choices: the index of a candidate for each of them.
    """

    start: Point
    choices: list[int] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)

    def choose(self, question: Question) -> int:
        """The next choice; an index past the last candidate becomes the last one."""
        number = len(self.choices)
        choice = self.start[number] if number < len(self.start) else self.beyond(question)
        self.choices.append(min(choice, len(question.candidates) - 1))
        self.questions.append(question)
        return self.choices[-1]

    def beyond(self, question: Question) -> int:
        """The choice for a question behind the end of the point."""
        return question.default

    @property
    def widths(self) -> list[int]:
        """The number of candidates of each question."""
        return [len(question.candidates) for question in self.questions]

    @property
    def defaults(self) -> list[int]:
        """The rule's own choices."""
        return [question.default for question in self.questions]


@dataclass
class RandomWalk(Walk):
    """Draws each choice uniformly."""

    source: random.Random = field(default_factory=random.Random)

    def beyond(self, question: Question) -> int:
        return self.source.randrange(len(question.candidates))


@dataclass
class _FirstWalk(Walk):
    """Takes the choices of a point, then the first candidates."""

    def beyond(self, question: Question) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A point of a space: its schedule, and the walk that led to it."""

    schedule: Schedule
    walk: Walk

    @property
    def point(self) -> Point:
        """The choices."""
        return tuple(self.walk.choices)

    @property
    def is_default(self) -> bool:
        """Whether every choice is the rule's own."""
        return self.walk.choices == self.walk.defaults


@dataclass(frozen=True, slots=True)
class TuningSpace:
    """The schedules of a function on a target.

    rule: a function of a Schedule that asks with sch.sample_*; None: the rule that fits.
    """

    func: PrimFunc
    target: Target
    rule: RuleFunction | None = None

    def __repr__(self) -> str:
        return f"TuningSpace of '{self.func.name}' for {self.target}, rule {self.name}"

    @property
    def name(self) -> str:
        """The rule's name."""
        if self.rule is not None:
            return str(getattr(self.rule, "__name__", type(self.rule).__name__))
        return rule_for(self.func, self.target).name

    def candidate(self, point: Point = ()) -> Candidate:
        """The schedule of a point; without one, the default. Raises: ScheduleError."""
        return self.candidate_at(Walk(point))

    def draw(self, source: random.Random) -> Candidate:
        """A random point. Raises: ScheduleError where its steps are refused."""
        return self.candidate_at(RandomWalk((), source=source))

    def points(self) -> Iterator[Candidate | ScheduleError]:
        """Every point depth-first, as its candidate or its refusal."""
        return (point for _, point in self.walks())

    def walks(self) -> Iterator[tuple[Walk, Candidate | ScheduleError]]:
        """The walk to every point depth-first, with its candidate or its refusal."""
        start: Point | None = ()
        while start is not None:
            walk = _FirstWalk(start)
            yield walk, self.try_walk(walk)
            start = _next(walk)

    def try_walk(self, walk: Walk) -> Candidate | ScheduleError:
        """The candidate at the end of a walk, or why its steps are refused."""
        try:
            return self.candidate_at(walk)
        except ScheduleError as error:
            return error

    def candidate_at(self, walk: Walk) -> Candidate:
        """The candidate at the end of a walk. Raises: ScheduleError where its steps are refused."""
        return Candidate(self._schedule(walk), walk)

    def _schedule(self, decisions: Decisions) -> Schedule:
        if self.rule is None:
            return default_schedule(self.func, self.target, decisions)
        return Schedule(self.func, self.target, decisions, origin="hand").apply(self.rule)


def _next(walk: Walk) -> Point | None:
    """The start of the next point in depth-first order; None behind the last."""
    for n in range(len(walk.choices) - 1, -1, -1):
        if walk.choices[n] + 1 < walk.widths[n]:
            return (*walk.choices[:n], walk.choices[n] + 1)
    return None
