"""Rules of the operators that move data or name it anew; shapes given as values are read here."""

from __future__ import annotations

import math

from ...errors import ModelError
from ...ops import movement
from ...ops.base import normal_axis
from ..onnx_node import NodeReader, NotSupported
from .rule import MOVES, Result, Rule, plain


def _dropout(node: NodeReader) -> Result:
    if node.has(2) and bool(node.constant(2, 1).any()):
        raise NotSupported("training_mode is true")
    return movement.Identity(), node.inputs[:1]


def _concat(node: NodeReader) -> Result:
    axis = normal_axis(movement.Concat(0), node.integer("axis"), node.type(0).rank)
    return movement.Concat(axis), node.inputs


def _reshaped(node: NodeReader, shape: tuple[int, ...]) -> Result:
    return movement.Reshape(shape), node.inputs[:1]


def _reshape(node: NodeReader) -> Result:
    source, shape = node.type(0).shape, list(node.sizes(1))
    if not node.flag("allowzero"):
        shape = [
            source[d] if size == 0 and d < len(source) else size for d, size in enumerate(shape)
        ]
    if -1 in shape:
        known = math.prod(size for size in shape if size != -1)
        elements = math.prod(source)
        if shape.count(-1) > 1 or known <= 0 or elements % known:
            raise ModelError(
                f"model: {node.title} cannot fit {node.type(0)} into shape {list(node.sizes(1))}.",
                code="onnx-reshape",
            )
        shape[shape.index(-1)] = elements // known
    return _reshaped(node, tuple(shape))


def _flatten(node: NodeReader) -> Result:
    shape = node.type(0).shape
    axis = node.integer("axis", 1)
    if axis != len(shape):
        axis = normal_axis(movement.Identity(), axis, len(shape))
    return _reshaped(node, (math.prod(shape[:axis]), math.prod(shape[axis:])))


def _axes(node: NodeReader, rank: int) -> set[int] | None:
    """The axes of a Squeeze or Unsqueeze, an attribute or an input; None when not given."""
    if node.given("axes"):
        axes = node.integers("axes")
    elif node.has(1):
        axes = node.sizes(1)
    else:
        return None
    chosen = {normal_axis(movement.Identity(), axis, rank) for axis in axes}
    if len(chosen) != len(axes):
        raise ModelError(
            f"model: {node.title} names an axis twice: {list(axes)}.", code="onnx-axes"
        )
    return chosen


def _unsqueeze(node: NodeReader) -> Result:
    source = node.type(0).shape
    count = len(node.integers("axes")) if node.given("axes") else len(node.sizes(1))
    axes = _axes(node, len(source) + count) or set()
    sizes = iter(source)
    return _reshaped(
        node, tuple(1 if d in axes else next(sizes) for d in range(len(source) + count))
    )


def _squeeze(node: NodeReader) -> Result:
    source = node.type(0).shape
    axes = _axes(node, len(source))
    if axes is None:
        axes = {d for d, size in enumerate(source) if size == 1}
    if any(source[d] != 1 for d in axes):
        raise ModelError(
            f"model: {node.title} removes axes {sorted(axes)} of {node.type(0)}, which are not all "
            "of size 1.",
            code="onnx-squeeze",
        )
    return _reshaped(node, tuple(size for d, size in enumerate(source) if d not in axes))


def _transpose(node: NodeReader) -> Result:
    rank = node.type(0).rank
    return movement.Transpose(node.integers("perm", tuple(reversed(range(rank))))), node.inputs


RULES: dict[str, Rule] = {
    "Concat": Rule((4, 11, 13), ("axis",), _concat),
    "Dropout": Rule((7, 10, 12, 13, 22), ("ratio", "seed"), _dropout),
    "Flatten": Rule((1, 9, 11, *MOVES), ("axis",), _flatten),
    "Identity": Rule((1, 14, 16, 19, *MOVES), (), plain(movement.Identity())),
    "Reshape": Rule((5, 14, 19, *MOVES), ("allowzero",), _reshape),
    "Squeeze": Rule((1, 11, *MOVES), ("axes",), _squeeze),
    "Transpose": Rule((1, *MOVES), ("perm",), _transpose),
    "Unsqueeze": Rule((1, 11, *MOVES), ("axes",), _unsqueeze),
}
