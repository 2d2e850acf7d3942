"""The default search: an evolutionary one whose mutants a learned cost model ranks.

The first candidates are random points and mutants of the default. Then each pick adds a few
candidates to a pool, mutants of the fastest ones (mutation.py) and random points, and takes the one
that a member of the cost model (cost_model.py) predicts to be fastest. The member is drawn anew for
each pick, so that trials go where the members disagree (Thompson sampling, 1933); a small share of
the picks is random. Mutants that were not picked stay in the pool. The scheme is that of Ansor
(Zheng et al., 2020) without its rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ..model.boosted_trees import Matrix, Vector, fit_trees
from ..model.cost_model import CostModel, Fit, fit_cost_model
from ..model.features import Features
from ..space.decisions import GuidedWalk
from ..space.space import Point, RandomWalk, Walk
from .expected_improvement import (
    HORIZON,
    NOTHING_LEFT,
    ExpectedImprovement,
    Pick,
    expected_improvement,
)
from .mutation import Mutator, mutate
from .search import CandidateT, RandomSearch, Space

WARM_UP = 8  # candidates that are timed before the first model is fitted
MUTANTS = 2  # that are added for each pick
RANDOM = 0.15  # the share of them that are random points instead
PARENTS = 12  # the fastest candidates, from which all mutants are made
EXPLORE = 0.08  # the share of picks that are random
POOL = 256  # candidates at most
REFIT = 1.1  # the growth of the number of trials at which the model is fitted again
FAILURE_FACTOR = 4.0  # a failed candidate counts as so many times the slowest one


class EvolutionarySearch(RandomSearch[CandidateT]):
    """Evolutionary search over the points of a space.

    features: the model's inputs for a candidate; fit: how the model is fitted.
    """

    def __init__(
        self,
        space: Space[CandidateT],
        features: Callable[[CandidateT], Features],
        seed: int = 0,
        early: Sequence[Walk] = (),
        fit: Fit = fit_trees,
    ) -> None:
        super().__init__(space, seed, early)
        self.picks: list[Pick] = []
        self._features = features
        self._fit = fit
        self._known_features: dict[Point, Features] = {}
        self._walks: dict[Point, Walk] = {}
        self._pool: dict[Point, CandidateT] = {}
        self._mutator = Mutator(self.random, fit)
        self._expected: dict[Point, float] = {}
        self._model: CostModel | None = None
        self._fitted = 0  # trials that the model was fitted to
        self._predictions: dict[Point, Vector] = {}
        self._improvement: ExpectedImprovement | None = None

    def tell(self, candidate: CandidateT, seconds: float | None) -> None:
        """Report the time of a candidate; None where it failed."""
        point, before = candidate.point, min(self.timed.values(), default=math.inf)
        super().tell(candidate, seconds)
        self._pool.pop(point, None)
        self._features_of(candidate)
        self._improvement = None
        self._walks[point] = candidate.walk
        self._mutator.exclude(candidate.walk)
        if seconds is not None and point in self._expected:
            took = math.log(seconds)
            self.picks.append(Pick(took - self._expected.pop(point), math.log(before) - took))

    def expected_improvement(self) -> ExpectedImprovement:
        """What further trials promise, by the model and its errors so far."""
        if len(self.timed) < WARM_UP:
            return super().expected_improvement()
        self._improvement = self._improvement or self._estimate_improvement()
        return self._improvement

    def _estimate_improvement(self) -> ExpectedImprovement:
        self._grow_pool(HORIZON - len(self._pool))
        if not self._pool:
            return NOTHING_LEFT
        expected = self._predict_pool().mean(axis=1) - math.log(min(self.timed.values()))
        return expected_improvement(expected.tolist(), self.picks)

    def _next(self) -> CandidateT | None:
        early = self._next_early()
        if early is not None:
            return early
        if len(self.timed) < WARM_UP:
            return self.draw_new(self._draw_first)
        self._grow_pool(MUTANTS)
        return self._pick() if self._pool else None

    def _pick(self) -> CandidateT:
        """Take a candidate out of the pool, to be tried."""
        points, predicted = list(self._pool), self._predict_pool()
        if self.random.random() < EXPLORE:
            index = self.random.randrange(len(points))
        else:
            member = self.random.randrange(predicted.shape[1])
            index = int(np.argmin(predicted[:, member]))
            self._expected[points[index]] = float(predicted[index].mean())
        return self._pool.pop(points[index])

    def _predict_pool(self) -> Matrix:
        """The predictions for the pool: candidates x members of the model."""
        if self._model is None or len(self._walks) > REFIT * self._fitted:
            self._model, self._fitted = self._fit_model(), len(self._walks)
            self._predictions = {}
        new = [point for point in self._pool if point not in self._predictions]
        rows = [self._features_of(self._pool[point]) for point in new]
        if new:
            self._predictions |= zip(new, self._model.predict(rows).T, strict=True)
        return np.stack([self._predictions[point] for point in self._pool])

    def _fit_model(self) -> CostModel:
        worst = FAILURE_FACTOR * max(self.timed.values())
        seconds = {point: self.timed.get(point, worst) for point in self._walks}
        rows = [self._known_features[point] for point in seconds]
        self._mutator.learn([self._walks[point] for point in seconds], list(seconds.values()))
        seed = self.random.randrange(1 << 30)
        return fit_cost_model(rows, list(seconds.values()), self._fit, seed)

    def _features_of(self, candidate: CandidateT) -> Features:
        point = candidate.point
        if point not in self._known_features:
            self._known_features[point] = self._features(candidate)
        return self._known_features[point]

    def _grow_pool(self, count: int) -> None:
        """Add new candidates to the pool; halve it when it is full, by the predictions."""
        parents = self.ranked()[:PARENTS]
        for _ in range(count):
            candidate = self.draw_new(lambda: self._draw(parents))
            if candidate is None:
                break
            self._pool[candidate.point] = candidate
            self._mutator.exclude(candidate.walk)
        if len(self._pool) > POOL:
            order = np.argsort(self._predict_pool().mean(axis=1), kind="stable")
            points = list(self._pool)
            self._pool = {points[n]: self._pool[points[n]] for n in order[: POOL // 2]}
            self.restart_enumeration()

    def is_new(self, point: Point) -> bool:
        """Whether a point was neither proposed nor timed before, nor is in the pool."""
        return super().is_new(point) and point not in self._pool

    def _draw_first(self) -> Walk:
        """A random walk, or a mutant of the fastest candidate so far, often the default."""
        best = self.ranked()[:1]
        if not best or self.random.random() < 0.5:
            return RandomWalk((), source=self.random)
        return GuidedWalk((), decisions=mutate([self._walks[best[0]]], self.random))

    def _draw(self, parents: Sequence[Point]) -> Walk:
        """A random walk, or a mutant of the parents."""
        if not parents or self.random.random() < RANDOM:
            return RandomWalk((), source=self.random)
        walks = [self._walks[point] for point in parents]
        return GuidedWalk((), decisions=self._mutator.mutant(walks))
