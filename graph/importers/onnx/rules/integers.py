"""Rules of the products of integers: MatMulInteger, ConvInteger, exact in int32."""

from __future__ import annotations

import numpy as np

from ....errors import ModelError
from ....ops import matmul
from ....ops.arithmetic import Sub
from ....ops.base import Operator
from ....ops.functions import Cast
from ....ops.movement import Reshape
from ....types import Splat
from ..node import NodeReader
from .rule import ImportRule, Result
from .window import WINDOW, convolution


def _shifted(node: NodeReader, position: int, zero: int, behind: int) -> str:
    """An input as int32, less its zero point. behind: axes of the input behind that for which a
    list of zero points has one each.
    """
    value = node.emit(Cast("int32"), node.value(position))
    if not node.has(zero):
        return value
    known = node.builder.constants.get(node.value(zero))
    if known is not None and not np.any(known.value if isinstance(known, Splat) else known):
        return value
    type_, given = node.type(zero), node.type(position)
    number = node.emit(Cast("int32"), node.value(zero))
    if type_.rank == 1 and type_.elements == 1:
        number = node.emit(Reshape(()), number)
    elif type_.rank == 1:
        axis = given.rank - 1 - behind
        if axis < 0 or type_.shape[0] != given.shape[axis]:
            raise ModelError(
                f"model: {node.title} has zero points {type_} for {given}; expected one, or one "
                f"for each element of axis {axis}.",
                code="onnx-zero-points",
            )
        number = node.emit(Reshape((*type_.shape, *(1,) * behind)), number)
    return node.emit(Sub(), value, number)


def _matmul_integer(node: NodeReader) -> Result:
    a, b = node.type(0), node.type(1)
    left = _shifted(node, 0, 2, 1 if a.rank > 1 else 0)
    right = _shifted(node, 1, 3, 0)
    if a.rank == 1:
        left = node.emit(Reshape((1, *a.shape)), left)
    if b.rank == 1:
        right = node.emit(Reshape((*b.shape, 1)), right)
    if min(a.rank, b.rank) > 1:
        return matmul.MatMul(), (left, right)
    product = node.emit(matmul.MatMul(), left, right)
    made = node.builder.types[product].shape
    kept = made[:-2] + (made[-2:-1] if a.rank > 1 else ()) + (made[-1:] if b.rank > 1 else ())
    return Reshape(kept), (product,)


def _conv_integer(node: NodeReader) -> Result:
    op: Operator = convolution(node)
    data = _shifted(node, 0, 2, 0)
    return op, (data, _shifted(node, 1, 3, node.type(1).rank - 1))


RULES: dict[str, ImportRule] = {
    "ConvInteger": ImportRule((10,), (*WINDOW, "group"), _conv_integer),
    "MatMulInteger": ImportRule((10,), (), _matmul_integer),
}
