"""Rules of the products of integers: MatMulInteger, ConvInteger, exact in int32."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .....tir.sizes import AnySize, closed, is_closed, largest, product_of
from ....errors import ModelError
from ....ops import matmul
from ....ops.arithmetic import Add, Mul, Sub
from ....ops.convolution import Conv
from ....ops.functions import Cast
from ....ops.movement import Concat, Identity, Reshape, Transpose
from ....ops.reduction import ReduceSum
from ....ops.slicing import Pad, Slice
from ....types import Splat, TensorType, array_of
from ..node import NodeReader, node_name
from .rule import ImportRule, Result
from .window import WINDOW, convolution

# of a convolution whose windows stand side by side: taps, each of which is a kernel, and bytes
_MOST_TAPS, _MOST_IN_WINDOWS = 25, 1 << 25


def _zero(node: NodeReader, position: int, zero: int, behind: int) -> str:
    """The zero point of an input as int32, aligned with it; "" for none, or where all are 0.
    behind: axes of the input behind that for which a list of zero points has one each.
    """
    if not node.has(zero):
        return ""
    type_, given = node.type(zero), node.type(position)
    number = node.emit(Cast("int32"), node.value(zero))
    if type_.rank == 1 and type_.elements == 1:
        number = node.emit(Reshape(()), number)
    elif type_.rank == 1:
        axis = given.rank - 1 - behind
        if axis < 0 or type_.shape != given.shape[axis : axis + 1]:
            raise ModelError(
                f"model: {node.title} has zero points {type_} for {given}; expected one, or one "
                f"for each element of axis {axis}.",
                code="onnx-zero-points",
            )
        number = node.emit(Reshape((*type_.shape, *(1,) * behind)), number)
    return "" if _is_zero(node, number) else number


def _is_zero(node: NodeReader, value: str) -> bool:
    """Whether a value is a constant of zeros."""
    known = node.builder.constants.get(value)
    return known is not None and not np.any(known.value if isinstance(known, Splat) else known)


def _shifted(node: NodeReader, position: int, zero: int, behind: int) -> str:
    """An input as int32, less its zero point."""
    value, number = (
        node.emit(Cast("int32"), node.value(position)),
        _zero(node, position, zero, behind),
    )
    return node.emit(Sub(), value, number) if number else value


def _matmul_integer(node: NodeReader) -> Result:
    """A vector is a matrix of one row on the left, of one column on the right; that axis goes."""
    a, b = node.type(0), node.type(1)
    if min(a.rank, b.rank) < 1:
        return matmul.IntegerMatMul(), node.inputs[:2]  # which it refuses
    zeros = (_zero(node, 0, 2, 1 if a.rank > 1 else 0), _zero(node, 1, 3, 0))
    left, right = node.value(0), node.value(1)
    if a.rank == 1:
        left = node.emit(Reshape((1, *a.shape)), left)
    if b.rank == 1:
        right = node.emit(Reshape((*b.shape, 1)), right)
    product = _product(node, left, right, *zeros)
    made = node.builder.types[product].shape
    if min(a.rank, b.rank) > 1:
        return Identity(), (product,)
    kept = made[:-2] + (made[-2:-1] if a.rank > 1 else ()) + (made[-1:] if b.rank > 1 else ())
    return Reshape(kept), (product,)


def _product(node: NodeReader, left: str, right: str, p: str, q: str) -> str:
    """(left - p) @ (right - q) for zero points that are one number or one for each row and each
    column: left @ right - p * (sums of right) - q * (sums of left) + p * q * (terms of a sum).
    """
    types = node.builder.types
    terms = types[left].shape[-1]
    if not (_is_one_along(node, p, -1) and _is_one_along(node, q, -2)):
        a, b = (node.emit(Cast("int32"), value) for value in (left, right))
        a = node.emit(Sub(), a, p) if p else a
        return node.emit(matmul.MatMul(), a, node.emit(Sub(), b, q) if q else b)
    left, p = _moved(node, left, p, "uint8")
    right, q = _moved(node, right, q, "int8")
    product = node.emit(matmul.IntegerMatMul(), left, right)
    for zero, other, axis in ((p, right, -2), (q, left, -1)):
        if zero:
            wide = node.emit(Cast("int32"), other)
            sums = node.emit(ReduceSum((types[other].rank + axis,), True), wide)
            product = node.emit(Sub(), product, node.emit(Mul(), zero, sums))
    if p and q:
        both = node.emit(Mul(), p, q)
        count = node.emit(Cast("int32"), _count(node, terms))
        product = node.emit(Add(), product, node.emit(Mul(), both, count))
    return product


def _count(node: NodeReader, size: AnySize) -> str:
    """A size, which calls may decide, as a value without axes."""
    name = node.builder.fresh(f"{node_name(node.proto)}.terms")
    node.define_sizes(name, np.array(size, dtype=object))
    return name


def _is_one_along(node: NodeReader, zero: str, axis: int) -> bool:
    """Whether a zero point is the same for all terms of a sum, which run along an axis."""
    if not zero:
        return True
    shape = node.builder.types[zero].shape
    return len(shape) < -axis or shape[axis] == 1


def _moved(node: NodeReader, value: str, zero: str, wanted: str) -> tuple[str, str]:
    """Bytes and their zero point as bytes of the type that processors multiply."""
    dtype = node.builder.types[value].dtype
    if dtype == wanted:
        return value, zero
    step = node.table("step", Splat(128 if wanted == "uint8" else -128, "int32", ()))
    wide = node.emit(Add(), node.emit(Cast("int32"), value), step)
    moved = node.emit(Add(), zero, step) if zero else step
    return node.emit(Cast(wanted), wide), "" if _is_zero(node, moved) else moved


def _conv_integer(node: NodeReader) -> Result:
    op = convolution(node)
    zero = _number(node, 2)
    if zero is not None and _has_windows(op, node.type(0), node.type(1)):
        return Transpose((0, 3, 1, 2)), (_product_of_windows(node, op, zero),)
    data = _shifted(node, 0, 2, 0)
    return op, (data, _shifted(node, 1, 3, node.type(1).rank - 1))


def _number(node: NodeReader, position: int) -> int | None:
    """The one number that an input is, 0 where it is left out; None where a run decides it."""
    if not node.has(position):
        return 0
    known = node.builder.constants.get(node.value(position))
    one = known is not None and node.type(position).elements == 1
    return int(array_of(known).item()) if known is not None and one else None


def _has_windows(op: Conv, x: TensorType, w: TensorType) -> bool:
    """Whether the windows of an image may be the rows of a matrix: what the image has is known, and
    they are not too many.
    """
    if not (x.rank == w.rank == 4 and is_closed(x.shape) and is_closed(w.shape)):
        return False
    taps = largest(product_of(w.shape[2:]))
    plain = op.groups == 1 and min(op.pads) >= 0 and taps <= _MOST_TAPS
    made = op.infer((replace(x, dtype="int32"), replace(w, dtype="int32")))[0]
    elements = largest(product_of((made.shape[0], *made.shape[2:]))) * taps * closed(w.shape[1])
    return plain and 0 < elements <= _MOST_IN_WINDOWS and largest(w.elements) > 0


def _product_of_windows(node: NodeReader, op: Conv, zero: int) -> str:
    """A convolution of bytes, [batch, rows, columns, channels], as the product of a matrix whose
    rows are windows, with the filters. zero: the zero point of the image, with which it is padded.
    """
    (batch, channels, *_), (count, _, height, width) = node.type(0).shape, node.type(1).shape
    types = (replace(node.type(n), dtype="int32") for n in (0, 1))
    rows, columns = op.infer(tuple(types))[0].shape[2:]
    top, left, bottom, right = op.pads
    ends = (0, 0, top, left), (0, 0, bottom, right)
    image = node.emit(Pad(*ends, value=zero), node.value(0)) if any(op.pads) else node.value(0)
    image = node.emit(Transpose((0, 2, 3, 1)), image)
    parts = [
        node.emit(
            Slice(
                (0, y * op.dilations[0], x * op.dilations[1], 0),
                (batch, rows, columns, channels),
                (1, *op.strides, 1),
            ),
            image,
        )
        for y, x in np.ndindex(closed(height), closed(width))
    ]
    windows = node.emit(Concat(3), *parts)
    terms = height * width * channels
    windows = node.emit(Reshape((batch, rows * columns, terms)), windows)
    filters = node.emit(Transpose((2, 3, 1, 0)), node.value(1))
    zeros = [_zero(node, 0, 2, 0), _zero(node, 1, 3, 3)]
    if zeros[1] and node.builder.types[zeros[1]].rank:
        zeros[1] = node.emit(Reshape((count,)), zeros[1])
    product = _product(node, windows, node.emit(Reshape((terms, count)), filters), *zeros)
    return node.emit(Reshape((batch, rows, columns, count)), product)


RULES: dict[str, ImportRule] = {
    "ConvInteger": ImportRule((10,), (*WINDOW, "group"), _conv_integer),
    "MatMulInteger": ImportRule((10,), (), _matmul_integer),
}
