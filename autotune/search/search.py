"""What is tried next: a strategy proposes candidates and is told what they took."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from ...schedule.errors import ScheduleError
from ..space.space import Drawn, Point, Walk
from .expected_improvement import NOTHING_LEFT, Outlook, hope

TRIES = 24  # of a candidate that is new and legal, before the whole space is walked


class Pointed(Protocol):
    """What a search knows of a candidate."""

    @property
    def point(self) -> Point: ...

    @property
    def walk(self) -> Walk: ...


Found = TypeVar("Found", bound=Pointed)
Given = TypeVar("Given", bound=Pointed, covariant=True)


class Space(Protocol[Given]):
    """Where candidates come from. Raises: ScheduleError for one whose steps are refused."""

    def walked(self, walk: Walk) -> Given: ...

    def points(self) -> Iterator[Given | ScheduleError]: ...


class Strategy(Protocol[Found]):
    """A way to search. Equal seeds and equal answers give equal candidates."""

    def propose(self, count: int = 1) -> list[Found]:
        """So many candidates that were not proposed before, the default first; fewer where there
        are no more.
        """

    def tell(self, candidate: Found, seconds: float | None) -> None:
        """What a candidate took; None where it failed."""

    def best(self, count: int) -> list[Found]:
        """The candidates that took the least, the best first."""

    def outlook(self) -> Outlook:
        """What more trials promise."""


class RandomSearch(Generic[Found]):
    """Points drawn with equal probability at each question.

    early: candidates that are proposed behind the default, such as what was best elsewhere.
    """

    def __init__(self, space: Space[Found], seed: int = 0, early: Sequence[Walk] = ()) -> None:
        self.random = random.Random(seed)
        self.timed: dict[Point, float] = {}
        self._space = space
        self._seen = set[Point]()
        self._found: dict[Point, Found] = {}
        self._first = [Walk(()), *early]
        self.is_exhausted = False  # whether each point was found
        self._rest: Iterator[Found | ScheduleError] | None = None

    def propose(self, count: int = 1) -> list[Found]:
        """So many candidates that were not proposed before; fewer where there are no more."""
        found: list[Found] = []
        while len(found) < count and (candidate := self._next()) is not None:
            self._seen.add(candidate.point)
            found.append(candidate)
        return found

    def tell(self, candidate: Found, seconds: float | None) -> None:
        """What a candidate took; None where it failed."""
        self._seen.add(candidate.point)
        if seconds is not None:
            self.timed[candidate.point] = seconds
            self._found[candidate.point] = candidate

    def best(self, count: int) -> list[Found]:
        """The candidates that took the least, the best first."""
        return [self._found[point] for point in self.ranked()[:count]]

    def ranked(self) -> list[Point]:
        """The points that were timed, the best first."""
        return sorted(self.timed, key=lambda point: self.timed[point])

    def outlook(self) -> Outlook:
        """What more trials promise: random ones have no more to say than their number."""
        return NOTHING_LEFT if self.is_exhausted else Outlook(1.0, hope(len(self.timed)))

    def _next(self) -> Found | None:
        return self._early() or self.fresh(lambda: Drawn((), source=self.random))

    def _early(self) -> Found | None:
        """The next of the candidates that stand at the start."""
        while self._first:
            found = self._new(self._first.pop(0))
            if found is not None:
                return found
        return None

    def fresh(self, walk: Callable[[], Walk]) -> Found | None:
        """A new candidate: by decisions that are made until they lead to one, else the next of the
        whole space.
        """
        if self.is_exhausted:
            return None
        for _ in range(TRIES):
            found = self._new(walk())
            if found is not None:
                return found
        self._rest = self._rest or self._space.points()
        for one in self._rest:
            if not isinstance(one, ScheduleError) and self.is_new(one.point):
                return one
        self.is_exhausted = True
        return None

    def _new(self, walk: Walk) -> Found | None:
        try:
            found = self._space.walked(walk)
        except ScheduleError:
            return None
        return found if self.is_new(found.point) else None

    def forget(self) -> None:
        """Points that were found are given up again: the space has more than was seen."""
        self.is_exhausted, self._rest = False, None

    def is_new(self, point: Point) -> bool:
        """Whether a point was not proposed, or told, before."""
        return point not in self._seen
