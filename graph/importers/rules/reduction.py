"""Rules of the operators that reduce along axes."""

from __future__ import annotations

from ...ops import softmax
from ...ops.base import normal_axis
from ..onnx_node import NodeReader
from .rule import Result, Rule


def _softmax(node: NodeReader) -> Result:
    rank = node.type(0).rank
    old = node.version < 13
    op = softmax.Softmax(())
    axis = normal_axis(op, node.integer("axis", 1 if old else -1), rank)
    return softmax.Softmax(tuple(range(axis, rank)) if old else (axis,)), node.inputs


RULES: dict[str, Rule] = {
    "Softmax": Rule((1, 11, 13), ("axis",), _softmax),
}
