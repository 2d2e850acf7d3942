"""The search by default: an evolution whose offspring a learned cost model ranks.

The first candidates are drawn, or children of the rule's own. Then each pick adds a few new ones to
a pool, children of the best that were timed (offspring.py) and some drawn ones, and takes that of
the pool which a member of the cost model (cost_model.py) expects to be fastest, another member each
time, so that what the members disagree about gets its trials (Thompson, 1933); now and then it
takes any one. Offspring that was not taken stays in the pool. The scheme is that of Ansor (Zheng et
al., 2020) without its rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ..model.boosted_trees import Matrix, Vector, fit_trees
from ..model.cost_model import CostModel, Fit, fit_cost_model
from ..model.features import Features
from ..space.decisions import Answering
from ..space.space import Drawn, Point, Walk
from .expected_improvement import HORIZON, NOTHING_LEFT, Outlook, Pick, outlook
from .mutation import Breeder, child_of
from .search import Found, RandomSearch, Space

FIRST = 8  # candidates that are timed before a model is fitted
OFFSPRING = 2  # new ones for each pick
DRAWN = 0.15  # the share of them that is drawn
PARENTS = 12  # the best ones, of which all others are children
EXPLORE = 0.08  # the share of picks that any candidate of the pool may be
POOL = 256  # candidates that are kept
REFIT = 1.1  # times as many trials as the model has seen, and it is fitted again
FAILED = 4.0  # times the slowest: what one that failed counts as


class EvolutionarySearch(RandomSearch[Found]):
    """An evolution over the points of a space.

    features: what the model is told of a candidate; fit: how it is fitted.
    """

    def __init__(
        self,
        space: Space[Found],
        features: Callable[[Found], Features],
        seed: int = 0,
        early: Sequence[Walk] = (),
        fit: Fit = fit_trees,
    ) -> None:
        super().__init__(space, seed, early)
        self.picks: list[Pick] = []
        self._features = features
        self._fit = fit
        self._told: dict[Point, Features] = {}
        self._walks: dict[Point, Walk] = {}
        self._pool: dict[Point, Found] = {}
        self._breeder = Breeder(self.random, fit)
        self._expected: dict[Point, float] = {}
        self._model: CostModel | None = None
        self._fitted = 0  # trials that the model has seen
        self._predictions: dict[Point, Vector] = {}
        self._outlook: Outlook | None = None

    def tell(self, candidate: Found, seconds: float | None) -> None:
        """What a candidate took; None where it failed."""
        point, before = candidate.point, min(self.timed.values(), default=math.inf)
        super().tell(candidate, seconds)
        self._pool.pop(point, None)
        self._describe(candidate)
        self._outlook = None
        self._walks[point] = candidate.walk
        self._breeder.know(candidate.walk)
        if seconds is not None and point in self._expected:
            took = math.log(seconds)
            self.picks.append(Pick(took - self._expected.pop(point), math.log(before) - took))

    def outlook(self) -> Outlook:
        """What more trials promise, by the model and its errors so far."""
        if len(self.timed) < FIRST:
            return super().outlook()
        self._outlook = self._outlook or self._looked_ahead()
        return self._outlook

    def _looked_ahead(self) -> Outlook:
        self._grow(HORIZON - len(self._pool))
        if not self._pool:
            return NOTHING_LEFT
        expected = self._predicted().mean(axis=1) - math.log(min(self.timed.values()))
        return outlook(expected.tolist(), self.picks)

    def _next(self) -> Found | None:
        early = self._early()
        if early is not None:
            return early
        if len(self.timed) < FIRST:
            return self.fresh(lambda: self._first_child())
        self._grow(OFFSPRING)
        return self._picked() if self._pool else None

    def _picked(self) -> Found:
        """The candidate of the pool that is tried, which leaves it."""
        points, predicted = list(self._pool), self._predicted()
        if self.random.random() < EXPLORE:
            place = self.random.randrange(len(points))
        else:
            member = self.random.randrange(predicted.shape[1])
            place = int(np.argmin(predicted[:, member]))
            self._expected[points[place]] = float(predicted[place].mean())
        return self._pool.pop(points[place])

    def _predicted(self) -> Matrix:
        """What is expected of each candidate of the pool: candidates x members of the model."""
        if self._model is None or len(self._walks) > REFIT * self._fitted:
            self._model, self._fitted = self._fitted_model(), len(self._walks)
            self._predictions = {}
        new = [point for point in self._pool if point not in self._predictions]
        told = [self._describe(self._pool[point]) for point in new]
        if new:
            self._predictions |= zip(new, self._model.predict(told).T, strict=True)
        return np.stack([self._predictions[point] for point in self._pool])

    def _fitted_model(self) -> CostModel:
        worst = FAILED * max(self.timed.values())
        seconds = {point: self.timed.get(point, worst) for point in self._walks}
        told = [self._told[point] for point in seconds]
        self._breeder.learn([self._walks[point] for point in seconds], list(seconds.values()))
        seed = self.random.randrange(1 << 30)
        return fit_cost_model(told, list(seconds.values()), self._fit, seed)

    def _describe(self, candidate: Found) -> Features:
        point = candidate.point
        if point not in self._told:
            self._told[point] = self._features(candidate)
        return self._told[point]

    def _grow(self, count: int) -> None:
        """Add new candidates to the pool, and drop those that promise least."""
        parents = self.ranked()[:PARENTS]
        for _ in range(count):
            found = self.fresh(lambda: self._child(parents))
            if found is None:
                break
            self._pool[found.point] = found
            self._breeder.know(found.walk)
        if len(self._pool) > POOL:
            order = np.argsort(self._predicted().mean(axis=1), kind="stable")
            points = list(self._pool)
            self._pool = {points[place]: self._pool[points[place]] for place in order[: POOL // 2]}
            self.forget()

    def is_new(self, point: Point) -> bool:
        """Whether a point was neither proposed nor stands in the pool."""
        return super().is_new(point) and point not in self._pool

    def _first_child(self) -> Walk:
        """Decisions drawn, or those of a child of the best so far: mostly the rule's own."""
        best = self.ranked()[:1]
        if not best or self.random.random() < 0.5:
            return Drawn((), source=self.random)
        return Answering((), answers=child_of([self._walks[best[0]]], self.random))

    def _child(self, parents: Sequence[Point]) -> Walk:
        """Decisions drawn, or those of a child of the best."""
        if not parents or self.random.random() < DRAWN:
            return Drawn((), source=self.random)
        walks = [self._walks[point] for point in parents]
        return Answering((), answers=self._breeder.child(walks))
