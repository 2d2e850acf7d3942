"""Rules of whole attentions and whole layers of transformers, which PyTorch runs as one operator
where no gradient is needed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .....tir.sizes import closed
from ....ops.arithmetic import Add
from ....ops.logic import Where
from ....ops.movement import Transpose
from ...onnx.node import NotSupported
from ..rule import Rule
from ..writer import AtenValue, AtenWriter
from .activation import gelu
from .normalisation import layer_norm
from .products import attention, linear

_KEYS, _PAIRS = 1, 0  # kinds of masks: of keys, for each text; of pairs of places
_SWAPPED = (0, 2, 1, 3)  # heads before places, or behind them


def _encoder_layer(
    w: AtenWriter,
    src: AtenValue,
    embed_dim: int,
    num_heads: int,
    qkv_weight: AtenValue,
    qkv_bias: AtenValue,
    proj_weight: AtenValue,
    proj_bias: AtenValue,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: AtenValue,
    norm_bias_1: AtenValue,
    norm_weight_2: AtenValue,
    norm_bias_2: AtenValue,
    ffn_weight_1: AtenValue,
    ffn_bias_1: AtenValue,
    ffn_weight_2: AtenValue,
    ffn_bias_2: AtenValue,
    mask: AtenValue | None = None,
    mask_type: int | None = None,
) -> AtenValue:
    """torch.nn.TransformerEncoderLayer."""

    def normed(x: AtenValue, weight: AtenValue, bias: AtenValue) -> AtenValue:
        return layer_norm(w, x, x.shape[-1:], weight, bias, eps)

    def mixed(x: AtenValue) -> AtenValue:
        weights = qkv_weight, qkv_bias, proj_weight, proj_bias
        return _mixed(w, x, num_heads, weights, mask, mask_type)

    def fed(x: AtenValue) -> AtenValue:
        wide = linear(w, x, ffn_weight_1, ffn_bias_1)
        return linear(
            w, gelu(w, wide) if use_gelu else w.spell("Relu", wide), ffn_weight_2, ffn_bias_2
        )

    first, second = (norm_weight_1, norm_bias_1), (norm_weight_2, norm_bias_2)
    if norm_first:
        x = w.emit(Add(), src, mixed(normed(src, *first)))
        return w.emit(Add(), x, fed(normed(x, *second)))
    x = normed(w.emit(Add(), src, mixed(src)), *first)
    return normed(w.emit(Add(), x, fed(x)), *second)


def _multi_head_attention(
    w: AtenWriter,
    query: AtenValue,
    key: AtenValue,
    value: AtenValue,
    embed_dim: int,
    num_head: int,
    qkv_weight: AtenValue,
    qkv_bias: AtenValue,
    proj_weight: AtenValue,
    proj_bias: AtenValue,
    mask: AtenValue | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> Sequence[AtenValue | None]:
    """torch.nn.MultiheadAttention of one sequence with itself."""
    if not query.value == key.value == value.value:
        raise NotSupported("query, key and value are several tensors")
    if w.results > 1:
        raise NotSupported("somebody reads its weights", "need_weights=False.")
    weights = qkv_weight, qkv_bias, proj_weight, proj_bias
    return _mixed(w, query, num_head, weights, mask, mask_type), None


def _mixed(
    w: AtenWriter,
    x: AtenValue,
    heads: int,
    weights: Sequence[AtenValue],
    mask: AtenValue | None,
    kind: int | None,
) -> AtenValue:
    """The attention of a sequence with itself, with its products before and behind it."""
    qkv_weight, qkv_bias, proj_weight, proj_bias = weights
    batch, length, width = x.shape
    depth = closed(width) // heads
    thirds = (w.spell_all("Split", 3, one, axis=0, num_outputs=3) for one in (qkv_weight, qkv_bias))
    query, key, value = (
        w.emit(Transpose(_SWAPPED), w.reshape(linear(w, x, *own), (batch, length, heads, depth)))
        for own in zip(*thirds, strict=True)
    )
    bias = None if mask is None else _bias(w, mask, kind, x.dtype)
    made = attention(w, query, key, value, bias)
    joined = w.reshape(w.emit(Transpose(_SWAPPED), made), x.shape)
    return linear(w, joined, proj_weight, proj_bias)


def _bias(w: AtenWriter, mask: AtenValue, kind: int | None, dtype: str) -> AtenValue:
    """What is added to scores; a mask is true where nothing is seen."""
    if mask.dtype != "bool" or kind not in (_KEYS, _PAIRS):
        raise NotSupported(f"its mask is of kind {kind} and {mask.dtype}; known are truth values")
    if kind == _KEYS:
        mask = w.reshape(mask, (mask.shape[0], 1, 1, mask.shape[1]))
    return w.emit(Where(), mask, w.full(-math.inf, dtype), w.full(0, dtype))


RULES: dict[str, Rule] = {
    "_native_multi_head_attention": _multi_head_attention,
    "_transformer_encoder_layer_fwd": _encoder_layer,
}
