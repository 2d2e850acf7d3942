"""Nodes of decision trees as the records that Forest walks over: each compares with <=, and its two
successors stand side by side.

What else a node may ask is asked of copies of the features, which come in `FeatureForm`s:
x >= t is -x <= -t, x < t is x <= t' with the number t' just below t, x = t takes two records, and
to be one of a set takes a search in it. A comparison that a NaN is to pass reads -inf in its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .....errors import ModelError
from ...node import NotSupported

Whole = NDArray[np.int64]
Reals = NDArray[np.floating[Any]]
DEEPEST = 256  # steps from a root to a leaf


class Mode(IntEnum):
    """What a node asks, numbered as TreeEnsemble does; LEAF stands for none."""

    BRANCH_LEQ = 0
    BRANCH_LT = 1
    BRANCH_GTE = 2
    BRANCH_GT = 3
    BRANCH_EQ = 4
    BRANCH_NEQ = 5
    BRANCH_MEMBER = 6
    LEAF = 7


class FeatureForm(IntEnum):
    """In which form a node reads its feature: as it is, negated; with -inf for NaN, the same
    negated.
    """

    PLAIN = 0
    NEGATED = 1
    FILLED = 2
    NEGATED_FILLED = 3


@dataclass(frozen=True, slots=True)
class TreeNodes:
    """The nodes of all trees, by number. yes, no: where a row goes on. leaves: the rows of values
    of those that are leaves, -1 of others. filled: whether a NaN goes to `yes`. members: the sets
    of those that ask for one.
    """

    features: Whole
    thresholds: Reals
    modes: Whole
    yes: Whole
    no: Whole
    leaves: Whole
    filled: NDArray[np.bool_]
    roots: Whole
    members: dict[int, Reals]


@dataclass(frozen=True, slots=True)
class Records:
    """The inputs of Forest but for x and the values. variants: of the features, one after another,
    in which x must come.
    """

    features: NDArray[np.int32]
    thresholds: Reals
    children: NDArray[np.int32]
    depth: int
    variants: tuple[FeatureForm, ...]


def records(nodes: TreeNodes, width: int) -> Records:
    """The records of the trees. width: features of a row.

    Raises: NotSupported where a tree is too deep; ModelError for a feature that no row has.
    """
    inner = nodes.leaves < 0
    wrong = nodes.features[inner & ((nodes.features < 0) | (nodes.features >= width))]
    if wrong.size:
        raise ModelError(
            f"model: a tree reads feature {wrong[0]}; expected 0 to {width - 1}.",
            code="onnx-tree-feature",
        )
    made = _Comparisons(nodes)
    leaves = np.concatenate([nodes.leaves, np.full(made.yes.size - nodes.leaves.size, -1)])
    return _laid_out(made, leaves, nodes.roots, width)


class _Comparisons:
    """The nodes as comparisons with <= alone; those that there were keep their numbers."""

    def __init__(self, nodes: TreeNodes) -> None:
        self.features, self.thresholds = nodes.features.copy(), nodes.thresholds.copy()
        self.yes, self.no = nodes.yes.copy(), nodes.no.copy()
        self.variants = np.where(nodes.filled, FeatureForm.FILLED, FeatureForm.PLAIN)
        modes = nodes.modes
        negated = (modes == Mode.BRANCH_GTE) | (modes == Mode.BRANCH_GT)
        self.thresholds[negated] *= -1
        self.variants[negated] += FeatureForm.NEGATED
        strict = (modes == Mode.BRANCH_LT) | (modes == Mode.BRANCH_GT)
        self.thresholds[strict] = _just_below(self.thresholds[strict])
        other = np.flatnonzero(modes == Mode.BRANCH_NEQ)
        self.yes[other], self.no[other] = nodes.no[other], nodes.yes[other]
        self.variants[other] = FeatureForm.PLAIN  # a NaN differs from every number as it is
        self._equal(np.flatnonzero((modes == Mode.BRANCH_EQ) | (modes == Mode.BRANCH_NEQ)))
        for number in np.flatnonzero(modes == Mode.BRANCH_MEMBER):
            self._member(int(number), np.unique(nodes.members[int(number)]))

    def _equal(self, numbers: Whole) -> None:
        """x = t is x <= t and -x <= -t."""
        second = self._added(numbers, -self.thresholds[numbers], self.yes[numbers])
        self.yes[numbers] = second

    def _member(self, number: int, members: Reals) -> None:
        """Search in a set for the least number that x does not exceed, then ask for x >= that."""
        yes, no = self.yes[number], self.no[number]
        at = np.array([number])
        checks = self._added(np.repeat(at, members.size), -members, np.full(members.size, yes))

        def search(low: int, high: int) -> int:
            """The node from which a row that lies in the intervals `low` to `high` goes on."""
            if low == high:
                return int(checks[low]) if low < members.size else int(no)
            middle = (low + high) // 2
            found = self._added(at, members[middle : middle + 1], np.array([0]), negated=False)[0]
            self.yes[found], self.no[found] = search(low, middle), search(middle + 1, high)
            return int(found)

        if members.size == 0:
            self.thresholds[number] = np.nan
            return
        root = search(0, members.size)
        self.thresholds[number] = self.thresholds[root]
        self.yes[number], self.no[number] = self.yes[root], self.no[root]

    def _added(
        self, numbers: Whole, thresholds: Reals, yes: Whole, *, negated: bool = True
    ) -> Whole:
        """More nodes, which ask the features of others, and go where these go where they do not
        hold; their numbers.
        """
        start = self.yes.size
        variants = self.variants[numbers] + (FeatureForm.NEGATED if negated else 0)
        self.features = np.concatenate([self.features, self.features[numbers]])
        self.thresholds = np.concatenate(
            [self.thresholds, thresholds.astype(self.thresholds.dtype)]
        )
        self.variants = np.concatenate([self.variants, variants])
        self.yes = np.concatenate([self.yes, yes])
        self.no = np.concatenate([self.no, self.no[numbers]])
        return np.arange(start, self.yes.size)


def _just_below(numbers: Reals) -> Reals:
    """The largest number less than each; NaN, to which nothing compares, where there is none."""
    with np.errstate(invalid="ignore"):
        below: Reals = np.nextafter(numbers, numbers.dtype.type(-np.inf))
    return np.where(np.isneginf(numbers), numbers.dtype.type(np.nan), below)


def _laid_out(made: _Comparisons, leaves: Whole, roots: Whole, width: int) -> Records:
    """Level by level, so that what most rows come by stands close together."""
    depth = _depth(made, leaves, roots)
    pairs = np.full(leaves.size, -1, np.int64)
    level, levels, count = roots, [roots], roots.size
    while level.size:
        inner = level[(leaves[level] < 0) & (pairs[level] < 0)]
        first = np.sort(np.unique(inner, return_index=True)[1])
        inner = inner[first]
        pairs[inner] = count + 2 * np.arange(inner.size)
        level = np.stack([made.no[inner], made.yes[inner]], axis=1).reshape(-1)
        levels.append(level)
        count += level.size
    order = np.concatenate(levels)
    ends = leaves[order] >= 0
    read = np.unique(made.variants[order[~ends]])
    used = tuple(map(FeatureForm, read)) or (FeatureForm.PLAIN,)
    slot = np.zeros(len(FeatureForm), np.int64)
    slot[list(used)] = np.arange(len(used))
    features = made.features[order] + width * slot[made.variants[order]]
    nan = made.thresholds.dtype.type(np.nan)
    return Records(
        np.where(ends, leaves[order], features).astype(np.int32),
        np.where(ends, nan, made.thresholds[order]),
        np.where(ends, np.arange(count), pairs[order]).astype(np.int32),
        depth,
        used,
    )


def _depth(made: _Comparisons, leaves: Whole, roots: Whole) -> int:
    """Steps to the leaf that is farthest from its root."""
    level, depth = np.unique(roots), 0
    while (inner := level[leaves[level] < 0]).size:
        if depth == DEEPEST:
            raise NotSupported(f"a tree is deeper than {DEEPEST}")
        level = np.unique(np.concatenate([made.yes[inner], made.no[inner]]))
        depth += 1
    return depth
