"""Compare a graph with what a pass made of it, on random data, where they differ.

A pass keeps names honest: a value that both graphs name is the same value. So the check takes the
nodes that are not in both graphs, its region, feeds random numbers to the values that they read,
evaluates both sides in float64 and compares every value that both sides compute. A rewrite may rest
on more than it touches (two equal nodes were merged; an input is never negative), so where the
sides differ the region takes in the nodes before it and the comparison is repeated, until the sides
agree or the region begins at the model's inputs.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .effort import check_within, effort
from .ir import Graph, Node, make_graph
from .ops.base import Operator, Work
from .reference import computed
from .types import Array, TensorType, array_of, bits_of

# folding rounds each weight once to the graph's dtype; a sum of products is off by some of these
ALLOWED_ULPS = 64
ALLOWED_FLOAT64 = 1e-11
_PIECE = 1 << 20  # elements that are compared at a time


@dataclass(frozen=True, slots=True)
class Comparison:
    """How far two graphs differ.

    values: number of values compared; error: the largest |before - after| / max|before|, inf where
    one is NaN or of another type; allowed: what rounding explains; worst: the value with the
    largest error.
    """

    values: int
    error: float
    allowed: float
    worst: str

    @property
    def equal(self) -> bool:
        """Whether the error is explained by rounding."""
        return self.error <= self.allowed


def compare(
    before: Graph, after: Graph, *, seed: int = 0, limits: Work | None = None
) -> Comparison:
    """Evaluate the nodes in which two graphs differ and compare what both compute.

    limits: what that may take. Raises: TooLarge where it takes more.
    """
    if retyped := [
        name
        for name in after.types
        if before.types.get(name, after.types[name]) != after.types[name]
    ]:
        return Comparison(len(retyped), float("inf"), 0.0, retyped[0])
    region = _differing(before, after)
    while True:
        if limits is not None:
            check_within(_effort(before, after, region), limits)
        result = _compared(before, after, region, seed)
        wider = _widened(before, after, region)
        if result.equal or len(wider) == len(region):
            return result
        region = wider


def _effort(before: Graph, after: Graph, region: Region) -> Work:
    """What evaluating a region takes on both sides, value by value in turns."""
    sides = [effort(_inside(graph, region), graph.types) for graph in (before, after)]
    return Work(max(side.held for side in sides), sum(side.steps for side in sides))


def _compared(before: Graph, after: Graph, region: Region, seed: int) -> Comparison:
    names = [
        value for node in _inside(before, region) for value in node.outputs if value in after.types
    ]
    feeds = _feeds(before, after, region, seed)
    kinds = {type_.dtype for type_ in before.types.values() if type_.is_float}
    ulp = max((float(np.finfo(kind).eps) for kind in kinds), default=0.0)
    allowed = max(ALLOWED_ULPS * ulp, ALLOWED_FLOAT64)
    with np.errstate(all="ignore"):
        errors = dict(_errors(before, after, region, feeds, names))
    worst = max(errors, key=lambda name: errors[name], default="")
    return Comparison(len(names), errors.get(worst, 0.0), allowed, worst)


class _Signature(NamedTuple):
    """What makes nodes of two graphs the same: constants count by bits, not by names."""

    op: Operator
    inputs: tuple[Hashable, ...]
    outputs: tuple[str, ...]


Region = frozenset[_Signature]


def _signature(graph: Graph, node: Node) -> _Signature:
    inputs = tuple(
        bits_of(graph.constants[value]) if value in graph.constants else value
        for value in node.inputs
    )
    return _Signature(node.op, inputs, node.outputs)


def _differing(before: Graph, after: Graph) -> Region:
    """The nodes that are not in both graphs, and the shared ones that only the new side's read."""
    old, new = ({_signature(graph, node) for node in graph.nodes} for graph in (before, after))
    region = frozenset(old ^ new)
    producers = after.producers
    while True:
        fresh = _boundary(after, region) - _boundary(before, region)
        grown = {_signature(after, producers[value]) for value in fresh if value in producers}
        if not grown - region:
            return region
        region |= grown


def _widened(before: Graph, after: Graph, region: Region) -> Region:
    """The region with the nodes that compute what it reads."""
    for graph in (before, after):
        producers = graph.producers
        read = _boundary(graph, region)
        region |= {_signature(graph, producers[value]) for value in read if value in producers}
    return region


def _inside(graph: Graph, region: Region) -> list[Node]:
    return [node for node in graph.nodes if _signature(graph, node) in region]


def _boundary(graph: Graph, region: Region) -> set[str]:
    """The values that the region reads and does not compute, without constants."""
    nodes = _inside(graph, region)
    computed = {value for node in nodes for value in node.outputs}
    read = {value for node in nodes for value in node.inputs}
    return read - computed - set(graph.constants)


def _feeds(before: Graph, after: Graph, region: Region, seed: int) -> dict[str, Array]:
    generator = np.random.default_rng(seed)
    types = {
        name: graph.types[name] for graph in (before, after) for name in _boundary(graph, region)
    }
    return {name: _random(types[name], generator) for name in sorted(types)}


def _random(type_: TensorType, generator: np.random.Generator) -> Array:
    if type_.is_float:
        return generator.standard_normal(type_.shape)
    high = 2 if type_.dtype == "bool" else 100
    return generator.integers(0, high, type_.shape).astype(type_.dtype)


def _errors(
    before: Graph, after: Graph, region: Region, feeds: dict[str, Array], names: list[str]
) -> Iterator[tuple[str, float]]:
    """Each name with its error. Both sides are computed side by side, so that what was compared is
    dropped while the rest is still to come.
    """
    folded = {name: after.constants[name] for name in names if name in after.constants}
    others = _values(after, region, feeds, [name for name in names if name not in folded])
    ahead: dict[str, Array] = {}
    for name, expected in _values(before, region, feeds, names):
        while name not in ahead and name not in folded:
            ahead.update((next(others),))
        got = array_of(folded[name]) if name in folded else ahead.pop(name)
        yield name, _error(expected, got)
        del expected, got


def _values(
    graph: Graph, region: Region, feeds: dict[str, Array], names: list[str]
) -> Iterator[tuple[str, Array]]:
    """The named values, each when it is computed."""
    inputs = {
        name: graph.types[name]
        for name in feeds
        if name in graph.types and name not in graph.constants
    }
    part = make_graph(graph.name, inputs, names, _inside(graph, region), graph.constants)
    return computed(part, {name: feeds[name] for name in inputs}, names, dtype="float64")


def _error(expected: Array, got: Array) -> float:
    """The largest |expected - got| over max |expected|, in pieces: some values are most of a
    model.
    """
    if not np.issubdtype(expected.dtype, np.floating):
        return 0.0 if np.array_equal(expected, got) else float("inf")
    difference = scale = 0.0
    for wanted, found in zip(_pieces(expected), _pieces(got), strict=True):
        finite = np.isfinite(wanted)
        if not np.array_equal(wanted[~finite], found[~finite], equal_nan=True):
            return float("inf")
        if np.isnan(found[finite]).any():
            return float("inf")
        numbers = np.where(finite, wanted, 0.0)
        apart = np.subtract(numbers, np.where(finite, found, 0.0))
        difference = max(difference, float(np.abs(apart).max()))
        scale = max(scale, float(np.abs(numbers).max()))
    return difference / scale if scale > 0 else difference


def _pieces(array: Array) -> Iterator[Array]:
    """The array in slices of its first axis that has more than one element; none if it is empty."""
    rows = np.atleast_1d(np.squeeze(array))
    if rows.size:
        step = max(1, _PIECE * len(rows) // rows.size)
        for start in range(0, len(rows), step):
            yield rows[start : start + step]
