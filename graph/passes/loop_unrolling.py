"""Replace short loops by their iterations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...tir.sizes import closed_shape
from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode, RegionOperator
from ..ops.movement import Reshape
from ..regions.inline import expanded, inline
from ..regions.loop import Loop
from ..types import Splat


@dataclass(frozen=True, slots=True)
class LoopUnrolling:
    """Replace a loop that runs never or once by what is left of it, and one that carries values
    through a few iterations by these: nothing is copied between them then, and no thread waits at
    their ends. Rows stay in a loop, which reads and writes them where they lie.

    trips, nodes: of the iterations, at most, and of all their nodes.
    """

    keeps_rounding: ClassVar[bool] = True

    trips: int = 8
    nodes: int = 32

    def __call__(self, graph: Graph) -> Graph:
        return expanded(graph, self._unrolled)

    def _unrolled(self, builder: GraphBuilder, node: GraphNode) -> Sequence[str] | None:
        op = node.op
        if not isinstance(op, Loop) or not isinstance(op.count, int) or op.counted:
            return None
        if op.conditional and op.count > 0:
            return None
        if op.count > 1 and not self._is_short(op, op.count):
            return None
        given = op.given(node.inputs)
        carried, rows = list(given.carried), [""] * len(op.collected)
        for number in range(op.count):
            iteration = builder.constant(builder.fresh("iteration"), np.asarray(number, np.int64))
            read = [_row(builder, array, op) for array in given.rows]
            made = inline(builder, op.body, (iteration, *carried, *read, *given.captured))
            carried, rows = list(made[: op.carried]), list(made[op.carried :])
        return (*carried, *(_collected(builder, op, n, row) for n, row in enumerate(rows)))

    def _is_short(self, op: Loop, count: int) -> bool:
        inner = any(isinstance(node.op, RegionOperator) for node in op.body.nodes)
        few = count <= self.trips and count * len(op.body.nodes) <= self.nodes
        return few and not (op.rows or op.collected or inner)


def _row(builder: GraphBuilder, array: str, op: Loop) -> str:
    """The only row of an array."""
    return builder.add(Reshape(builder.types[array].shape[1:]), array)


def _collected(builder: GraphBuilder, op: Loop, number: int, row: str) -> str:
    """The array of the only row, or of none."""
    type_ = op.body.types[op.made.rows[number]]
    if op.count == 0:
        shape = (0, *closed_shape(type_.shape))
        return builder.constant(builder.fresh("none"), Splat(0, type_.dtype, shape))
    return builder.add(Reshape((1, *type_.shape)), row)
