"""What is tried next: the default, then random points, then changes of the best ones."""

from __future__ import annotations

import random
from collections.abc import Sequence

from ..schedule.errors import ScheduleError
from .space import Candidate, Point, TuningSpace

RANDOM_FIRST = 12  # points drawn before any is changed
PARENTS = 6  # the best ones, which are changed
EXPLORE = 0.15  # the share of points that is drawn all the same
TRIES = 64  # of a point that is new and legal


class Search:
    """An evolution over the points of a space.

    seed: equal seeds and equal answers give equal points.
    """

    def __init__(self, space: TuningSpace, seed: int = 0) -> None:
        self._space = space
        self._random = random.Random(seed)
        self._seen: set[Point] = set()
        self._known: dict[Point, float] = {}
        self._candidates: dict[Point, Candidate] = {}

    def propose(self) -> Candidate | None:
        """A candidate that was not proposed before, the default first; None where none is found."""
        for attempt in range(TRIES):
            try:
                found = self._drawn(attempt)
            except ScheduleError:
                continue
            if found.point not in self._seen:
                self._seen.add(found.point)
                self._candidates[found.point] = found
                return found
        return None

    def tell(self, point: Point, seconds: float | None) -> None:
        """What a point took; None where it failed."""
        self._seen.add(point)
        if seconds is not None:
            self._known[point] = seconds

    def best(self, count: int) -> list[Candidate]:
        """The candidates that took the least, the best first."""
        points = sorted(self._known, key=lambda point: self._known[point])[:count]
        return [self._candidates.get(p) or self._space.candidate(p) for p in points]

    def _drawn(self, attempt: int) -> Candidate:
        if not self._seen and attempt == 0:
            return self._space.candidate()
        explores = self._random.random() < EXPLORE or attempt > TRIES // 2
        if len(self._known) < RANDOM_FIRST or explores:
            return self._space.drawn(self._random)
        parents = sorted(self._known, key=lambda point: self._known[point])[:PARENTS]
        return self._space.candidate(self._changed(parents))

    def _changed(self, parents: Sequence[Point]) -> Point:
        """One of the points with another choice at one place or more."""
        parent = self._random.choice(parents)
        walk = self._space.candidate(parent).walk
        wide = [n for n, width in enumerate(walk.widths) if width > 1]
        if not wide:
            return parent
        point = list(parent)
        for place in self._random.sample(wide, 1 + (self._random.random() < 0.3 and len(wide) > 1)):
            point[place] = self._random.randrange(walk.widths[place])
        return tuple(point)
