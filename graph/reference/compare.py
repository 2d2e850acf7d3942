"""Compare a graph with what a pass made of it, on random data, where they differ.

A pass keeps names honest: a value that both graphs name is the same value. So the check takes the
nodes that are not in both graphs, its region, feeds random numbers to the values that they read,
evaluates both sides in float64 and compares every value that both sides compute. What was compared,
the new side goes on with as the old one has it: each value is held against what stands right before
it, and a level next to a tie, which may go either way, does so in no layer behind.

A rewrite may rest on more than it touches (two equal nodes were merged; an input is never
negative), so where values differ, the comparison of these is repeated with the nodes before them,
until they agree or the region begins at the model's inputs. Nodes that take little beside the first
region are tried before that, all the way: a mask is often all that matters, and the layer before it
is not computed. Values that differed and then agree on nothing but zeros have shown nothing yet.

In float64 nothing of a rewrite rounds but the constants that it makes, each once, to its own type.
A rewrite that makes none may take those that it drops for what they were rounded from: Gelu divides
by the root of 2, its spelling in a model by 1.41421354. Where the sides differ by more than half of
a last place, how far that carries is measured: the new side, or the old one where constants were
dropped alone, is evaluated again with each element of these constants off by half of its last
place, once all of them up, once up or down at random, and the sides may differ by ROUNDINGS times
as much as that changes. A rewrite that neither makes nor drops a constant has nothing that rounds.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable, Iterator, Set
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ...driver.check.data import random_array
from ...tir.dtype import FLOAT64, dtype
from ...tir.reference.roundings import precision
from ...tir.sizes import closed_shape
from ..ir.ir import Graph, GraphNode, make_graph
from ..ops.base import Operator, ReferenceWork
from ..types import (
    Array,
    Constant,
    TensorType,
    array_of,
    bits_of,
    numpy_type,
)
from .effort import CHECK_STEPS, TooLarge, check_within, effort
from .reference import StepBudget, computed

ROUNDINGS = 8  # halves of a last place: a constant that is folded step by step has some
ALLOWED_FLOAT64 = 1e-11  # of the largest element: sums in another order
_MOST_RUNS = 1 << 14  # of regions
_PIECE = 1 << 20  # elements that are compared at a time
_LITTLE = 64  # of so many parts of what a region takes one is little


@dataclass(frozen=True, slots=True)
class GraphDifference:
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
    before: Graph, after: Graph, *, seed: int = 0, limits: ReferenceWork | None = None
) -> GraphDifference:
    """Evaluate the nodes in which two graphs differ and compare what both compute.

    limits: what that may take. Raises: TooLarge where it takes more.
    """
    if retyped := [
        name
        for name in after.types
        if before.types.get(name, after.types[name]) != after.types[name]
    ]:
        return GraphDifference(len(retyped), float("inf"), 0.0, retyped[0])
    region = _differing(before, after)
    _check(before, after, region, limits)
    found = _compared(before, after, region, seed)
    values, doubted = len(found.errors), found.differing
    if not doubted:
        return found.summary(values)
    again = found
    for wider in _wider(before, after, _computing(before, after, region, doubted), limits):
        again = _compared(before, after, wider, seed, doubted)
        if not again.differing and not again.zeros:
            break
    return again.summary(values) if again.differing else found.corrected(again).summary(values)


def _wider(
    before: Graph, after: Graph, region: Region, limits: ReferenceWork | None
) -> Iterator[Region]:
    """A region with all that take little before it; then with one step more of anything each time,
    up to the inputs. Raises: TooLarge.
    """
    little = _with_little(before, after, region)
    if little != region and _is_within(before, after, little, limits):
        yield little
    while (wider := region | _before(before, after, region, None)) != region:
        region = wider
        _check(before, after, region, limits)
        yield region


def _check(before: Graph, after: Graph, region: Region, limits: ReferenceWork | None) -> None:
    if limits is not None:
        check_within(_effort(before, after, region), limits)


def _is_within(before: Graph, after: Graph, region: Region, limits: ReferenceWork | None) -> bool:
    try:
        _check(before, after, region, limits)
    except TooLarge:
        return False
    return True


def _effort(before: Graph, after: Graph, region: Region) -> ReferenceWork:
    """What evaluating a region takes on both sides, value by value in turns."""
    sides = [effort(_inside(graph, region), graph.types) for graph in (before, after)]
    return ReferenceWork(max(side.held for side in sides), sum(side.steps for side in sides))


class _Error(NamedTuple):
    """How far a value is off, and whether it holds nothing but zeros before the rewrite."""

    name: str
    error: float
    is_zero: bool


class _Errors(NamedTuple):
    """Those of the values of a region, by name, and what rounding explains."""

    errors: dict[str, _Error]
    allowed: float

    @property
    def differing(self) -> frozenset[str]:
        """The values that rounding does not explain."""
        return frozenset(n for n, one in self.errors.items() if one.error > self.allowed)

    @property
    def zeros(self) -> frozenset[str]:
        """The values that hold nothing but zeros."""
        return frozenset(n for n, one in self.errors.items() if one.is_zero)

    def corrected(self, again: _Errors) -> _Errors:
        """With those that a wider region has shown to be equal."""
        return _Errors(self.errors | again.errors, max(self.allowed, again.allowed))

    def summary(self, values: int) -> GraphDifference:
        """The largest. values: how many were compared."""
        worst = max(self.errors.values(), key=lambda one: one.error, default=_Error("", 0.0, False))
        return GraphDifference(values, worst.error, self.allowed, worst.name)


class _Side(NamedTuple):
    """The nodes of one graph that are in the region, and the graph that defines what they read."""

    graph: Graph
    nodes: list[GraphNode]


def _compared(
    before: Graph, after: Graph, region: Region, seed: int, doubted: Set[str] | None = None
) -> _Errors:
    """How far the sides of a region differ. doubted: the values that matter; None: all."""
    old, new = (_Side(graph, _inside(graph, region)) for graph in (before, after))
    known = {value for node in new.nodes for value in node.outputs} | after.constants.keys()
    names = [value for node in old.nodes for value in node.outputs if value in known]
    feeds = _feeds(before, after, region, seed)
    with np.errstate(all="ignore"):
        found = {
            one.name: one
            for one in _errors(old, new, feeds, names)
            if doubted is None or one.name in doubted
        }
        made = _made(before, new, names)
        halves = (half_last_place(array.dtype) for array in made.values())
        allowed = max([ALLOWED_FLOAT64, *halves])
        more = max((one.error for one in found.values() if one.error < np.inf), default=0) - allowed
        if more > 0:
            side, rounded = (new, made) if made else (old, _dropped(old, new))
            allowed += _rounding(side, rounded, feeds, names, seed, more)
    return _Errors(found, allowed)


def _made(before: Graph, new: _Side, names: list[str]) -> dict[str, Array]:
    """The constants of floats that a rewrite made: those that the region reads, or that stand for
    what it computed, and that the graph before has not.
    """
    known = {bits_of(constant) for constant in before.constants.values()}
    used = {value for node in new.nodes for value in node.inputs} | set(names)
    return {
        name: array_of(constant)
        for name, constant in new.graph.constants.items()
        if name in used and new.graph.types[name].is_float and bits_of(constant) not in known
    }


def _dropped(old: _Side, new: _Side) -> dict[str, Array]:
    """The constants of floats that the old side reads and the new one does not, unless they are
    what they say: 1, 0.5 or 3 was rounded from nothing.
    """
    kept = {bits_of(constant) for constant in _read(new).values()}
    return {
        name: array_of(constant)
        for name, constant in _read(old).items()
        if old.graph.types[name].is_float
        and bits_of(constant) not in kept
        and not _is_short(array_of(constant))
    }


def _is_short(array: Array) -> bool:
    """Whether half of the significand is enough for each element."""
    bits = int(-np.log2(half_last_place(array.dtype))) // 2
    fraction, _ = np.frexp(array.astype(np.float64))
    scaled = np.ldexp(fraction, bits)
    return bool(np.all(scaled == np.rint(scaled)))


def _read(side: _Side) -> dict[str, Constant]:
    """The constants that a side reads."""
    used = {value for node in side.nodes for value in node.inputs}
    return {name: value for name, value in side.graph.constants.items() if name in used}


def _rounding(
    side: _Side,
    rounded: dict[str, Array],
    feeds: dict[str, Array],
    names: list[str],
    seed: int,
    more: float,
) -> float:
    """What is allowed because these constants may be off by half of their last place: so much as
    that changes values, several times. What is infinite or NaN on one side alone is no rounding.
    more: what would be enough.
    """
    if not rounded:
        return 0.0
    rest = {name: value for name, value in side.graph.constants.items() if name not in rounded}
    loose = _Side(replace(side.graph, constants=rest), side.nodes)
    most = 0.0
    for up in (True, False):
        off = {name: _off(array, up, seed) for name, array in rounded.items()}
        errors = _errors(side, loose, {**feeds, **off}, names)
        changes = [ROUNDINGS * one.error for one in errors if one.error < np.inf]
        most = max([most, *changes])
        if most >= more:
            break
    return most


def _off(array: Array, up: bool, seed: int) -> Array:
    """Every element off by half of its last place at most, in float64."""
    signs = np.random.default_rng(seed).integers(0, 2, array.shape) * 2 - 1
    half = half_last_place(array.dtype)
    wide: Array = array.astype(np.float64) * (1 + half * (1 if up else signs))
    return wide


def half_last_place(kind: np.dtype[np.generic]) -> float:
    """By which share of a number rounding it to a type of floats may change it."""
    return 2.0 ** -precision(dtype(kind))


class _Signature(NamedTuple):
    """What makes nodes of two graphs the same: constants count by bits, not by names."""

    op: Operator
    inputs: tuple[Hashable, ...]
    outputs: tuple[str, ...]


Region = frozenset[_Signature]
_Values = Generator[tuple[str, Array], Array | None, None]


def _signature(graph: Graph, node: GraphNode) -> _Signature:
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


def _computing(before: Graph, after: Graph, region: Region, doubted: Set[str]) -> Region:
    """What of a region computes these values from others that a rewrite computes anew and both
    sides name.
    """
    sides = [(graph, _inside(graph, region)) for graph in (before, after)]
    old, new = ({_signature(graph, node) for node in nodes} for graph, nodes in sides)
    agreed = {value for one in old - new for value in one.outputs if value in after.types}
    found = set[_Signature]()
    for graph, nodes in sides:
        needed = set(doubted)
        for node in reversed(nodes):
            if not needed.isdisjoint(node.outputs):
                found.add(_signature(graph, node))
                needed.update(value for value in node.inputs if value not in agreed)
    return frozenset(found)


def _with_little(before: Graph, after: Graph, region: Region) -> Region:
    """The region with the nodes that compute what it reads and take little, and what these read in
    turn.
    """
    little = _effort(before, after, region).steps // _LITTLE
    grown = region
    while cheap := _before(before, after, grown, little) - grown:
        grown |= cheap
    return grown


def _before(before: Graph, after: Graph, region: Region, steps: int | None) -> Region:
    """The nodes that compute what the region reads. steps: the most that one may take; None: any
    number.
    """
    found = set()
    for graph in (before, after):
        producers = graph.producers
        for node in {producers[v] for v in _boundary(graph, region) if v in producers}:
            if steps is None or effort((node,), graph.types).steps <= steps:
                found.add(_signature(graph, node))
    return frozenset(found)


def _inside(graph: Graph, region: Region) -> list[GraphNode]:
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
    shape = closed_shape(type_.shape)
    if type_.is_float:
        return random_array(generator, FLOAT64, shape)
    high = 2 if type_.dtype == "bool" else 100
    return generator.integers(0, high, shape).astype(numpy_type(type_.dtype))


def _errors(old: _Side, new: _Side, feeds: dict[str, Array], names: list[str]) -> Iterator[_Error]:
    """The error of each name, as far as what computes it brings it in: what was compared, the new
    side goes on with as the old one has it. Both are computed side by side, so that what was
    compared is dropped while the rest is still to come.
    """
    constants = new.graph.constants
    others = _values(new, feeds, [name for name in names if name not in constants])
    next_one, ahead = _resume(others, None), dict[str, Array]()
    for name, expected in _values(old, feeds, names):
        if name in constants:
            yield _error(name, expected, array_of(constants[name]))
            continue
        ahead[name] = expected
        while next_one is not None and next_one[0] in ahead:
            value, got = next_one
            wanted = ahead.pop(value)
            yield _error(value, wanted, got)
            del got
            next_one = _resume(others, wanted)
            del wanted
        del expected


def _resume(values: _Values, sent: Array | None) -> tuple[str, Array] | None:
    """The next value; None where there is none."""
    try:
        return values.send(sent)
    except StopIteration:
        return None


def _error(name: str, expected: Array, got: Array) -> _Error:
    return _Error(name, relative_error(expected, got), not expected.any())


def _values(side: _Side, feeds: dict[str, Array], names: list[str]) -> _Values:
    """The named values, each when it is computed; what is sent back stands for it from then on."""
    graph = side.graph
    inputs = {
        name: graph.types[name]
        for name in feeds
        if name in graph.types and name not in graph.constants
    }
    part = make_graph(graph.name, inputs, names, side.nodes, graph.constants)
    given = {name: feeds[name] for name in inputs}
    # random data may tell a loop to run for ever
    budget = StepBudget(CHECK_STEPS, _MOST_RUNS)
    return computed(part, given, names, dtype="float64", budget=budget)


def relative_error(expected: Array, got: Array) -> float:
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


def relative_rms(got: Array, expected: Array) -> float:
    """The root mean square of got - expected over that of expected, where both are finite; 0 where
    that has no element.
    """
    found, wanted = got.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(found) & np.isfinite(wanted)
    scale = float(np.square(wanted[finite]).sum())
    apart = float(np.square(found[finite] - wanted[finite]).sum())
    return float(np.sqrt(apart / scale)) if scale > 0 else float(np.sqrt(apart))


def _pieces(array: Array) -> Iterator[Array]:
    """The array in slices of its first axis that has more than one element; none if it is empty."""
    rows = np.atleast_1d(np.squeeze(array))
    if rows.size:
        step = max(1, _PIECE * len(rows) // rows.size)
        for start in range(0, len(rows), step):
            yield rows[start : start + step]
