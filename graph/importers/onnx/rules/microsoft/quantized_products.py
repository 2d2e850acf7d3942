"""Rules of products of integers that stand for floating-point numbers: exact in int32, then scaled
once.
"""

from __future__ import annotations

from .....ops import arithmetic, movement
from .....types import Splat
from ...node import NodeReader
from ..quantized_products import CONVOLUTION, quantized_convolution, rounded, scaled
from ..rule import ImportRule, Result
from .attention import self_attention
from .spelling import channels_first, channels_last, number_like


def _biased(node: NodeReader, value: str, position: int) -> str:
    bias = node.has(position)
    return node.emit(arithmetic.Add(), value, node.value(position)) if bias else value


def _to_float(node: NodeReader) -> Result:
    """(A - a_zero) @ (B - b_zero) * a_scale * b_scale + bias"""
    zeros = (node.optional(4), node.optional(5))
    product = node.spell("MatMulInteger", node.value(0), node.value(1), *zeros)
    y = scaled(node, product, node.value(2), node.value(3))
    return movement.Identity(), (_biased(node, y, 6),)


def _dynamic(node: NodeReader) -> Result:
    """The product with A in the 256 levels between its least and its greatest element."""
    a, scale, zero = node.spell_all("DynamicQuantizeLinear", 3, node.value(0))
    product = node.spell("MatMulInteger", a, node.value(1), zero, node.optional(3))
    y = scaled(node, product, scale, node.value(2))
    return movement.Identity(), (_biased(node, y, 4),)


def _gemm(node: NodeReader) -> Result:
    """alpha * a_scale * b_scale * ((A - a_zero) @ (B - b_zero) + C), rounded if Y has a scale."""
    a, b = (
        node.spell("Transpose", node.value(n), perm=(1, 0)) if node.flag(name) else node.value(n)
        for n, name in ((0, "transA"), (3, "transB"))
    )
    product = node.spell("MatMulInteger", a, b, node.value(2), node.value(5))
    product = _biased(node, product, 6)
    factors = [node.value(1), node.value(4)]
    if node.real("alpha", 1.0) != 1.0:
        factors.append(number_like(node, factors[0], node.real("alpha", 1.0)))
    if not node.has(7):
        return movement.Identity(), (scaled(node, product, *factors),)
    zero = node.optional(8) or node.table("zero", Splat(0, node.type(0).dtype, ()))
    y = rounded(node, product, factors, node.value(7), zero)
    return movement.Identity(), (y,)


def _conv(node: NodeReader) -> Result:
    """QLinearConv of data whose channels may come last."""
    last = node.flag("channels_last")
    data = channels_first(node, node.value(0)) if last else node.value(0)
    y = quantized_convolution(node, data)
    return movement.Identity(), (channels_last(node, y) if last else y,)


def _attention(node: NodeReader) -> Result:
    """Attention whose projection is a product of integers."""
    zeros = (node.optional(6), node.optional(7))
    product = node.spell("MatMulInteger", node.value(0), node.value(1), *zeros)
    value = _biased(node, scaled(node, product, node.value(3), node.value(4)), 2)
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
    "com.microsoft.QLinearConv": ImportRule((1,), (*CONVOLUTION, "channels_last"), _conv),
}
