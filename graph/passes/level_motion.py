"""Move bytes in place of the numbers that they stand for, where these become the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...tir.sizes import largest
from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode
from ..ops.gathering import Gather
from ..ops.movement import Concat, Identity, Reshape, Transpose
from ..ops.pooling import MaxPool
from ..ops.slicing import Slice
from .dead_code import DeadCode
from .exchange import exchanged
from .levels import LevelReader, Levels, RoundedLevels, has_bytes

_SCALES = 2.0**-100, 2.0**100
_INVERSE = 2.0**-22  # by how much r * (1 / r) may be off 1: 255 of it is far from half a level
MOVING = (Concat, Identity, MaxPool, Reshape, Slice, Transpose)  # they compute no new numbers


@dataclass(frozen=True, slots=True)
class LevelMotion:
    """Let operators that compute nothing new work on levels.

    rounded(move((b - z) * s) / s + z)   ->   move(b), or with * (1 / s) in place of / s
    gather((b - z) * s)                  ->   (gather(b) - z) * s

    In the first one b has the type of the result, and s and z are the same constants there and
    here: Concat, MaxPool, Reshape, Slice, Transpose and none at all; s is so far from the ends of
    float32 that rounding gives b again; what others read, too, is left alone. In the second one s
    and z are one number each, and fewer elements are read than there are: the rows of a table.
    """

    keeps_rounding: ClassVar[bool] = True
    concerns = staticmethod(has_bytes)

    def __call__(self, graph: Graph) -> Graph:
        found: dict[str, _Move | _Row] = {one.value: one for one in _moves(graph)}
        found |= {one.node.outputs[0]: one for one in _rows(graph)}
        if not found:
            return graph
        return DeadCode()(exchanged(graph, found, (), _write))


@dataclass(frozen=True, slots=True)
class _Move:
    """Bytes that are moved: `steps` from `sources`, in order; all but the first have one input."""

    value: str
    sources: tuple[str, ...]
    steps: tuple[GraphNode, ...]


@dataclass(frozen=True, slots=True)
class _Row:
    """A Gather from numbers that levels stand for, by the nodes that make these of them, the Cast
    first.
    """

    node: GraphNode
    makers: tuple[GraphNode, ...]


def _rows(graph: Graph) -> Iterator[_Row]:
    reader, types = LevelReader(graph), graph.types
    for node in graph.nodes:
        levels = reader.levels(node.inputs[0]) if isinstance(node.op, Gather) else None
        if levels is None:
            continue
        alone = all(types[v].elements == 1 for v in (levels.scale, levels.zero) if v)
        fewer = largest(types[node.outputs[0]].elements) < largest(types[levels.value].elements)
        if alone and fewer:
            makers, value = list[GraphNode](), node.inputs[0]
            while value != levels.value:
                makers.append(reader.makers[value])
                value = next(v for v in makers[-1].inputs if types[v].shape == types[value].shape)
            yield _Row(node, tuple(makers[::-1]))


def _write_row(builder: GraphBuilder, row: _Row) -> None:
    (last,) = row.node.outputs
    value = builder.fresh(f"{last}.levels")
    inputs = (row.makers[0].inputs[0], *row.node.inputs[1:])
    builder.add_node(GraphNode(row.node.op, inputs, (value,), row.node.name))
    read = row.makers[0].inputs[0]
    for n, maker in enumerate(row.makers):
        output = last if n == len(row.makers) - 1 else builder.fresh(f"{last}.levels")
        given = tuple(value if one == read else one for one in maker.inputs)
        builder.add_node(GraphNode(maker.op, given, (output,), row.node.name))
        read, value = maker.outputs[0], output


def _moves(graph: Graph) -> Iterator[_Move]:
    reader, readers = LevelReader(graph), graph.consumers
    for node in graph.nodes:
        value = node.outputs[0]
        rounded = reader.rounded(value)
        if rounded is None:
            continue
        steps, source = list[GraphNode](), rounded.source
        while (maker := reader.makers.get(source)) is not None and isinstance(maker.op, MOVING):
            if source in graph.outputs or len(readers[source]) > 1:
                break
            steps.append(maker)
            if len(maker.inputs) > 1:
                break
            (source,) = maker.inputs
        sources = steps[-1].inputs if steps else (source,)
        levels = [reader.levels(one) for one in sources]
        if all(one is not None and _is_same(graph, reader, one, value, rounded) for one in levels):
            yield _Move(value, tuple(one.value for one in levels if one), tuple(steps[::-1]))


def _is_same(
    graph: Graph, reader: LevelReader, one: Levels, value: str, other: RoundedLevels
) -> bool:
    """Whether levels are those to which `value` is rounded: of one type, with equal constants."""
    if graph.types[one.value].dtype != graph.types[value].dtype:
        return False
    scales = [reader.known(levels.scale) for levels in (one, other)]
    zeros = [reader.known(levels.zero) if levels.zero else np.zeros(()) for levels in (one, other)]
    numbers = [*scales, *zeros]
    if any(array is None or array.size != 1 for array in numbers):
        return False
    r, s, p, q = (float(array.reshape(())) for array in numbers if array is not None)
    if not _SCALES[0] <= r <= _SCALES[1]:
        return False
    return p == q and (abs(r * s - 1) <= _INVERSE if other.is_inverse else r == s)


def _write(builder: GraphBuilder, one: _Move | _Row) -> None:
    if isinstance(one, _Row):
        _write_row(builder, one)
    else:
        _write_move(builder, one)


def _write_move(builder: GraphBuilder, one: _Move) -> None:
    inputs, name = one.sources, one.value
    for n, step in enumerate(one.steps):
        output = name if n == len(one.steps) - 1 else builder.fresh(f"{step.outputs[0]}.levels")
        builder.add_node(GraphNode(step.op, inputs, (output,), step.name))
        inputs = (output,)
    if not one.steps:
        builder.add_node(GraphNode(Identity(), inputs, (name,)))
