"""Recognise Attention where a model spells it out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ...tir.sizes import Size
from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode
from ..ops.arithmetic import Add
from ..ops.attention import Attention
from ..ops.logic import Equal, IsNaN, Where
from ..ops.matmul import MatMul
from ..ops.movement import Reshape, Transpose
from ..ops.reduction import ReduceMax
from ..ops.softmax import Softmax
from ..types import Splat, array_of
from .exchange import exchanged
from .heads import Located, factor, located

_FAR = -1e30  # of numbers that hide scores


@dataclass(frozen=True, slots=True)
class AttentionRecognition:
    """Replace nodes that compute attention by Attention.

    softmax(scale * q @ k' + mask) @ v   ->   Attention

    The scale may stand before or behind the product and the mask may be missing; one that chooses
    a number far below all scores is one that adds it. What is NaN in
    the softmax may be replaced by 0, or those of its rows that the mask hides whole. Transposes,
    reshapes and slices that bring the heads of q, k and v into place are left out, and so is the
    Transpose behind; what nobody reads any more is left to DeadCode. Scores that others read, too,
    are left alone, and so is an attention that reads what it or another one leaves out. A scale is
    taken into the keys, and rows are divided by their sum behind the product with the values: other
    roundings, for builds that are not strict.
    """

    keeps_rounding: ClassVar[bool] = False

    def __call__(self, graph: Graph) -> Graph:
        while found := {one.last.outputs[0]: one for one in _apart(_spelled(graph))}:
            inside = {value for one in found.values() for value in one.inside}
            graph = exchanged(graph, found, inside, _write)
        return graph


@dataclass(frozen=True, slots=True)
class _Guard:
    """What becomes 0 in a softmax. inside: the values on the way; nan: whether what is NaN does;
    mask: of which the rows do that are -inf throughout, "" for none.
    """

    inside: frozenset[str] = frozenset()
    nan: bool = False
    mask: str = ""


@dataclass(frozen=True, slots=True)
class _Hidden:
    """Which scores a number replaces that is far below all of them: those where a condition does
    not hold, or, where it says which are `hidden`, those where it does.
    """

    condition: str
    number: str
    hidden: bool


@dataclass(frozen=True, slots=True)
class _Spelled:
    """An attention that is spelled out.

    last: its last node; inside: all that its nodes compute; mask: "" where there is none; hidden:
    what a number replaces; guard: of its softmax; outer: whether its result has the heads in front
    of the places.
    """

    last: GraphNode
    inside: frozenset[str]
    parts: tuple[Located, Located, Located]
    mask: str
    hidden: _Hidden | None
    heads: int
    guard: _Guard
    outer: bool

    @property
    def read(self) -> set[str]:
        """What the operator, and what makes its mask, will read; "" where there is no mask."""
        condition = self.hidden.condition if self.hidden is not None else ""
        return {self.mask, condition, *(part.array for part in self.parts)}

    @property
    def left_out(self) -> frozenset[str]:
        """What is not computed any more."""
        return self.inside - set(self.last.outputs)


@dataclass(frozen=True, slots=True)
class _Scores:
    """What a softmax is taken of: scale * (a @ b) + mask, of which a number hides some. inside: the
    values on the way.
    """

    product: GraphNode
    scale: float
    mask: str
    inside: frozenset[str]
    hidden: _Hidden | None = None


def _apart(spelled: Iterable[_Spelled]) -> Iterator[_Spelled]:
    """Those that read nothing that they or others leave out, the first of two that share a node."""
    taken, left_out, read = set[str](), set[str](), set[str]()
    for one in spelled:
        missing = one.read & (one.left_out | left_out) or read & one.left_out
        if not missing and not one.inside & taken:
            taken |= one.inside
            left_out |= one.left_out
            read |= one.read
            yield one


def _spelled(graph: Graph) -> Iterator[_Spelled]:
    makers, readers = graph.producers, graph.consumers
    for node in graph.nodes:
        if not isinstance(node.op, MatMul) or graph.types[node.outputs[0]].rank != 4:
            continue
        softmax, guard = _softmax(graph, makers, node.inputs[0])
        scores = _seen(graph, makers, softmax.inputs[0]) if softmax is not None else None
        if softmax is None or scores is None or graph.types[softmax.outputs[0]].elements == 0:
            continue
        if guard.mask and guard.mask != scores.mask:
            continue
        inside = {
            *scores.inside,
            *guard.inside,
            softmax.outputs[0],
            node.inputs[0],
            node.outputs[0],
        }
        inner = inside - {node.outputs[0]}
        read = {value for v in inner for reader in readers[v] for value in reader.outputs}
        if not read <= inside or inner & set(graph.outputs):
            continue
        parts = _parts(graph, makers, scores, node.inputs[1])
        if parts is None:
            continue
        last = _turned(graph, readers, node)
        mask, heads = scores.mask, graph.types[node.outputs[0]].shape[1]
        if isinstance(heads, Size):
            continue
        inside.add(last.outputs[0])
        yield _Spelled(
            last, frozenset(inside), parts, mask, scores.hidden, heads, guard, last is node
        )


def _softmax(
    graph: Graph, makers: Mapping[str, GraphNode], value: str
) -> tuple[GraphNode | None, _Guard]:
    """The Softmax of rows that `value` is, and what becomes 0 in it."""
    guard = _Guard()
    node = makers.get(value)
    if node is not None and isinstance(node.op, Where):
        condition, zero, kept = node.inputs
        asked = makers.get(condition)
        if asked is None or not _is_everywhere(graph, zero, 0.0):
            return None, guard
        if asked.op == IsNaN() and asked.inputs == (kept,):
            guard = _Guard(frozenset({value, condition}), nan=True)
        elif (mask := _hiding(graph, makers, asked)) is not None:
            guard = _Guard(frozenset({value}), mask=mask)
        else:
            return None, guard
        node = makers.get(kept)
    same = node is not None and graph.types[node.outputs[0]] == graph.types[value]
    return (node if same and node and node.op == Softmax((3,)) else None), guard


def _hiding(graph: Graph, makers: Mapping[str, GraphNode], asked: GraphNode) -> str | None:
    """The mask of which a node asks whether the largest number of a row is -inf."""
    if not isinstance(asked.op, Equal):
        return None
    for value, number in (asked.inputs, asked.inputs[::-1]):
        node = makers.get(value)
        if node is not None and _is_everywhere(graph, number, -math.inf):
            (source, *_) = node.inputs
            return source if node.op == ReduceMax((graph.types[source].rank - 1,)) else None
    return None


def _is_everywhere(graph: Graph, value: str, number: float) -> bool:
    constant = graph.constants.get(value)
    return constant is not None and bool((array_of(constant) == number).all())


def _seen(graph: Graph, makers: Mapping[str, GraphNode], value: str) -> _Scores | None:
    """The scores that `value` is made of, and which of them a number hides."""
    node = makers.get(value)
    if node is None or not isinstance(node.op, Where):
        return _scores(graph, makers, value)
    condition, chosen, other = node.inputs
    for scores, number in ((chosen, other), (other, chosen)):
        same = graph.types[scores] == graph.types[value]
        found = _scores(graph, makers, scores) if same and _is_far(graph, number) else None
        if found is not None:
            hidden = _Hidden(condition, number, number == chosen)
            return replace(found, inside=found.inside | {value}, hidden=hidden)
    return None


def _is_far(graph: Graph, value: str) -> bool:
    """Whether a number is so far below all scores that each of them is lost when it is added."""
    constant = graph.constants.get(value)
    return constant is not None and bool(np.less_equal(array_of(constant), _FAR).all())


def _scores(
    graph: Graph, makers: Mapping[str, GraphNode], value: str, mask: str = ""
) -> _Scores | None:
    """The product, scale and mask that `value` is made of."""
    node = makers.get(value)
    if node is None:
        return None
    if isinstance(node.op, MatMul):
        stacked = all(graph.types[v].rank == 4 for v in node.inputs)
        return _Scores(node, 1.0, mask, frozenset({value})) if stacked else None
    if (scaled := factor(graph, node)) is not None:
        inner = _scores(graph, makers, scaled[0], mask)
        if inner is None or (inner.mask and not mask):
            return None  # the mask would be scaled, too
        return _Scores(inner.product, inner.scale * scaled[1], mask, inner.inside | {value})
    if isinstance(node.op, Add) and not mask:
        for summand, other in (node.inputs, node.inputs[::-1]):
            same = graph.types[summand] == graph.types[value]
            inner = _scores(graph, makers, summand, other) if same else None
            if inner is not None:
                return _Scores(inner.product, inner.scale, other, inner.inside | {value})
    return None


def _parts(
    graph: Graph, makers: Mapping[str, GraphNode], scores: _Scores, values: str
) -> tuple[Located, Located, Located] | None:
    """Where queries, keys and values lie; the scale of the scores is that of the queries."""
    queries, turned = scores.product.inputs
    stack = graph.types[scores.product.outputs[0]].shape[:2]
    operands = [graph.types[value] for value in (queries, turned, values)]
    if any(type_.rank != 4 or type_.shape[:2] != stack for type_ in operands):
        return None
    q = located(graph, makers, queries, "bhsd", scaled=True)
    k = located(graph, makers, turned, "bhds", scaled=True)
    v = located(graph, makers, values, "bhsd", scaled=False)
    if q is None or k is None or v is None:
        return None
    return Located(q.array, q.shape, q.heads, q.scale * k.scale * scores.scale), k, v


def _turned(graph: Graph, readers: Mapping[str, list[GraphNode]], node: GraphNode) -> GraphNode:
    """The Transpose that alone reads the product of a node and brings its heads behind the places;
    the node itself where there is none.
    """
    value = node.outputs[0]
    if value in graph.outputs or len(readers[value]) != 1:
        return node
    (reader,) = readers[value]
    return reader if reader.op == Transpose((0, 2, 1, 3)) else node


def _write(builder: GraphBuilder, one: _Spelled) -> None:
    """Add the operator in the place of the last node of what it replaces."""
    inputs = []
    for part in one.parts:
        same = builder.types[part.array].shape == part.shape
        view = part.array if same else builder.add(Reshape(part.shape), part.array)
        inputs.append(view)
    q, k, v = one.parts
    guards = {"guarded": one.guard.nan, "masked": bool(one.guard.mask)}
    op = Attention(one.heads, q.scale, q.heads, k.heads, v.heads, outer=one.outer, **guards)
    mask = _mask(builder, one)
    read = (*inputs, mask) if mask else tuple(inputs)
    builder.add_node(GraphNode(op, read, one.last.outputs, one.last.name))


def _mask(builder: GraphBuilder, one: _Spelled) -> str:
    """What is added to the scores; "" for nothing."""
    if one.hidden is None:
        return one.mask
    dtype = builder.types[one.hidden.number].dtype
    added = one.mask or builder.constant(builder.fresh("seen"), Splat(0.0, dtype, ()))
    choices = (one.hidden.number, added) if one.hidden.hidden else (added, one.hidden.number)
    return builder.add(Where(), one.hidden.condition, *choices)
