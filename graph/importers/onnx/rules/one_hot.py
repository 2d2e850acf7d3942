"""Rules of the operators that compare places: OneHot, Hardmax, EyeLike."""

from __future__ import annotations

import numpy as np

from .....tir import dtype as dtypes
from .....tir.number import integer_range
from .....tir.sizes import AnySize, product_of
from ....errors import ModelError
from ....ops import arithmetic, logic
from ....ops.base import normal_axis
from ....ops.functions import Cast
from ....ops.movement import Identity, Reshape
from ....ops.ranking import ArgMax
from ....ops.size_values import SizeRange, SizeValues
from ....ops.slicing import Slice
from ....types import Splat
from ..node import NodeReader, NotSupported
from ..tensors import dtype_name
from .rule import ImportRule, Result


def _one_hot(node: NodeReader) -> Result:
    """On where an index, from the end where it is negative, is the place; off elsewhere."""
    indices, depth, values = node.type(0), _depth(node), node.type(2)
    if values.shape != (2,):
        raise ModelError(
            f"model: {node.title} has the values {values}; expected two, for off and on.",
            code="onnx-one-hot",
        )
    axis = normal_axis(Identity(), node.integer("axis", -1), indices.rank + 1)
    index = node.value(0)
    if indices.dtype != "int64":
        index = node.emit(Cast("int64"), index)
    if indices.is_float or integer_range(dtypes.dtype(indices.dtype))[0] < 0:
        below = node.emit(logic.Less(), index, _whole(node, 0))
        from_front = node.emit(arithmetic.Add(), index, _whole(node, depth))
        index = node.emit(logic.Where(), below, from_front, index)
    shape = indices.shape
    spread = node.emit(Reshape((*shape[:axis], 1, *shape[axis:])), index)
    hot = node.emit(logic.Equal(), spread, _places(node, depth, indices.rank - axis))
    off, on = (
        node.emit(Reshape(()), node.emit(Slice((n,), (1,), (1,)), node.value(2))) for n in (0, 1)
    )
    return logic.Where(), (hot, on, off)


def _depth(node: NodeReader) -> AnySize:
    if not node.type(1).is_float:
        return node.size(1)
    depth = node.constant(1, 1)
    if depth.size != 1:
        raise ModelError(
            f"model: {node.title} has the depth {node.type(1)}; expected one number.",
            code="onnx-one-hot-depth",
        )
    return int(depth.item())


def _places(node: NodeReader, size: AnySize, behind: int) -> str:
    """0, 1, ... along an axis with so many behind it."""
    shape = (size, *(1,) * behind)
    if isinstance(size, int):
        return node.table("places", np.arange(size, dtype=np.int64).reshape(size, *shape[1:]))
    return node.emit(Reshape(shape), node.emit(SizeRange(0, size)))


def _whole(node: NodeReader, value: AnySize) -> str:
    """An int64 without axes."""
    if not isinstance(value, int):
        return node.emit(SizeValues((value,), ()))
    return node.table("number", Splat(value, "int64", ()))


def _hardmax(node: NodeReader) -> Result:
    """1 where the first of the largest elements stands along an axis, else 0; before opset 13 along
    it and all behind it.
    """
    type_, old = node.type(0), node.version < 13
    axis = normal_axis(Identity(), node.integer("axis", 1 if old else -1), type_.rank)
    if type_.elements == 0:
        return Identity(), node.inputs
    value, shape = node.value(0), type_.shape
    if old:
        shape = (product_of(shape[:axis]), product_of(shape[axis:]))
        value, axis = node.emit(Reshape(shape), value), 1
    largest = node.emit(ArgMax(axis), value)
    places = _places(node, shape[axis], len(shape) - 1 - axis)
    hot = node.emit(Cast(type_.dtype), node.emit(logic.Equal(), places, largest))
    return Reshape(type_.shape), (hot,)


def _eye_like(node: NodeReader) -> Result:
    """1 on diagonal k, else 0."""
    type_ = node.type(0)
    dtype = dtype_name(node.integer("dtype")) if node.given("dtype") else type_.dtype
    if dtype not in dtypes.NAMES:
        raise NotSupported(f"it gives {dtype}; known are {', '.join(dtypes.NAMES)}")
    if type_.rank != 2:
        raise ModelError(
            f"model: {node.title} has the input {type_}; expected a matrix.", code="onnx-eye"
        )
    rows, columns = type_.shape
    edge = node.emit(arithmetic.Add(), _places(node, rows, 1), _whole(node, node.integer("k", 0)))
    return Cast(dtype), (node.emit(logic.Equal(), edge, _places(node, columns, 0)),)


RULES: dict[str, ImportRule] = {
    "EyeLike": ImportRule((9, 22), ("dtype", "k"), _eye_like),
    "Hardmax": ImportRule((1, 11, 13), ("axis",), _hardmax),
    "OneHot": ImportRule((9, 11, 28), ("axis",), _one_hot),
}
