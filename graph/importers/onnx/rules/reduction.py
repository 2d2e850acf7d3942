"""Rules of the operators that reduce along axes."""

from __future__ import annotations

from collections.abc import Callable

from ....ops import arithmetic, functions, movement, reduction, softmax
from ....ops.base import Operator, normal_axis
from ..node import NodeReader
from .movement import named_axes
from .rule import Application, ImportRule, Result


def _axes(node: NodeReader) -> tuple[int, ...]:
    """The axes, an attribute or an input; all where none are given, unless that means none."""
    rank = node.type(0).rank
    if axes := named_axes(node, rank):
        return tuple(sorted(axes))
    return () if node.flag("noop_with_empty_axes") else tuple(range(rank))


def _reduced(node: NodeReader, kind: type[reduction.Reduction], value: str) -> Application:
    """`value`, of the shape of the node's input, reduced."""
    axes = _axes(node)
    if not axes:
        return movement.Identity(), (value,)
    return kind(axes, node.integer("keepdims", 1) != 0), (value,)


def _reduction(kind: type[reduction.Reduction]) -> Callable[[NodeReader], Result]:
    return lambda node: _reduced(node, kind, node.value(0))


def _norm_1(node: NodeReader) -> Result:
    return _reduced(node, reduction.ReduceSum, node.emit(functions.Abs(), node.value(0)))


def _sum_of_squares(node: NodeReader) -> Application:
    square = node.emit(arithmetic.Mul(), node.value(0), node.value(0))
    return _reduced(node, reduction.ReduceSum, square)


def _norm_2(node: NodeReader) -> Result:
    op, inputs = _sum_of_squares(node)
    return functions.Sqrt(), (node.emit(op, *inputs),)


def _along(
    kind: Callable[[tuple[int, ...]], Operator],
) -> Callable[[NodeReader], Result]:
    """Softmax's like: along one axis, before opset 13 along it and all behind it."""

    def build(node: NodeReader) -> Result:
        rank = node.type(0).rank
        old = node.version < 13
        axis = normal_axis(kind(()), node.integer("axis", 1 if old else -1), rank)
        return kind(tuple(range(axis, rank)) if old else (axis,)), node.inputs

    return build


_ATTRIBUTES = ("axes", "keepdims", "noop_with_empty_axes")
_VERSIONS = (1, 11, 13, 18)

RULES: dict[str, ImportRule] = {
    "LogSoftmax": ImportRule((1, 11, 13), ("axis",), _along(softmax.LogSoftmax)),
    "ReduceL1": ImportRule(_VERSIONS, _ATTRIBUTES, _norm_1),
    "ReduceL2": ImportRule(_VERSIONS, _ATTRIBUTES, _norm_2),
    "ReduceMax": ImportRule((1, 11, 12, 13, 18, 20), _ATTRIBUTES, _reduction(reduction.ReduceMax)),
    "ReduceMean": ImportRule(_VERSIONS, _ATTRIBUTES, _reduction(reduction.ReduceMean)),
    "ReduceMin": ImportRule((1, 11, 12, 13, 18, 20), _ATTRIBUTES, _reduction(reduction.ReduceMin)),
    "ReduceProd": ImportRule(_VERSIONS, _ATTRIBUTES, _reduction(reduction.ReduceProd)),
    "ReduceSum": ImportRule((1, 11, 13), _ATTRIBUTES, _reduction(reduction.ReduceSum)),
    "ReduceSumSquare": ImportRule(_VERSIONS, _ATTRIBUTES, _sum_of_squares),
    "Softmax": ImportRule((1, 11, 13), ("axis",), _along(softmax.Softmax)),
}
