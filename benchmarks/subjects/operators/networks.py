"""Layers of networks: recurrent ones, norms, attention, of ONNX and of com.microsoft."""

from __future__ import annotations

import numpy as np

from .subject import Draw, Subject, fixed, integers, known, normal, uniform

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_WIDTH, _LENGTH, _HEADS = 768, 128, 12
_X = normal(1, _LENGTH, _WIDTH)


def _small(*shape: int) -> Draw:
    """A constant with elements that keep the scale of what passes."""
    most = (3 / shape[0]) ** 0.5
    return fixed(uniform(-most, most, *shape))


def _recurrent(kind: str, steps: int, batch: int, width: int) -> Subject:
    gates, most = _GATES[kind] * width, width**-0.5
    draws = {
        "x": normal(steps, batch, width),
        **{name: fixed(uniform(-most, most, 1, gates, width)) for name in ("w", "r")},
        "b": fixed(uniform(-most, most, 1, 2 * gates)),
    }
    body = f"y, last = {kind} <hidden_size={width}> (x, w, r, b)"
    return Subject(f"{kind} {steps} steps, {batch}x{width}", body, draws, 14, ("y", "last"))


RECURRENT = (
    _recurrent("LSTM", 100, 1, 256),
    _recurrent("LSTM", 50, 16, 256),
    _recurrent("GRU", 100, 1, 256),
    _recurrent("GRU", 50, 16, 256),
    _recurrent("RNN", 100, 1, 256),
)
_SCALE = fixed(uniform(0.5, 1.5, _WIDTH))
_SHIFT = fixed(normal(_WIDTH))
_CHANNELS = {"s": fixed(uniform(0.5, 1.5, 64)), "b": fixed(normal(64))}
_IMAGE = normal(1, 64, 56, 56)
NORMS = (
    Subject(
        "LayerNormalization 128x768",
        "y = LayerNormalization(x, s, b)",
        {"x": _X, "s": _SCALE, "b": _SHIFT},
        17,
    ),
    Subject("RMSNormalization 128x768", "y = RMSNormalization(x, s)", {"x": _X, "s": _SCALE}, 23),
    Subject(
        "GroupNormalization 64x56x56 of 8",
        "y = GroupNormalization <num_groups=8> (x, s, b)",
        {"x": _IMAGE, **_CHANNELS},
        21,
    ),
    Subject(
        "InstanceNormalization 64x56x56",
        "y = InstanceNormalization(x, s, b)",
        {"x": _IMAGE, **_CHANNELS},
    ),
    Subject("LRN 64x56x56 of 5", "y = LRN <size=5> (x)", {"x": _IMAGE}),
    Subject("LpNormalization 128x768", "y = LpNormalization <axis=2> (x)", {"x": _X}),
    Subject(
        "MeanVarianceNormalization 64x56x56", "y = MeanVarianceNormalization(x)", {"x": _IMAGE}
    ),
)


def _attended(name: str, heads: int, own: int, queries: int, keys: int, attributes: str) -> Subject:
    draws = {
        "q": normal(1, heads, queries, 64),
        "k": normal(1, own, keys, 64),
        "v": normal(1, own, keys, 64),
    }
    return Subject(name, f"y = Attention {attributes} (q, k, v)", draws, 23)


def _turns(rows: int, width: int) -> tuple[Draw, Draw]:
    angles = np.outer(np.arange(rows), 10000.0 ** (-np.arange(width) / width))
    return known(np.cos(angles)), known(np.sin(angles))


_COS, _SIN = _turns(_LENGTH, 32)
_PLACES = known(np.arange(_LENGTH)[np.newaxis], "int64")
ATTENTION = (
    _attended("Attention 12x128x64", 12, 12, 128, 128, ""),
    _attended("Attention 12x128x64, causal", 12, 12, 128, 128, "<is_causal=1>"),
    _attended("Attention 32 heads over 8, 1 query, 512 keys", 32, 8, 1, 512, ""),
    Subject(
        "RotaryEmbedding 12x128x64",
        "y = RotaryEmbedding(x, c, s, p)",
        {"x": normal(1, 12, 128, 64), "c": _COS, "s": _SIN, "p": _PLACES},
        23,
    ),
)


def _heads(**more: Draw) -> dict[str, Draw]:
    return {name: normal(1, _LENGTH, _WIDTH) for name in "qkv"} | more


def _grouped(length: int, past: int) -> Subject:
    draws = {
        "q": normal(1, length, 32 * 64),
        "k": normal(1, length, 8 * 64),
        "v": normal(1, length, 8 * 64),
        "pk": normal(1, 8, past, 64),
        "pv": normal(1, 8, past, 64),
        "n": known([past + length - 1], "int32"),
        "t": known(past + length, "int32"),
    }
    call = "com.microsoft.GroupQueryAttention <num_heads=32, kv_num_heads=8>"
    body = f"y, nk, nv = {call} (q, k, v, pk, pv, n, t)"
    name = f"GroupQueryAttention 32 heads over 8, {length} after {past}"
    return Subject(name, body, draws, outputs=("y", "nk", "nv"))


def _blocks(bits: int, rows: int) -> Subject:
    inner, columns, block = 1024, 1024, 32
    draws = {
        "x": normal(rows, inner),
        "w": fixed(integers(0, 256, columns, inner // block, block * bits // 8, dtype="uint8")),
        "s": fixed(uniform(0.001, 0.01, columns * inner // block)),
    }
    sizes = f"K={inner}, N={columns}, bits={bits}, block_size={block}"
    body = f"y = com.microsoft.MatMulNBits <{sizes}> (x, w, s)"
    return Subject(f"MatMulNBits {bits} bits {rows}x{inner}x{columns}", body, draws)


_NORMED = {"x": _X, "r": normal(1, _LENGTH, _WIDTH), "s": _SCALE, "b": _SHIFT}
_PACKED = {"x": _X, "w": _small(_WIDTH, 3 * _WIDTH), "b": fixed(normal(3 * _WIDTH))}
MICROSOFT = (
    Subject(
        "FusedMatMul 128x768 by its transpose",
        "y = com.microsoft.FusedMatMul <alpha=0.125, transB=1> (a, b)",
        {"a": normal(12, 128, 64), "b": normal(12, 128, 64)},
    ),
    Subject(
        "BiasGelu 128x3072",
        "y = com.microsoft.BiasGelu(x, b)",
        {"x": normal(128, 3072), "b": fixed(normal(3072))},
    ),
    Subject(
        "FastGelu 128x3072",
        "y = com.microsoft.FastGelu(x, b)",
        {"x": normal(128, 3072), "b": fixed(normal(3072))},
    ),
    Subject("QuickGelu 128x3072", "y = com.microsoft.QuickGelu(x)", {"x": normal(128, 3072)}),
    Subject(
        "SkipLayerNormalization 128x768",
        "y = com.microsoft.SkipLayerNormalization(x, r, s, b)",
        _NORMED,
    ),
    Subject(
        "SkipSimplifiedLayerNormalization 128x768",
        "y = com.microsoft.SkipSimplifiedLayerNormalization(x, r, s)",
        {n: _NORMED[n] for n in "xrs"},
    ),
    Subject(
        "EmbedLayerNormalization 128 of 30000x768",
        "y, m = com.microsoft.EmbedLayerNormalization(i, g, w, p, t, s, b, a)",
        {
            "i": integers(0, 30000, 1, _LENGTH, dtype="int32"),
            "g": integers(0, 2, 1, _LENGTH, dtype="int32"),
            "w": fixed(normal(30000, _WIDTH)),
            "p": fixed(normal(512, _WIDTH)),
            "t": fixed(normal(2, _WIDTH)),
            "s": _SCALE,
            "b": _SHIFT,
            "a": known(np.ones((1, _LENGTH)), "int32"),
        },
    ),
    Subject(
        "Attention of com.microsoft 128x768",
        f"y = com.microsoft.Attention <num_heads={_HEADS}> (x, w, b)",
        _PACKED,
    ),
    Subject(
        "MultiHeadAttention 128x768",
        f"y = com.microsoft.MultiHeadAttention <num_heads={_HEADS}> (q, k, v)",
        _heads(),
    ),
    _grouped(1, 511),
    Subject(
        "RotaryEmbedding of com.microsoft 12x128x64",
        "y = com.microsoft.RotaryEmbedding(x, p, c, s)",
        {"x": normal(1, 12, 128, 64), "p": _PLACES, "c": _COS, "s": _SIN},
    ),
    _blocks(4, 1),
    _blocks(4, 128),
    _blocks(8, 1),
)
