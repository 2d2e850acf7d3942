"""Rules of the operators that reduce along axes."""

from __future__ import annotations

from collections.abc import Callable

from .....tir.sizes import closed, product_of
from ....ops import arithmetic, functions, logic, movement, reduction, softmax
from ....ops.base import Operator, normal_axis
from ....types import Splat
from ..node import NodeReader, NotSupported
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


def _extreme(kind: type[reduction.Reduction]) -> Callable[[NodeReader], Result]:
    """The largest or the smallest; false is less than true."""

    def build(node: NodeReader) -> Result:
        if node.type(0).dtype != "bool":
            return _reduced(node, kind, node.value(0))
        op, inputs = _reduced(node, kind, node.emit(functions.Cast("uint8"), node.value(0)))
        return functions.Cast("bool"), (node.emit(op, *inputs),)

    return build


def _mean(node: NodeReader) -> Result:
    """Of integers, the quotient rounds towards zero."""
    x = node.type(0)
    op, inputs = _reduced(node, reduction.ReduceMean, node.value(0))
    if x.is_float or not isinstance(op, reduction.ReduceMean):
        return op, inputs
    total = node.emit(reduction.ReduceSum(op.axes, op.keepdims), *inputs)
    count = closed(product_of(x.shape[axis] for axis in op.axes))
    return arithmetic.Div(), (total, node.number(max(count, 1)))


def _norm_1(node: NodeReader) -> Result:
    return _reduced(node, reduction.ReduceSum, node.emit(functions.Abs(), node.value(0)))


def _sum_of_squares(node: NodeReader) -> Application:
    if not _axes(node):
        return arithmetic.Mul(), (node.value(0), node.value(0))
    return _reduced(node, reduction.ReduceSumSquare, node.value(0))


def _norm_2(node: NodeReader) -> Result:
    """Of integers the root is that of float64, rounded towards zero."""
    op, inputs = _sum_of_squares(node)
    return _of_float(node, functions.Sqrt(), node.emit(op, *inputs))


def _log_sum(node: NodeReader) -> Result:
    op, inputs = _reduced(node, reduction.ReduceSum, node.value(0))
    return _of_float(node, functions.Log(), node.emit(op, *inputs))


def _of_float(node: NodeReader, op: Operator, value: str) -> Application:
    """A function of numbers, in the type of the node's input."""
    type_ = node.type(0)
    if type_.is_float:
        return op, (value,)
    wide = node.emit(functions.Cast("float64"), value)
    return functions.Cast(type_.dtype), (node.emit(op, wide),)


def _log_sum_of_powers(node: NodeReader) -> Result:
    """log(sum exp x) as m + log(sum exp(x - m)), where m is the largest x: exp does not overflow.
    An infinite m is left out, as infinity less infinity is NaN.
    """
    type_, axes = node.type(0), _axes(node)
    if not axes:
        return movement.Identity(), node.inputs[:1]
    x = node.value(0)
    if not type_.is_float:
        x = node.emit(functions.Cast("float64"), x)
    zero = node.table("zero", Splat(0.0, node.builder.types[x].dtype, ()))
    most = node.emit(reduction.ReduceMax(axes), x)
    most = node.emit(logic.Where(), node.emit(logic.IsInf(), most), zero, most)
    powers = node.emit(functions.Exp(), node.emit(arithmetic.Sub(), x, most))
    total = node.emit(reduction.ReduceSum(axes), powers)
    value = node.emit(arithmetic.Add(), node.emit(functions.Log(), total), most)
    if not type_.is_float:
        value = node.emit(functions.Cast(type_.dtype), value)
    keeps = node.integer("keepdims", 1) != 0
    return movement.Reshape(reduction.reduced_shape(type_.shape, axes, keeps)), (value,)


def _normalised(node: NodeReader) -> Result:
    """x over its norm along an axis; 0 where that is 0."""
    x, p = node.value(0), node.integer("p", 2)
    axis = normal_axis(movement.Identity(), node.integer("axis", -1), node.type(0).rank)
    if p == 1:
        norm = node.emit(reduction.ReduceSum((axis,)), node.emit(functions.Abs(), x))
    elif p == 2:
        squares = node.emit(reduction.ReduceSum((axis,)), node.emit(arithmetic.Mul(), x, x))
        norm = node.emit(functions.Sqrt(), squares)
    else:
        raise NotSupported(f"p is {p}")
    none = node.emit(logic.Equal(), norm, node.number(0))
    return logic.Where(), (none, node.number(0), node.emit(arithmetic.Div(), x, norm))


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
    "LpNormalization": ImportRule((1, 22), ("axis", "p"), _normalised),
    "ReduceL1": ImportRule(_VERSIONS, _ATTRIBUTES, _norm_1),
    "ReduceL2": ImportRule(_VERSIONS, _ATTRIBUTES, _norm_2),
    "ReduceLogSum": ImportRule((*_VERSIONS, 28), _ATTRIBUTES, _log_sum),
    "ReduceLogSumExp": ImportRule((*_VERSIONS, 28), _ATTRIBUTES, _log_sum_of_powers),
    "ReduceMax": ImportRule((1, 11, 12, 13, 18, 20), _ATTRIBUTES, _extreme(reduction.ReduceMax)),
    "ReduceMean": ImportRule(_VERSIONS, _ATTRIBUTES, _mean),
    "ReduceMin": ImportRule((1, 11, 12, 13, 18, 20), _ATTRIBUTES, _extreme(reduction.ReduceMin)),
    "ReduceProd": ImportRule(_VERSIONS, _ATTRIBUTES, _reduction(reduction.ReduceProd)),
    "ReduceSum": ImportRule((1, 11, 13), _ATTRIBUTES, _reduction(reduction.ReduceSum)),
    "ReduceSumSquare": ImportRule(_VERSIONS, _ATTRIBUTES, _sum_of_squares),
    "Softmax": ImportRule((1, 11, 13), ("axis",), _along(softmax.Softmax)),
}
