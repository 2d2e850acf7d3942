"""Rules of the products of integers that stand for floating-point numbers, QLinearMatMul and
QLinearConv: exact in int32, then scaled and rounded once.
"""

from __future__ import annotations

from ....ops.arithmetic import Add
from ....ops.movement import Identity, Reshape
from ..node import NodeReader
from .conversions import converted
from .rule import ImportRule, Result
from .window import WINDOW, stated

_WIDE = "float32"
CONVOLUTION = (*WINDOW, "group")


def scaled(node: NodeReader, product: str, *scales: str) -> str:
    """A product of integers times the scales of what was multiplied, in float32 or wider."""
    kind = node.builder.types[scales[0]].dtype
    kind = kind if kind == "float64" else _WIDE
    factors = [converted(node, scale, kind) for scale in scales]
    factor = node.spell("Mul", *factors) if len(factors) > 1 else factors[0]
    return node.spell("Mul", converted(node, product, kind), factor)


def quantized_convolution(node: NodeReader, data: str) -> str:
    """The convolution of `data`, the first input, plus a bias of integers, before it is rounded."""
    zeros = (node.value(2), node.value(5))
    product = node.spell("ConvInteger", data, node.value(3), *zeros, **stated(node, CONVOLUTION))
    ones = (1,) * (node.builder.types[product].rank - 2)
    if node.has(8):
        bias = node.emit(Reshape((*node.type(8).shape, *ones)), node.value(8))
        product = node.emit(Add(), product, bias)
    weights = node.value(4)
    if node.type(4).rank and node.type(4).elements != 1:
        weights = node.emit(Reshape((*node.type(4).shape, *ones)), weights)
    return scaled(node, product, node.value(1), weights)


def _matmul(node: NodeReader) -> Result:
    """Each row of the left operand, and each column of the right one, may have its own scale."""
    product = node.spell(
        "MatMulInteger", node.value(0), node.value(3), node.value(2), node.value(5)
    )
    rows, type_ = node.value(1), node.type(1)
    if type_.rank == 1 and type_.elements != 1:
        rows = node.emit(Reshape((*type_.shape, 1)), rows)
    return _rounded(node, scaled(node, product, rows, node.value(4)))


def _conv(node: NodeReader) -> Result:
    return _rounded(node, quantized_convolution(node, node.value(0)))


def _rounded(node: NodeReader, value: str) -> Result:
    """The result in the levels of its scale and its zero point."""
    scale = converted(node, node.value(6), node.builder.types[value].dtype)
    return Identity(), (node.spell("QuantizeLinear", value, scale, node.value(7)),)


RULES: dict[str, ImportRule] = {
    "QLinearConv": ImportRule((10,), CONVOLUTION, _conv),
    "QLinearMatMul": ImportRule((10, 21), (), _matmul),
}
