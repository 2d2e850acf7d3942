"""Rules of products of integers that stand for floating-point numbers: exact in int32, then scaled
once.
"""

from __future__ import annotations

from .....ops import arithmetic, movement
from .....ops.functions import Cast
from ...node import NodeReader
from ..rule import ImportRule, Result
from ..window import WINDOW
from .attention import self_attention
from .levels import levels
from .spelling import channels_first, channels_last, number_like, whole_list
from .windows import stated

_CONV = (*WINDOW, "group")


def _given(node: NodeReader, position: int) -> str:
    return node.value(position) if node.has(position) else ""


def _scaled(node: NodeReader, product: str, *scales: str) -> str:
    """A product of integers times the scales of what was multiplied."""
    value = node.emit(Cast(node.builder.types[scales[0]].dtype), product)
    factor = node.spell("Mul", *scales) if len(scales) > 1 else scales[0]
    return node.spell("Mul", value, factor)


def _biased(node: NodeReader, value: str, position: int) -> str:
    bias = node.has(position)
    return node.emit(arithmetic.Add(), value, node.value(position)) if bias else value


def _to_float(node: NodeReader) -> Result:
    """(A - a_zero) @ (B - b_zero) * a_scale * b_scale + bias"""
    zeros = (_given(node, 4), _given(node, 5))
    product = node.spell("MatMulInteger", node.value(0), node.value(1), *zeros)
    y = _scaled(node, product, node.value(2), node.value(3))
    return movement.Identity(), (_biased(node, y, 6),)


def _dynamic(node: NodeReader) -> Result:
    """The product with A in the 256 levels between its least and its greatest element."""
    a, scale, zero = node.spell_all("DynamicQuantizeLinear", 3, node.value(0))
    product = node.spell("MatMulInteger", a, node.value(1), zero, _given(node, 3))
    y = _scaled(node, product, scale, node.value(2))
    return movement.Identity(), (_biased(node, y, 4),)


def _gemm(node: NodeReader) -> Result:
    """alpha * a_scale * b_scale * ((A - a_zero) @ (B - b_zero) + C), rounded if Y has a scale."""
    a, b = (
        node.spell("Transpose", node.value(n), perm=(1, 0)) if node.flag(name) else node.value(n)
        for n, name in ((0, "transA"), (3, "transB"))
    )
    product = node.spell("MatMulInteger", a, b, node.value(2), node.value(5))
    product = _biased(node, product, 6)
    y = _scaled(node, product, node.value(1), node.value(4))
    if node.real("alpha", 1.0) != 1.0:
        y = node.emit(arithmetic.Mul(), y, number_like(node, y, node.real("alpha", 1.0)))
    if node.has(7):
        dtype = node.type(8).dtype if node.has(8) else node.type(0).dtype
        y = levels(node, y, node.value(7), _given(node, 8), dtype)
    return movement.Identity(), (y,)


def _conv(node: NodeReader) -> Result:
    """The convolution of data whose channels may come last, plus a bias of integers."""
    last = node.flag("channels_last")
    data = channels_first(node, node.value(0)) if last else node.value(0)
    zeros = (node.value(2), node.value(5))
    product = node.spell("ConvInteger", data, node.value(3), *zeros, **stated(node, _CONV))
    column = (-1, *(1,) * (node.builder.types[product].rank - 2))
    if node.has(8):
        bias = node.spell("Reshape", node.value(8), whole_list(node, column))
        product = node.emit(arithmetic.Add(), product, bias)
    weights = node.value(4)
    if node.type(4).rank:
        weights = node.spell("Reshape", weights, whole_list(node, column))
    y = _scaled(node, product, node.value(1), weights)
    y = levels(node, y, node.value(6), node.value(7), node.type(7).dtype)
    return movement.Identity(), (channels_last(node, y) if last else y,)


def _attention(node: NodeReader) -> Result:
    """Attention whose projection is a product of integers."""
    zeros = (_given(node, 6), _given(node, 7))
    product = node.spell("MatMulInteger", node.value(0), node.value(1), *zeros)
    value = _biased(node, _scaled(node, product, node.value(3), node.value(4)), 2)
    return self_attention(node, value, mask=5, past=8, bias=9)


RULES: dict[str, ImportRule] = {
    "com.microsoft.DynamicQuantizeMatMul": ImportRule((1,), (), _dynamic),
    "com.microsoft.MatMulIntegerToFloat": ImportRule((1,), (), _to_float),
    "com.microsoft.QAttention": ImportRule(
        (1,),
        (
            "do_rotary",
            "mask_filter_value",
            "num_heads",
            "past_present_share_buffer",
            "scale",
            "unidirectional",
        ),
        _attention,
        outputs=2,
    ),
    "com.microsoft.QGemm": ImportRule((1,), ("alpha", "transA", "transB"), _gemm),
    "com.microsoft.QLinearConv": ImportRule((1,), (*_CONV, "channels_last"), _conv),
}
