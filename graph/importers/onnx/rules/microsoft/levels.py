"""Integers that stand for floating-point numbers by a scale and a zero point, and back."""

from __future__ import annotations

from ......tir.sizes import AnySize
from .....errors import ModelError
from .....ops.arithmetic import Add, Div, Mul, Sub
from .....ops.base import normal_axis
from .....ops.functions import Cast, Round
from .....ops.movement import Identity, Reshape
from ...node import NodeReader


def real(node: NodeReader, value: str, scale: str, zero: str, axis: int | None = None) -> str:
    """(value - zero) * scale; zero: "" for 0. axis: that of which each element has its own scale
    and zero, where they are lists.
    """
    types = node.builder.types
    kind = types[scale].dtype
    if zero and types[value].dtype == "int32":
        value = node.emit(Sub(), value, _along(node, zero, value, axis))
    value = node.emit(Cast(kind), value)
    if zero and types[zero].dtype != "int32":
        own = node.emit(Cast(kind), zero)
        value = node.emit(Sub(), value, _along(node, own, value, axis))
    return node.emit(Mul(), value, _along(node, scale, value, axis))


def levels(
    node: NodeReader, value: str, scale: str, zero: str, dtype: str, axis: int | None = None
) -> str:
    """The nearest integers of `dtype` to value / scale + zero, a half to even."""
    found = node.emit(Round(), node.emit(Div(), value, _along(node, scale, value, axis)))
    if zero:
        own = node.emit(Cast(node.builder.types[value].dtype), zero)
        found = node.emit(Add(), found, _along(node, own, found, axis))
    return node.emit(Cast(dtype), found)


def _along(node: NodeReader, value: str, data: str, axis: int | None) -> str:
    """A scale or a zero point, aligned with data. Raises: ModelError."""
    type_, other = node.builder.types[value], node.builder.types[data]
    if type_.elements == 1:
        return node.emit(Reshape(()), value) if type_.rank else value
    shape: tuple[AnySize, ...] = ()
    if axis is not None:
        axis = normal_axis(Identity(), axis, other.rank)
        shape = (*type_.shape, *(1,) * (other.rank - axis - 1))
    if axis is None or type_.shape != other.shape[axis : axis + 1]:
        raise ModelError(
            f"model: {node.title} has scales or zero points {type_} for {other}; expected one, or "
            "one for each element of an axis.",
            code="onnx-levels",
        )
    return node.emit(Reshape(shape), value)
