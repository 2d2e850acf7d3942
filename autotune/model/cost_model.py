"""The learned cost model of a search: predicts the time of a candidate from those that were timed.

It predicts logarithms of seconds, so that errors are relative. The model is an ensemble for
cross-validation: each member is fitted without another part of the points. The errors of members on
points that they did not see measure how good the model is; where members disagree, a trial is
informative.
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
ROUNDS = 100  # trees of xgboost
ABSENT = -1.0  # the value of a feature that a candidate lacks: counts are not negative


class Regressor(Protocol):
    """A model that was fitted to points."""

    def predict(self, points: Matrix) -> Vector:
        """The value at each point."""


Fit = Callable[[Matrix, Vector], Regressor]


@dataclass(frozen=True, slots=True)
class CostModel:
    """An ensemble whose members were each fitted without a part of the points.

    names: the features, in the order of the columns. unseen: of each point, the logarithm of its
    time over the prediction of the member that did not see it.
    """

    names: tuple[str, ...]
    members: tuple[Regressor, ...]
    unseen: Vector

    def predict(self, candidates: Sequence[Features]) -> Matrix:
        """The logarithms of the seconds that each member predicts: members x candidates."""
        points = matrix(candidates, self.names)
        return np.stack([member.predict(points) for member in self.members])


def fit_cost_model(
    candidates: Sequence[Features],
    seconds: Sequence[float],
    fit: Fit = fit_trees,
    seed: int = 0,
) -> CostModel:
    """Fit a model to candidates that were timed. Requires: at least two candidates."""
    names = tuple(sorted({name for features in candidates for name in features}))
    points, values = matrix(candidates, names), np.log(np.array(seconds, dtype=np.float64))
    count = min(MEMBERS, len(values))
    part = np.random.default_rng(seed).permutation(len(values)) % count
    members, unseen = [], np.zeros(len(values))
    for number in range(count):
        left_out = part == number
        members.append(fit(points[~left_out], values[~left_out]))
        unseen[left_out] = values[left_out] - members[-1].predict(points[left_out])
    return CostModel(names, tuple(members), unseen)


def matrix(candidates: Sequence[Features], names: Sequence[str]) -> Matrix:
    """The features of candidates as rows; missing ones are `ABSENT`."""
    rows = [[features.get(name, ABSENT) for name in names] for features in candidates]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(names))


def xgboost_fit() -> Fit:
    """The fit function of xgboost. Raises: TuneError where it is not installed."""
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
        parameters = {"max_depth": 4, "eta": 0.15, "lambda": 1.0, "nthread": 1, "verbosity": 0}
        booster = xgboost.train(parameters, xgboost.DMatrix(points, values), ROUNDS)
        return _Boosted(lambda others: booster.predict(xgboost.DMatrix(others)))

    return fit


@dataclass(frozen=True, slots=True)
class _Boosted:
    predicted: Callable[[Matrix], Vector]

    def predict(self, points: Matrix) -> Vector:
        return self.predicted(points).astype(np.float64)
