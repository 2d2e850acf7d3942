"""Gradient-boosted regression trees on a few hundred points: sums of small trees, each fitted to
what the ones before it left over (Friedman, "Greedy Function Approximation: A Gradient Boosting
Machine", 2001).

A tree is oblivious: all nodes of a depth ask one question, so that a leaf is the number that the
answers spell (Prokhorenkova et al., "CatBoost", 2018). That fits a little less per tree and needs
fewer points not to be misled. A column is cut between neighbouring values, at most `CUTS` times.
Nothing is drawn: equal data give equal trees.
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
RATE = 0.2  # the share of a tree's answer that counts
SMOOTHING = 1.0  # points of the value 0 in each leaf
CUTS = 31  # of a column
LEAST_GAIN = 1e-12  # of the squared error that is left, at which no tree helps


@dataclass(frozen=True, slots=True)
class BoostedTrees:
    """A constant and a sum of trees.

    columns, cuts: of each tree and depth, what is compared with what; leaves: the value of each
    tree for each string of answers.
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
        answers = points[:, self.columns] > self.cuts  # points x trees x depth
        places = answers @ (1 << np.arange(depth, dtype=np.int64))
        found: Vector = self.leaves[np.arange(trees), places].sum(axis=1)
        return self.constant + found


def fit_trees(
    points: Matrix, values: Vector, *, trees: int = TREES, depth: int = DEPTH, rate: float = RATE
) -> BoostedTrees:
    """The trees that boosting finds for the values at the points. Requires: no NaN."""
    constant = float(values.mean()) if len(values) else 0.0
    cuts = _Cuts(points)
    left = values - constant
    columns = np.zeros((trees, depth), dtype=np.int64)
    places = np.full((trees, depth), np.inf)
    leaves = np.zeros((trees, 1 << depth))
    least = LEAST_GAIN * float(left @ left)
    for tree in range(trees if len(cuts.columns) else 0):
        asked, leaf = _grown(cuts, left, depth)
        count = np.bincount(leaf, minlength=1 << depth)
        total = np.bincount(leaf, weights=left, minlength=1 << depth)
        leaves[tree] = rate * total / (count + SMOOTHING)
        columns[tree], places[tree] = cuts.columns[asked], cuts.places[asked]
        before = float(left @ left)
        left = left - leaves[tree][leaf]
        if before - float(left @ left) <= least:
            break
    return BoostedTrees(constant, columns, places, leaves)


class _Cuts:
    """Every question that a tree may ask of the points it is fitted to.

    A column that is cut falls into bins; the bins of all columns stand side by side.
    bins: of each point and cut column. columns, places: of each cut; at: its column among those of
    `bins`; first, last: the bins there that are not above it.
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
            found = np.searchsorted(cuts, points[:, column])
            told = found.tobytes()
            if not len(cuts) or told in known:  # all points are one, or an earlier column says it
                continue
            known.add(told)
            columns += [column] * len(cuts)
            at += [len(bins)] * len(cuts)
            bins.append(self.size + found)
            places += cuts.tolist()
            first += [self.size] * len(cuts)
            last += range(self.size, self.size + len(cuts))
            self.size += len(cuts) + 1
        self.bins = np.stack(bins, axis=1) if bins else np.zeros((len(points), 0), np.int64)
        self.columns, self.places = np.array(columns, np.int64), np.array(places)
        self.at = np.array(at, np.int64)
        self.first, self.last = np.array(first, np.int64), np.array(last, np.int64)

    def sums(self, chosen: Integers, node: Integers, nodes: int, weights: Vector) -> Matrix:
        """Of the chosen points in each node and not above each cut: their number, their weight."""
        flat = (self.bins[chosen] + (node * self.size)[:, None]).ravel()
        repeated = np.repeat(weights, self.bins.shape[1])
        size = nodes * self.size
        both = [np.bincount(flat, None, size), np.bincount(flat, repeated, size)]
        of_bins = np.array(both, np.float64).reshape(2, nodes, self.size)
        up_to = np.cumsum(of_bins, axis=2)
        before = up_to[..., self.first] - of_bins[..., self.first]
        found: Matrix = up_to[..., self.last] - before
        return found

    def is_above(self, cut: int) -> NDArray[np.bool_]:
        """Whether each point lies above a cut."""
        found: NDArray[np.bool_] = self.bins[:, self.at[cut]] > self.last[cut]
        return found


def _between(column: Vector) -> Vector:
    """Where a column is cut: between neighbouring values, between quantiles where there are many
    values.
    """
    values = np.unique(column)
    if len(values) > CUTS + 1:
        ranks = np.linspace(0, len(column) - 1, CUTS + 2).round().astype(np.int64)
        values = np.unique(np.sort(column)[ranks])
    middle: Vector = (values[:-1] + values[1:]) / 2
    return middle[middle < values[1:]]  # neighbours may have no number between them


def _grown(cuts: _Cuts, left: Vector, depth: int) -> tuple[list[int], Integers]:
    """The cut that each depth of one tree asks for, and the leaf of each point."""
    leaf = np.zeros(len(left), dtype=np.int64)
    whole = np.array([[len(left)], [left.sum()]])
    below = cuts.sums(np.arange(len(left)), leaf, 1, left)
    asked: list[int] = []
    for level in range(depth):
        gain = _explained(*below) + _explained(*(whole[..., None] - below))
        cut = int(np.argmax(gain.sum(axis=0)))
        asked.append(cut)
        above = cuts.is_above(cut)
        if level + 1 < depth:  # what lies below the cut needs no sums of its own
            chosen = np.flatnonzero(above)
            part = cuts.sums(chosen, leaf[chosen], 1 << level, left[chosen])
            whole = np.concatenate([below[..., cut], whole - below[..., cut]], axis=1)
            below = np.concatenate([below - part, part], axis=1)
        leaf += (1 << level) * above
    return asked, leaf


def _explained(count: Matrix, weight: Matrix) -> Matrix:
    """By how much leaves of so many points, with these sums, lower the squared error."""
    return weight**2 / (count + SMOOTHING)
