"""Read keys and values that several heads share once, not a copy for each head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode
from ..ops.attention import Attention, Heads
from ..ops.movement import Reshape
from ..ops.repetition import Expand
from ..types import Shape
from .exchange import exchanged

_OUTER = Heads(outer=True)


@dataclass(frozen=True, slots=True)
class SharedHeads:
    """The queries of heads that share keys and values become rows of one head.

    Attention[32 heads](q, k and v of 8 heads, each of which is there 4 times)
    ->  Reshape(Attention[8 heads](Reshape(q), k, v)), where a head has 4 times as many rows

    The heads stand in front of the places, or there is one row for each; and a mask hides the same
    of all rows and heads. What nobody reads any more is left to DeadCode.
    """

    keeps_rounding: ClassVar[bool] = True

    def __call__(self, graph: Graph) -> Graph:
        makers = graph.producers
        shared = (_shared(graph, makers, node) for node in graph.nodes)
        found = {one.node.outputs[0]: one for one in shared if one is not None}
        return exchanged(graph, found, (), _write) if found else graph


@dataclass(frozen=True, slots=True)
class _Shared:
    """An attention of which `heads` have keys and values of their own: the shape to see its queries
    in, keys and values with theirs, and the shape of its result.
    """

    node: GraphNode
    op: Attention
    heads: int
    queries: Shape
    operands: tuple[tuple[str, Shape], ...]
    result: Shape


def _shared(graph: Graph, makers: Mapping[str, GraphNode], node: GraphNode) -> _Shared | None:
    op = node.op
    if not isinstance(op, Attention) or (op.key, op.value) != (_OUTER, _OUTER):
        return None
    batch, heads, rows, depth = op.query.shape(graph.types[node.inputs[0]].shape)
    in_front = op.query.outer and op.outer
    if heads != op.heads or op.query.first or not (in_front or rows == 1):
        return None
    around = (1, 1, 1, *graph.types[node.inputs[3]].shape)[-3:-1] if node.inputs[3:] else (1, 1)
    operands = [_once(graph, makers, value, op.heads) for value in node.inputs[1:3]]
    known = [one for one in operands if one is not None]
    if around != (1, 1) or len(known) < 2 or known[0][1][1] != known[1][1][1]:
        return None
    own = known[0][1][1]
    assert isinstance(own, int)
    queries = (batch, own, rows * (op.heads // own), depth)
    return _Shared(node, op, own, queries, tuple(known), graph.types[node.outputs[0]].shape)


def _once(
    graph: Graph, makers: Mapping[str, GraphNode], value: str, heads: int
) -> tuple[str, Shape] | None:
    """What `value`, [batch, heads, place, depth], has several times, and the shape to see it in:
    [batch, its heads, place, depth]; None where each head is there once.
    """
    node = makers.get(value)
    while node is not None and isinstance(node.op, Reshape):
        node = makers.get(node.inputs[0])
    if node is None or not isinstance(node.op, Expand):
        return None
    made, source = graph.types[node.outputs[0]].shape, graph.types[node.inputs[0]].shape
    batch, _, places, depth = graph.types[value].shape
    if len(made) != 5 or len(source) != 5 or (made[0], *made[3:]) != (batch, places, depth):
        return None
    own = made[1]
    fits = isinstance(own, int) and own * made[2] == heads and own < heads
    once = (batch, own, places, depth)
    return (node.inputs[0], once) if fits and source == (*once[:2], 1, *once[2:]) else None


def _write(builder: GraphBuilder, one: _Shared) -> None:
    q = builder.add(Reshape(one.queries), one.node.inputs[0])
    k, v = (builder.add(Reshape(shape), value) for value, shape in one.operands)
    op = replace(one.op, heads=one.heads, query=_OUTER, outer=True)
    made = builder.add(op, q, k, v, *one.node.inputs[3:])
    builder.add_node(GraphNode(Reshape(one.result), (made,), one.node.outputs, one.node.name))
