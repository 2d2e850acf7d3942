"""Rules of the operators that find the largest or smallest elements."""

from __future__ import annotations

from collections.abc import Callable

from .....tir.sizes import AnySize, closed
from ....errors import ModelError
from ....ops import ranking
from ....ops.base import normal_axis
from ....ops.movement import Identity
from ..node import NodeReader
from .data_sizes import scalar, size_within
from .rule import ImportRule, Result


def _place(kind: type[ranking.ArgReduction]) -> Callable[[NodeReader], Result]:
    def build(node: NodeReader) -> Result:
        axis = normal_axis(kind(0), node.integer("axis", 0), node.type(0).rank)
        last = node.flag("select_last_index")
        return kind(axis, node.integer("keepdims", 1) != 0, last), node.inputs

    return build


def _top(node: NodeReader) -> Result:
    """In any order, where the node leaves it open, is in order."""
    axis = normal_axis(Identity(), node.integer("axis", -1), node.type(0).rank)
    largest = node.integer("largest", 1) != 0
    count = node.integer("k") if node.version < 10 else _count(node, axis)
    return ranking.TopK(axis, count, largest), (node.value(0),)


def _count(node: NodeReader, axis: int) -> AnySize:
    if node.value(1) not in (*node.builder.constants, *node.builder.sizes):
        most = closed(node.type(0).shape[axis])
        return size_within(node, scalar(node, 1), most, "k")
    sizes = node.open_sizes(1)
    if len(sizes) != 1:
        raise ModelError(
            f"model: {node.title} takes k from {node.type(1)}; expected one integer.",
            code="onnx-top-count",
        )
    return sizes[0]


_ARG = ("axis", "keepdims", "select_last_index")

RULES: dict[str, ImportRule] = {
    "ArgMax": ImportRule((1, 11, 12, 13), _ARG, _place(ranking.ArgMax)),
    "ArgMin": ImportRule((1, 11, 12, 13), _ARG, _place(ranking.ArgMin)),
    "TopK": ImportRule((1, 10, 11, 24), ("axis", "k", "largest", "sorted"), _top, outputs=2),
}
