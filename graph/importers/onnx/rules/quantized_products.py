"""Rules of the products of integers that stand for floating-point numbers, QLinearMatMul and
QLinearConv: exact in int32, then scaled and rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from ....ops.arithmetic import Add
from ....ops.movement import Identity, Reshape
from ....types import Splat
from ..node import NodeReader
from .conversions import converted
from .rule import ImportRule, Result
from .window import WINDOW, stated

_WIDE = "float32"
CONVOLUTION = (*WINDOW, "group")


def scaled(node: NodeReader, product: str, *scales: str) -> str:
    """A product of integers times the scales of what was multiplied, in float32 or wider."""
    kind = _wide(node, scales[0])
    return node.spell("Mul", converted(node, product, kind), _joined(node, scales, kind))


def rounded(node: NodeReader, product: str, scales: Sequence[str], to: str, zero: str) -> str:
    """The same in the levels of the scale `to`. Where these have one scale the sums are multiplied
    once, by the quotient of the scales, as onnxruntime does.
    """
    kind = _wide(node, scales[0])
    to = converted(node, to, kind)
    if node.builder.types[to].elements != 1:
        return node.spell("QuantizeLinear", scaled(node, product, *scales), to, zero)
    value = scaled(node, product, node.spell("Div", _joined(node, scales, kind), to))
    return node.spell("QuantizeLinear", value, node.table("one", Splat(1.0, kind, ())), zero)


def _wide(node: NodeReader, scale: str) -> str:
    kind = node.builder.types[scale].dtype
    return kind if kind == "float64" else _WIDE


def _joined(node: NodeReader, scales: Sequence[str], kind: str) -> str:
    """The product of scales."""
    factors = [converted(node, scale, kind) for scale in scales]
    return reduce(lambda one, other: node.spell("Mul", one, other), factors)


def quantized_convolution(node: NodeReader, data: str) -> str:
    """The convolution of `data`, the first input, plus a bias of integers, in levels."""
    zeros = (node.value(2), node.value(5))
    product = node.spell("ConvInteger", data, node.value(3), *zeros, **stated(node, CONVOLUTION))
    ones = (1,) * (node.builder.types[product].rank - 2)
    if node.has(8):
        bias = node.emit(Reshape((*node.type(8).shape, *ones)), node.value(8))
        product = node.emit(Add(), product, bias)
    weights = node.value(4)
    if node.type(4).rank and node.type(4).elements != 1:
        weights = node.emit(Reshape((*node.type(4).shape, *ones)), weights)
    return rounded(node, product, (node.value(1), weights), node.value(6), node.value(7))


def _matmul(node: NodeReader) -> Result:
    """Each row of the left operand, and each column of the right one, may have its own scale."""
    product = node.spell(
        "MatMulInteger", node.value(0), node.value(3), node.value(2), node.value(5)
    )
    rows, type_ = node.value(1), node.type(1)
    if type_.rank == 1 and type_.elements != 1:
        rows = node.emit(Reshape((*type_.shape, 1)), rows)
    y = rounded(node, product, (rows, node.value(4)), node.value(6), node.value(7))
    return Identity(), (y,)


def _conv(node: NodeReader) -> Result:
    return Identity(), (quantized_convolution(node, node.value(0)),)


RULES: dict[str, ImportRule] = {
    "QLinearConv": ImportRule((10,), CONVOLUTION, _conv),
    "QLinearMatMul": ImportRule((10, 21), (), _matmul),
}
