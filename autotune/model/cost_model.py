"""The learned cost model of a search: what a candidate will take, from candidates that were timed.

Targets are logarithms of seconds, so that errors are shares of a time. Several members are fitted,
each without another part of the points: what the members make of the points that they did not see
says how far the model can be trusted, and what they disagree about is worth a trial.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ...driver.tuning.errors import TuneError
from .boosted_trees import Matrix, Vector, fit_trees
from .features import Features

MEMBERS = 4
ROUNDS = 100  # trees of the peer
ABSENT = -1.0  # of a feature that a candidate does not have: no count is negative


class Regressor(Protocol):
    """What was fitted to points."""

    def predict(self, points: Matrix) -> Vector:
        """The value at each point."""


Fit = Callable[[Matrix, Vector], Regressor]


@dataclass(frozen=True, slots=True)
class CostModel:
    """Members that were fitted to all points but a part each.

    names: the features, in the order of the columns. unseen: what each point took over what the
    members that did not see it expected, logarithms.
    """

    names: tuple[str, ...]
    members: tuple[Regressor, ...]
    unseen: Vector

    def predict(self, told: Sequence[Features]) -> Matrix:
        """The logarithm of the seconds of each candidate, by each member: members x candidates."""
        points = matrix(told, self.names)
        return np.stack([member.predict(points) for member in self.members])


def fit_cost_model(
    told: Sequence[Features], seconds: Sequence[float], fit: Fit = fit_trees, seed: int = 0
) -> CostModel:
    """The model of candidates that were timed. Requires: at least two candidates."""
    names = tuple(sorted({name for features in told for name in features}))
    points, values = matrix(told, names), np.log(np.array(seconds, dtype=np.float64))
    count = min(MEMBERS, len(values))
    part = np.random.default_rng(seed).permutation(len(values)) % count
    members, unseen = [], np.zeros(len(values))
    for number in range(count):
        left_out = part == number
        members.append(fit(points[~left_out], values[~left_out]))
        unseen[left_out] = values[left_out] - members[-1].predict(points[left_out])
    return CostModel(names, tuple(members), unseen)


def matrix(told: Sequence[Features], names: Sequence[str]) -> Matrix:
    """The features as rows; those that a candidate lacks are `ABSENT`."""
    rows = [[features.get(name, ABSENT) for name in names] for features in told]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(names))


def xgboost_fit() -> Fit:
    """How the peer of that name is fitted. Raises: TuneError where it is not installed."""
    try:
        import xgboost  # optional: the extra `cost`
    except ImportError:
        raise TuneError(
            "tune: the strategy 'evolutionary-xgboost' needs the package xgboost, which is not "
            "there.",
            code="tune-xgboost",
            hints=("pip install tilewright[cost], or take 'evolutionary', whose trees are ours.",),
        ) from None

    def fit(points: Matrix, values: Vector) -> Regressor:
        told = {"max_depth": 4, "eta": 0.15, "lambda": 1.0, "nthread": 1, "verbosity": 0}
        booster = xgboost.train(told, xgboost.DMatrix(points, values), ROUNDS)
        return _Boosted(lambda others: booster.predict(xgboost.DMatrix(others)))

    return fit


@dataclass(frozen=True, slots=True)
class _Boosted:
    predicted: Callable[[Matrix], Vector]

    def predict(self, points: Matrix) -> Vector:
        return self.predicted(points).astype(np.float64)
