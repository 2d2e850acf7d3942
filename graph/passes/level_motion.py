"""Move bytes in place of the numbers that they stand for, where these become the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode, rebuilt
from ..ops.movement import Concat, Identity, Reshape, Transpose
from ..ops.pooling import MaxPool
from ..ops.slicing import Slice
from .dead_code import DeadCode
from .levels import LevelReader, Levels

_SCALES = 2.0**-100, 2.0**100
_MOVING = (Concat, Identity, MaxPool, Reshape, Slice, Transpose)


@dataclass(frozen=True, slots=True)
class LevelMotion:
    """Let operators that compute nothing new work on levels.

    rounded(move((b - z) * s) / s + z)   ->   move(b)

    where b has the type of the result, and s and z are the same constants there and here: Concat,
    MaxPool, Reshape, Slice, Transpose and none at all. s is so far from the ends of float32 that
    rounding gives b again. What others read, too, is left alone.
    """

    keeps_rounding: ClassVar[bool] = True

    def __call__(self, graph: Graph) -> Graph:
        found = {one.value: one for one in _moves(graph)}
        if not found:
            return graph
        builder = GraphBuilder.like(graph)
        for node in graph.nodes:
            one = found.get(node.outputs[0])
            if one is None:
                builder.add_node(node)
            else:
                _write(builder, one)
        result = builder.finish(graph.outputs)
        return DeadCode()(rebuilt(graph, result.nodes, result.constants))


@dataclass(frozen=True, slots=True)
class _Move:
    """Bytes that are moved: `steps` from `sources`, in order; all but the first have one input."""

    value: str
    sources: tuple[str, ...]
    steps: tuple[GraphNode, ...]


def _moves(graph: Graph) -> Iterator[_Move]:
    reader, readers = LevelReader(graph), graph.consumers
    for node in graph.nodes:
        value = node.outputs[0]
        rounded = reader.rounded(value)
        if rounded is None:
            continue
        steps, source = list[GraphNode](), rounded.source
        while (maker := reader.makers.get(source)) is not None and isinstance(maker.op, _MOVING):
            if source in graph.outputs or len(readers[source]) > 1:
                break
            steps.append(maker)
            if len(maker.inputs) > 1:
                break
            (source,) = maker.inputs
        sources = steps[-1].inputs if steps else (source,)
        levels = [reader.levels(one) for one in sources]
        own = Levels(value, rounded.scale, rounded.zero)
        if all(one is not None and _is_same(graph, reader, one, own) for one in levels):
            yield _Move(value, tuple(one.value for one in levels if one), tuple(steps[::-1]))


def _is_same(graph: Graph, reader: LevelReader, one: Levels, other: Levels) -> bool:
    """Whether two kinds of levels are the same: of one type, with equal constants."""
    if graph.types[one.value].dtype != graph.types[other.value].dtype:
        return False
    scales = [reader.known(levels.scale) for levels in (one, other)]
    zeros = [reader.known(levels.zero) if levels.zero else np.zeros(()) for levels in (one, other)]
    numbers = [*scales, *zeros]
    if any(array is None or array.size != 1 for array in numbers):
        return False
    r, s, p, q = (float(array.reshape(())) for array in numbers if array is not None)
    return r == s and _SCALES[0] <= s <= _SCALES[1] and p == q


def _write(builder: GraphBuilder, one: _Move) -> None:
    inputs, name = one.sources, one.value
    for n, step in enumerate(one.steps):
        output = name if n == len(one.steps) - 1 else builder.fresh(f"{step.outputs[0]}.levels")
        builder.add_node(GraphNode(step.op, inputs, (output,), step.name))
        inputs = (output,)
    if not one.steps:
        builder.add_node(GraphNode(Identity(), inputs, (name,)))
