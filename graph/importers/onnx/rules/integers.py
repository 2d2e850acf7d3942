"""Rules of the products of integers: MatMulInteger, ConvInteger, exact in int32."""

from __future__ import annotations

from ....errors import ModelError
from ....ir.integer_sums import Bytes, convolution_of_bytes, is_zero, product_of_bytes
from ....ops import matmul
from ....ops.functions import Cast
from ....ops.movement import Identity, Reshape
from ..node import NodeReader
from .rule import ImportRule, Result
from .window import WINDOW, convolution


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
    return "" if is_zero(node, number) else number


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
    product = product_of_bytes(node, Bytes(left, zeros[0]), Bytes(right, zeros[1]))
    made = node.builder.types[product].shape
    if min(a.rank, b.rank) > 1:
        return Identity(), (product,)
    kept = made[:-2] + (made[-2:-1] if a.rank > 1 else ()) + (made[-1:] if b.rank > 1 else ())
    return Reshape(kept), (product,)


def _conv_integer(node: NodeReader) -> Result:
    data = Bytes(node.value(0), _zero(node, 0, 2, 0))
    weights = Bytes(node.value(1), _zero(node, 1, 3, node.type(1).rank - 1))
    return Identity(), (convolution_of_bytes(node, convolution(node), data, weights),)


RULES: dict[str, ImportRule] = {
    "ConvInteger": ImportRule((10,), (*WINDOW, "group"), _conv_integer),
    "MatMulInteger": ImportRule((10,), (), _matmul_integer),
}
