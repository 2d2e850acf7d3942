"""Search strategies: each proposes candidates and is told their times (ask and tell)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from ...schedule.errors import ScheduleError
from ..space.space import Point, RandomWalk, Walk
from .expected_improvement import NOTHING_LEFT, ExpectedImprovement, gain_by_count

TRIES = 24  # draws of a new legal candidate, before the whole space is enumerated


class HasPoint(Protocol):
    """What a search reads of a candidate."""

    @property
    def point(self) -> Point: ...

    @property
    def walk(self) -> Walk: ...


CandidateT = TypeVar("CandidateT", bound=HasPoint)
CandidateT_co = TypeVar("CandidateT_co", bound=HasPoint, covariant=True)


class Space(Protocol[CandidateT_co]):
    """Makes candidates. Raises: ScheduleError for one whose steps are refused."""

    def candidate_at(self, walk: Walk) -> CandidateT_co: ...

    def points(self) -> Iterator[CandidateT_co | ScheduleError]: ...


class Strategy(Protocol[CandidateT]):
    """A search algorithm. Equal seeds and equal times give equal candidates."""

    def propose(self, count: int = 1) -> list[CandidateT]:
        """Up to `count` candidates that were not proposed before, the default first."""

    def tell(self, candidate: CandidateT, seconds: float | None) -> None:
        """Report the time of a candidate; None where it failed."""

    def fastest(self, count: int) -> list[CandidateT]:
        """The fastest candidates, in order."""

    def expected_improvement(self) -> ExpectedImprovement:
        """What further trials promise."""


class RandomSearch(Generic[CandidateT]):
    """Random search: each decision is drawn uniformly from its candidates.

    early: walks that are proposed right after the default.
    """

    def __init__(self, space: Space[CandidateT], seed: int = 0, early: Sequence[Walk] = ()) -> None:
        self.random = random.Random(seed)
        self.timed: dict[Point, float] = {}
        self._space = space
        self._seen = set[Point]()
        self._candidates: dict[Point, CandidateT] = {}
        self._first = [Walk(()), *early]
        self.is_exhausted = False  # whether every point was proposed
        self._rest: Iterator[CandidateT | ScheduleError] | None = None

    def propose(self, count: int = 1) -> list[CandidateT]:
        """Up to `count` candidates that were not proposed before."""
        proposed: list[CandidateT] = []
        while len(proposed) < count and (candidate := self._next()) is not None:
            self._seen.add(candidate.point)
            proposed.append(candidate)
        return proposed

    def tell(self, candidate: CandidateT, seconds: float | None) -> None:
        """Report the time of a candidate; None where it failed."""
        self._seen.add(candidate.point)
        if seconds is not None:
            self.timed[candidate.point] = seconds
            self._candidates[candidate.point] = candidate

    def fastest(self, count: int) -> list[CandidateT]:
        """The fastest candidates, in order."""
        return [self._candidates[point] for point in self.ranked()[:count]]

    def ranked(self) -> list[Point]:
        """The points that were timed, fastest first."""
        return sorted(self.timed, key=lambda point: self.timed[point])

    def expected_improvement(self) -> ExpectedImprovement:
        """What further trials promise, by their number alone: there is no model."""
        if self.is_exhausted:
            return NOTHING_LEFT
        return ExpectedImprovement(1.0, gain_by_count(len(self.timed)))

    def _next(self) -> CandidateT | None:
        return self._next_early() or self.draw_new(lambda: RandomWalk((), source=self.random))

    def _next_early(self) -> CandidateT | None:
        """The next of the candidates that are tried first."""
        while self._first:
            candidate = self._try(self._first.pop(0))
            if candidate is not None:
                return candidate
        return None

    def draw_new(self, draw: Callable[[], Walk]) -> CandidateT | None:
        """A new candidate: draw walks until one leads to it; after `TRIES` walks, the next point
        of the whole space.
        """
        if self.is_exhausted:
            return None
        for _ in range(TRIES):
            candidate = self._try(draw())
            if candidate is not None:
                return candidate
        self._rest = self._rest or self._space.points()
        for entry in self._rest:
            if not isinstance(entry, ScheduleError) and self.is_new(entry.point):
                return entry
        self.is_exhausted = True
        return None

    def _try(self, walk: Walk) -> CandidateT | None:
        """The candidate that a walk leads to; None where it is refused or known."""
        try:
            candidate = self._space.candidate_at(walk)
        except ScheduleError:
            return None
        return candidate if self.is_new(candidate.point) else None

    def restart_enumeration(self) -> None:
        """Enumerate the space again from its start: points were dropped, and are new again."""
        self.is_exhausted, self._rest = False, None

    def is_new(self, point: Point) -> bool:
        """Whether a point was neither proposed nor timed before."""
        return point not in self._seen
