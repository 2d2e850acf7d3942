"""Gradient-boosted regression trees for a few hundred points: a sum of small trees, each fitted to
the residuals of those before it (Friedman, "Greedy Function Approximation: A Gradient Boosting
Machine", 2001).

The trees are oblivious: all nodes of a level make the same comparison, so the results, as bits, are
the index of a leaf (Prokhorenkova et al., "CatBoost", 2018). Such a tree fits slightly less and
overfits less on few points. A column is cut between neighbouring values, at most `CUTS` times.
There is no randomness: equal data give equal trees.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]  # points x columns
Vector = NDArray[np.float64]
Integers = NDArray[np.int64]

TREES = 40
DEPTH = 4
RATE = 0.2  # the learning rate
SMOOTHING = 1.0  # points of the value 0 in each leaf
CUTS = 31  # of a column
LEAST_GAIN = 1e-12  # a smaller share of the squared error ends the fit


@dataclass(frozen=True, slots=True)
class BoostedTrees:
    """A constant and a sum of trees.

    columns, cuts: the comparison of each tree and level; leaves: the value of each tree for each
    combination of results.
    """

    constant: float
    columns: Integers
    cuts: Matrix
    leaves: Matrix

    def predict(self, points: Matrix) -> Vector:
        """The value at each point."""
        trees, depth = self.columns.shape
        if not points.shape[1]:
            return np.full(len(points), self.constant)
        above = points[:, self.columns] > self.cuts  # points x trees x depth
        leaf = above @ (1 << np.arange(depth, dtype=np.int64))
        total: Vector = self.leaves[np.arange(trees), leaf].sum(axis=1)
        return self.constant + total


def fit_trees(
    points: Matrix, values: Vector, *, trees: int = TREES, depth: int = DEPTH, rate: float = RATE
) -> BoostedTrees:
    """Fit trees to the values at the points. Requires: no NaN."""
    constant = float(values.mean()) if len(values) else 0.0
    cuts = _Cuts(points)
    left = values - constant
    columns = np.zeros((trees, depth), dtype=np.int64)
    places = np.full((trees, depth), np.inf)
    leaves = np.zeros((trees, 1 << depth))
    least = LEAST_GAIN * float(left @ left)
    for tree in range(trees if len(cuts.columns) else 0):
        chosen, leaf = _grow(cuts, left, depth)
        count = np.bincount(leaf, minlength=1 << depth)
        total = np.bincount(leaf, weights=left, minlength=1 << depth)
        leaves[tree] = rate * total / (count + SMOOTHING)
        columns[tree], places[tree] = cuts.columns[chosen], cuts.places[chosen]
        before = float(left @ left)
        left = left - leaves[tree][leaf]
        if before - float(left @ left) <= least:
            break
    return BoostedTrees(constant, columns, places, leaves)


class _Cuts:
    """Every comparison that a tree may make on the points that it is fitted to.

    The cuts of a column divide it into bins; the bins of all columns are numbered consecutively.
    bins: of each point and column. columns, places: of each cut; at: its column among those of
    `bins`; first, last: the bins of that column that are not above the cut.
    """

    def __init__(self, points: Matrix) -> None:
        columns: list[int] = []
        places: list[float] = []
        at: list[int] = []
        first: list[int] = []
        last: list[int] = []
        bins: list[Integers] = []
        known = set[bytes]()
        self.size = 0  # bins in all
        for column in range(points.shape[1]):
            cuts = _between(points[:, column])
            of_points = np.searchsorted(cuts, points[:, column])
            data = of_points.tobytes()
            if not len(cuts) or data in known:  # a constant column, or a copy of an earlier one
                continue
            known.add(data)
            columns += [column] * len(cuts)
            at += [len(bins)] * len(cuts)
            bins.append(self.size + of_points)
            places += cuts.tolist()
            first += [self.size] * len(cuts)
            last += range(self.size, self.size + len(cuts))
            self.size += len(cuts) + 1
        self.bins = np.stack(bins, axis=1) if bins else np.zeros((len(points), 0), np.int64)
        self.columns, self.places = np.array(columns, np.int64), np.array(places)
        self.at = np.array(at, np.int64)
        self.first, self.last = np.array(first, np.int64), np.array(last, np.int64)

    def sums(self, chosen: Integers, node: Integers, nodes: int, weights: Vector) -> Matrix:
        """The number and the weight of the chosen points of each node not above each cut."""
        flat = (self.bins[chosen] + (node * self.size)[:, None]).ravel()
        repeated = np.repeat(weights, self.bins.shape[1])
        size = nodes * self.size
        both = [np.bincount(flat, None, size), np.bincount(flat, repeated, size)]
        of_bins = np.array(both, np.float64).reshape(2, nodes, self.size)
        up_to = np.cumsum(of_bins, axis=2)
        before = up_to[..., self.first] - of_bins[..., self.first]
        sums: Matrix = up_to[..., self.last] - before
        return sums

    def is_above(self, cut: int) -> NDArray[np.bool_]:
        """Whether each point lies above a cut."""
        above: NDArray[np.bool_] = self.bins[:, self.at[cut]] > self.last[cut]
        return above


def _between(column: Vector) -> Vector:
    """The cuts of a column: between neighbouring values, or quantiles where there are many."""
    values = np.unique(column)
    if len(values) > CUTS + 1:
        ranks = np.linspace(0, len(column) - 1, CUTS + 2).round().astype(np.int64)
        values = np.unique(np.sort(column)[ranks])
    middle: Vector = (values[:-1] + values[1:]) / 2
    return middle[middle < values[1:]]  # neighbours may have no number between them


def _grow(cuts: _Cuts, left: Vector, depth: int) -> tuple[list[int], Integers]:
    """The cut of each level of one tree, and the leaf of each point."""
    leaf = np.zeros(len(left), dtype=np.int64)
    whole = np.array([[len(left)], [left.sum()]])
    below = cuts.sums(np.arange(len(left)), leaf, 1, left)
    chosen_cuts: list[int] = []
    for level in range(depth):
        gain = _explained(*below) + _explained(*(whole[..., None] - below))
        cut = int(np.argmax(gain.sum(axis=0)))
        chosen_cuts.append(cut)
        above = cuts.is_above(cut)
        if level + 1 < depth:  # the points below the cut are the rest
            chosen = np.flatnonzero(above)
            part = cuts.sums(chosen, leaf[chosen], 1 << level, left[chosen])
            whole = np.concatenate([below[..., cut], whole - below[..., cut]], axis=1)
            below = np.concatenate([below - part, part], axis=1)
        leaf += (1 << level) * above
    return chosen_cuts, leaf


def _explained(count: Matrix, weight: Matrix) -> Matrix:
    """The reduction of the squared error by leaves with these counts and sums."""
    return weight**2 / (count + SMOOTHING)
