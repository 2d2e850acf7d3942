"""Attention, MultiHeadAttention and DecoderMaskedMultiHeadAttention, against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest

from tests.graph.importers.onnx.rules.microsoft.contributed import (
    Contributed,
    check_contributed,
    drawn,
    expected_of,
    model_of,
    random,
    refusal,
)
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ops.attention import Attention
from tilewright.graph.passes.pipeline import optimise
from tilewright.graph.types import Array

B, S, L, N, H, P = 2, 3, 4, 2, 4, 2  # batch, rows, places, heads, their depth, places of the past
T, WIDTH = P + S, N * H
HEADS = {"num_heads": N}
X, W, BIAS = random(1, B, S, 6), random(2, 6, 3 * WIDTH), random(3, 3 * WIDTH)
Q, K, V = random(4, B, S, WIDTH), random(5, B, L, WIDTH), random(6, B, L, WIDTH)
PAST = random(7, 2, B, N, P, H)


def marks(seed: int, *shape: int) -> Array:
    """Zeros and ones."""
    return (drawn(seed, "uint8", *shape) % 2).astype(np.int32)


def whole(*values: object) -> Array:
    return np.array(values, np.int32)


def test_queries_keys_and_values_are_one_product() -> None:
    wide = (X, random(2, 6, 4 * WIDTH), random(3, 4 * WIDTH))
    check_contributed(
        Contributed("Attention", (X, W, BIAS), HEADS),
        Contributed("Attention", (X, W, None), {**HEADS, "scale": 0.3}),
        Contributed("Attention", wide, {**HEADS, "qkv_hidden_sizes": [WIDTH, WIDTH, 2 * WIDTH]}),
        Contributed("Attention", (X, W, BIAS), {**HEADS, "unidirectional": 1}, outputs=2),
        Contributed(
            "Attention", (X, W, BIAS, None, PAST), {**HEADS, "unidirectional": 1}, outputs=2
        ),
    )


def test_masks_are_lengths_marks_or_numbers_that_are_added() -> None:
    places = whole([1, 0, 1], [0, 1, 1])
    only = {**HEADS, "unidirectional": 1}
    check_contributed(
        Contributed("Attention", (X, W, BIAS, whole(2, 3)), HEADS),
        Contributed("Attention", (X, W, BIAS, whole(2, 3, 0, 1)), HEADS),
        Contributed("Attention", (X, W, BIAS, places), HEADS),
        Contributed("Attention", (X, W, BIAS, places), {**only, "mask_filter_value": -50.0}),
        Contributed("Attention", (X, W, BIAS, whole([0, 0, 0], [0, 1, 1])), only),
        Contributed("Attention", (X, W, BIAS, marks(1, B, S, S)), HEADS),
        Contributed("Attention", (X, W, BIAS, marks(1, B, T), PAST), only, outputs=2),
        Contributed("Attention", (X, W, BIAS, marks(1, B, S, T), PAST), HEADS, outputs=2),
        Contributed("Attention", (X, W, BIAS, None, None, random(8, B, N, S, S)), HEADS),
        Contributed("Attention", (X, W, BIAS, places, None, random(8, 1, 1, S, S)), only),
        rtol=1e-3,
        atol=1e-4,  # scores of -10000 have three digits behind the point
    )


def test_a_mask_of_four_axes_has_a_row_for_each_place_there_may_be() -> None:
    full = marks(2, B, 1, 8, 8)
    part = np.ascontiguousarray(full[:, 0, P:T, :T])
    same = Contributed("Attention", (X, W, BIAS, part, PAST), HEADS, outputs=2)
    expected = tuple(expected_of((same,), 17).values())
    node = Contributed(  # onnxruntime has no kernel on a CPU
        "Attention", (X, W, BIAS, full, PAST), HEADS, outputs=2, expected=expected
    )
    check_contributed(node)


def test_operands_have_any_layout() -> None:
    apart = random(9, B, S, N, 3, H)
    q, k, v = (np.ascontiguousarray(apart[:, :, :, n]).reshape(B, S, WIDTH) for n in range(3))
    pair = random(10, B, L, N, 2, H)
    keys, values = (np.ascontiguousarray(pair[:, :, :, n]).reshape(B, L, WIDTH) for n in range(2))
    packed = tuple(
        expected_of((Contributed("MultiHeadAttention", parts, HEADS),), 17)["n0_y0"]
        for parts in ((q, k, v), (Q, keys, values))
    )
    heads = random(11, B, N, L, H), random(12, B, N, L, H)
    wide = random(6, B, L, 2 * WIDTH)
    check_contributed(
        Contributed("MultiHeadAttention", (Q, K, V), HEADS),
        Contributed("MultiHeadAttention", (Q, K, V, BIAS), {**HEADS, "scale": 0.3}),
        Contributed("MultiHeadAttention", (Q, K, wide, random(3, 4 * WIDTH)), HEADS),
        Contributed("MultiHeadAttention", (Q, *heads), HEADS),
        Contributed("MultiHeadAttention", (Q, *heads, BIAS), HEADS),
        # onnxruntime has no kernels of these on a CPU
        Contributed("MultiHeadAttention", (apart,), HEADS, expected=packed[:1]),
        Contributed("MultiHeadAttention", (Q, pair), HEADS, expected=packed[1:]),
    )


@pytest.mark.needs_cc
def test_engines_compute_it() -> None:
    check_contributed(
        Contributed("Attention", (X, W, BIAS, whole(2, 3)), {**HEADS, "unidirectional": 1}),
        Contributed("MultiHeadAttention", (Q, K, V, BIAS, marks(3, B, L)), HEADS, outputs=3),
        engine=True,
    )


def test_keys_are_masked_and_follow_those_of_the_past() -> None:
    k, v = (np.ascontiguousarray(x[:, :S]) for x in (K, V))
    only = {**HEADS, "unidirectional": 1}
    check_contributed(
        Contributed("MultiHeadAttention", (Q, k, v), only),
        Contributed("MultiHeadAttention", (Q, K, V, None, whole(2, 3)), HEADS),
        Contributed("MultiHeadAttention", (Q, K, V, None, marks(3, B, L)), HEADS),
        Contributed("MultiHeadAttention", (Q, K, V, None, marks(4, B, S, L)), HEADS),
        Contributed(
            "MultiHeadAttention", (Q, K, V, None, None, random(8, 1, N, S, L)), HEADS, outputs=3
        ),
        Contributed("MultiHeadAttention", (Q, k, v, BIAS, None, None, *PAST), HEADS, outputs=3),
        Contributed(
            "MultiHeadAttention",
            (Q, k, v, None, marks(5, B, T), random(9, B, 1, S, T), *PAST),
            only,
            outputs=3,
        ),
        Contributed(
            "MultiHeadAttention",
            (Q, K, V, None, whole([1, 0, 1, 1], [1, 1, 0, 0])),
            HEADS,
            outputs=(0, 3),
            untyped=3,
        ),
        rtol=1e-3,
        atol=1e-3,
    )


def test_a_decoder_has_one_row() -> None:
    q, k, v = (np.ascontiguousarray(x[:, :1]) for x in (Q, K, V))
    seen = marks(5, B, P + 1)
    same = Contributed("MultiHeadAttention", (q, k, v, BIAS, seen, None, *PAST), HEADS, outputs=3)
    inputs = (q, k, v, seen, None, *PAST, None, None, None, BIAS)
    name = "DecoderMaskedMultiHeadAttention"
    check_contributed(
        Contributed(name, (q, *PAST), {**HEADS, "output_qk": 1}, outputs=(0, 3), untyped=3),
        # onnxruntime wants a buffer that past and present share
        Contributed(
            name, inputs, HEADS, outputs=3, expected=tuple(expected_of((same,), 17).values())
        ),
        rtol=1e-3,
        atol=1e-3,
    )


def test_the_passes_make_one_operator_of_it() -> None:
    k, v = (np.ascontiguousarray(x[:, :S]) for x in (K, V))
    nodes = (
        Contributed("Attention", (X, W, BIAS, whole(2, 3)), {**HEADS, "unidirectional": 1}),
        Contributed("MultiHeadAttention", (Q, k, v, BIAS, marks(3, B, S)), HEADS),
    )
    graph, _ = optimise(import_onnx(model_of(nodes)))
    assert sum(isinstance(node.op, Attention) for node in graph.nodes) == 2


def test_rotations_take_places_or_the_first_one() -> None:
    x, cos, sin = random(1, 2, 3, 16), random(2, 9, 4), random(3, 9, 4)
    places, first = np.array([[0, 1, 2], [3, 4, 5]]), np.array([2])
    check_contributed(
        Contributed("RotaryEmbedding", (x, places, cos, sin)),
        Contributed("RotaryEmbedding", (x, first, cos, sin), {"interleaved": 1}),
        Contributed(
            "RotaryEmbedding",
            (x, first, cos[:, :2].copy(), sin[:, :2].copy()),
            {"num_heads": 2, "rotary_embedding_dim": 4},
        ),
        Contributed("RotaryEmbedding", (random(4, 2, 4, 3, 8), places, cos, sin)),
    )
    scaled = Contributed("RotaryEmbedding", (x, first, cos, sin), {"scale": 2.0})
    assert "scale is 2; known is 1" in refusal(scaled)
    packed = Contributed("RotaryEmbedding", (x, first, cos, sin), {"is_packed_batching": 1})
    assert "is_packed_batching is 1" in refusal(packed)


def test_what_is_not_known_is_refused_by_name() -> None:
    shared = {**HEADS, "past_present_share_buffer": 1}
    for node, text in (
        (Contributed("Attention", (X, W, BIAS), {**HEADS, "do_rotary": 1}), "do_rotary is 1"),
        (Contributed("Attention", (X, W, BIAS), shared), "past and present share a buffer"),
        (
            Contributed("Attention", (X, W, BIAS, whole(*range(8))), HEADS),
            "its mask is int32[8] for scores [2, 2, 3, 3]",
        ),
        (
            Contributed("MultiHeadAttention", (Q, K, V), {**HEADS, "unidirectional": 1}),
            "unidirectional is 1 for scores [2, 2, 3, 4]",
        ),
        (Contributed("MultiHeadAttention", (Q[0], K, V), HEADS), "its query is float32[3, 8]"),
    ):
        assert text in refusal(node)


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (
            Contributed("MultiHeadAttention", (Q, K, V), {"num_heads": 3}),
            "node 'node0' (MultiHeadAttention) has 3 heads in 8 numbers; expected heads of equal "
            "size. [onnx-heads]",
        ),
        (
            Contributed("Attention", (X[0], W, BIAS), HEADS),
            "node 'node0' (Attention) has a projection float32[3, 24]; expected [batch, places, "
            "sizes of q, k and v]. [onnx-attention-input]",
        ),
        (
            Contributed("Attention", (X, W, BIAS), {**HEADS, "qkv_hidden_sizes": [8, 8, 4]}),
            "node 'node0' (Attention) has float32[2, 3, 24] for parts of 8, 8, 4 numbers; expected "
            "as many as these have together. [onnx-attention-parts]",
        ),
        (
            Contributed("MultiHeadAttention", (Q, K[0], V), HEADS),
            "node 'node0' (MultiHeadAttention) reads 'n0_x1' of type float32[4, 8]; expected 3 "
            "or 4 axes. [onnx-rank]",
        ),
        (
            Contributed("RotaryEmbedding", (BIAS, np.array([2]), X[0], X[0])),
            "node 'node0' (RotaryEmbedding) has input float32[24]; expected [batch, places, "
            "numbers] or [batch, heads, places, numbers]. [onnx-rotary-input]",
        ),
    ],
)
def test_what_does_not_fit_is_refused(node: Contributed, text: str) -> None:
    assert refusal(node) == f"ModelError: model: {text}"
