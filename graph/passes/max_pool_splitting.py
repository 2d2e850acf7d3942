"""Find the maxima of windows along one axis after the other, where that is less work."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode, rebuilt
from ..ops.pooling import MaxPool

GATHER = 4.0  # steps of a window that moves along a row of pixels in steps of several
STORE = 4.0  # an element between the two, written and read again, in steps of a window


@dataclass(frozen=True, slots=True)
class MaxPoolSplitting:
    """Replace a MaxPool over several axes by one over all but the last of them, and one over that.

    MaxPool[kernel=(5, 5)](x)   ->   MaxPool[kernel=(1, 5)](MaxPool[kernel=(5, 1)](x))

    A maximum is exact in any order, and padding never wins. Along rows of pixels a window that
    moves in steps is gathered, and after the split fewer elements are.
    """

    keeps_rounding: ClassVar[bool] = True

    def __call__(self, graph: Graph) -> Graph:
        if not any(_is_split(node) for node in graph.nodes):
            return graph
        builder = GraphBuilder.like(graph)
        for node in graph.nodes:
            _copy(builder, node)
        result = builder.finish(graph.outputs)
        return rebuilt(graph, result.nodes, result.constants)


def _copy(builder: GraphBuilder, node: GraphNode) -> None:
    """The node, or the two in its place, of which the first may be split again."""
    pool = node.op
    if not isinstance(pool, MaxPool) or not _is_split(node):
        builder.add_node(node)
        return
    last = _axes(pool)[-1]
    others = [d for d in range(len(pool.kernel)) if d != last]
    (value,) = node.outputs
    made = builder.fresh(f"{value}.columns")
    _copy(builder, GraphNode(_along(pool, others), node.inputs, (made,), node.name))
    builder.add_node(GraphNode(_along(pool, [last]), (made,), node.outputs, node.name))


def _along(pool: MaxPool, axes: Sequence[int]) -> MaxPool:
    """The maxima along some of the spatial axes."""
    n = len(pool.kernel)

    def part(values: Sequence[int], neutral: int) -> tuple[int, ...]:
        return tuple(value if d % n in axes else neutral for d, value in enumerate(values))

    return replace(
        pool,
        kernel=part(pool.kernel, 1),
        strides=part(pool.strides, 1),
        pads=part(pool.pads, 0),
        dilations=part(pool.dilations, 1),
    )


def _axes(pool: MaxPool) -> list[int]:
    """The spatial axes along which a window has several elements."""
    return [d for d, taps in enumerate(pool.kernel) if taps > 1]


def _is_split(node: GraphNode) -> bool:
    return isinstance(node.op, MaxPool) and pool_steps(node.op) < _whole(node.op)


def pool_steps(pool: MaxPool) -> float:
    """Steps for each of its maxima: one is an element of a window, loaded and compared."""
    axes, whole = _axes(pool), _whole(pool)
    if len(axes) < 2:
        return whole
    last = axes[-1]
    others = pool_steps(_along(pool, axes[:-1]))
    return min(whole, pool.strides[last] * (others + STORE) + _whole(_along(pool, [last])))


def _whole(pool: MaxPool) -> float:
    """The steps where all elements of a window are taken at once."""
    gathered = pool.layout == "NCHW" and pool.strides[-1] > 1
    return math.prod(pool.kernel) * (GATHER if gathered else 1.0)
