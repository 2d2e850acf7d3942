"""Rules of matrix products and of attention."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .....tir.sizes import closed
from ....ops.arithmetic import Add, Mul
from ....ops.logic import IsNaN, Where
from ....ops.matmul import MatMul
from ....ops.movement import Transpose
from ....ops.softmax import Softmax
from ...onnx.node import NotSupported
from ..promotion import Number
from ..rule import Rule
from ..writer import AtenValue, AtenWriter
from .views import transposed


def _matmul(w: AtenWriter, self: AtenValue, other: AtenValue) -> AtenValue:
    return w.spell("MatMul", self, other)


def _mm(w: AtenWriter, self: AtenValue, mat2: AtenValue) -> AtenValue:
    return w.emit(MatMul(), self, mat2)


def _mv(w: AtenWriter, self: AtenValue, vec: AtenValue) -> AtenValue:
    return w.spell("MatMul", self, vec)


def _dot(w: AtenWriter, self: AtenValue, tensor: AtenValue) -> AtenValue:
    return w.spell("MatMul", self, tensor)


def linear(
    w: AtenWriter, input: AtenValue, weight: AtenValue, bias: AtenValue | None = None
) -> AtenValue:
    made = w.spell("MatMul", input, transposed(w, weight))
    return made if bias is None else w.emit(Add(), made, bias)


def _addmm(
    w: AtenWriter,
    self: AtenValue,
    mat1: AtenValue,
    mat2: AtenValue,
    beta: Number = 1,
    alpha: Number = 1,
) -> AtenValue:
    made = _scaled(w, w.emit(MatMul(), mat1, mat2), alpha)
    return made if beta == 0 else w.emit(Add(), made, _scaled(w, self, beta))


def _baddbmm(
    w: AtenWriter,
    self: AtenValue,
    batch1: AtenValue,
    batch2: AtenValue,
    beta: Number = 1,
    alpha: Number = 1,
) -> AtenValue:
    return _addmm(w, self, batch1, batch2, beta, alpha)


def _scaled(w: AtenWriter, x: AtenValue, factor: Number) -> AtenValue:
    return x if factor == 1 else w.emit(Mul(), x, w.full(factor, x.dtype))


def _einsum(w: AtenWriter, equation: str, tensors: Sequence[AtenValue]) -> AtenValue:
    return w.spell("Einsum", *tensors, equation=equation)


def attention(
    w: AtenWriter,
    query: AtenValue,
    key: AtenValue,
    value: AtenValue,
    attn_mask: AtenValue | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> AtenValue:
    """Spelled out, so that a pass that recognises attention takes its heads, too."""
    if dropout_p > 0:
        raise NotSupported("it drops weights as in training", "model.eval() before the export.")
    factor = 1 / math.sqrt(closed(query.shape[-1])) if scale is None else scale
    if enable_gqa:
        key, value = (_for_heads(w, x, query) for x in (key, value))
    turned = w.emit(Transpose((*range(key.rank - 2), key.rank - 1, key.rank - 2)), key)
    scores = _scaled(w, w.emit(MatMul(), query, turned), factor)
    if is_causal:
        ones = w.filled(scores.shape[-2:], True, "bool")
        attn_mask = w.spell("Trilu", ones, upper=0)
    if attn_mask is None:
        return w.emit(MatMul(), w.emit(Softmax((scores.rank - 1,)), scores), value)
    if attn_mask.dtype == "bool":
        none, all_ = w.full(-math.inf, query.dtype), w.full(0, query.dtype)
        attn_mask = w.emit(Where(), attn_mask, all_, none)
    weights = w.emit(Softmax((scores.rank - 1,)), w.emit(Add(), scores, attn_mask))
    if not is_causal:  # a row that sees nothing is zero
        weights = w.emit(Where(), w.emit(IsNaN(), weights), w.full(0, weights.dtype), weights)
    return w.emit(MatMul(), weights, value)


def _attention_with_sums(
    w: AtenWriter,
    query: AtenValue,
    key: AtenValue,
    value: AtenValue,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    attn_mask: AtenValue | None = None,
    scale: float | None = None,
) -> Sequence[AtenValue | None]:
    """What torch.compile traces on a CPU, where groups of heads may share keys; the second result,
    for gradients, is none here.
    """
    grouped = query.shape[1] != key.shape[1]
    made = attention(w, query, key, value, attn_mask, dropout_p, is_causal, scale, grouped)
    return made, None


def _for_heads(w: AtenWriter, x: AtenValue, query: AtenValue) -> AtenValue:
    """Keys that groups of heads share, for each head."""
    heads, own = closed(query.shape[-3]), closed(x.shape[-3])
    before, behind = x.shape[:-2], x.shape[-2:]
    wide = w.expand(w.reshape(x, (*before, 1, *behind)), (*before, heads // own, *behind))
    return w.reshape(wide, (*x.shape[:-3], heads, *behind))


RULES: dict[str, Rule] = {
    "_scaled_dot_product_flash_attention_for_cpu": _attention_with_sums,
    "addmm": _addmm,
    "baddbmm": _baddbmm,
    "bmm": _mm,
    "dot": _dot,
    "einsum": _einsum,
    "linear": linear,
    "matmul": _matmul,
    "mm": _mm,
    "mv": _mv,
    "scaled_dot_product_attention": attention,
}
