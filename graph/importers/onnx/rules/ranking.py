"""Rules of the operators that find the largest or smallest elements."""

from __future__ import annotations

from collections.abc import Callable

from ....errors import ModelError
from ....ops import ranking
from ....ops.base import normal_axis
from ....ops.movement import Identity
from ..node import NodeReader
from .rule import ImportRule, Result


def _place(kind: type[ranking.ArgReduction]) -> Callable[[NodeReader], Result]:
    def build(node: NodeReader) -> Result:
        axis = normal_axis(kind(0), node.integer("axis", 0), node.type(0).rank)
        last = node.flag("select_last_index")
        return kind(axis, node.integer("keepdims", 1) != 0, last), node.inputs

    return build


def _top(node: NodeReader) -> Result:
    """In any order, where the node leaves it open, is in order."""
    count = node.integer("k") if node.version < 10 else _count(node)
    axis = normal_axis(Identity(), node.integer("axis", -1), node.type(0).rank)
    largest = node.integer("largest", 1) != 0
    return ranking.TopK(axis, count, largest), (node.value(0),)


def _count(node: NodeReader) -> int:
    sizes = node.sizes(1)
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
