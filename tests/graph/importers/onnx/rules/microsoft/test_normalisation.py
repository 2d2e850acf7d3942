"""Normalisation of sums, of embeddings and of groups."""

from __future__ import annotations

import numpy as np
import pytest

from tests.graph.importers.onnx.rules.microsoft.contributed import (
    Contributed,
    check_contributed,
    random,
    refusal,
)
from tilewright.graph.types import Array


@pytest.mark.needs_cc
def test_a_sum_is_normalised_and_may_be_an_output() -> None:
    x, gamma = random(1, 2, 3, 8), random(2, 8)
    check_contributed(
        Contributed(
            "SkipLayerNormalization",
            (x, random(3, 2, 3, 8), gamma, random(4, 8), random(5, 8)),
            {"epsilon": 1e-3},
            outputs=(0, 3),
        ),
        Contributed("SkipLayerNormalization", (x, random(3, 3, 8), gamma, random(4, 8))),
        Contributed("SkipLayerNormalization", (x, random(3, 1, 3, 8), gamma)),
        Contributed(
            "SkipSimplifiedLayerNormalization",
            (x, random(3, 2, 3, 8), gamma, random(5, 8)),
            {"epsilon": 1e-3},
            outputs=(0, 3),
        ),
        Contributed("SkipSimplifiedLayerNormalization", (x[0], random(3, 3, 8), gamma)),
        engine=True,
    )


def test_normalisations_stand_in_opsets_that_onnx_does_not_give_them() -> None:
    x, gamma, beta = random(1, 2, 3, 8), random(2, 8), random(3, 8)
    check_contributed(
        Contributed("LayerNormalization", (x, gamma, beta), {"epsilon": 1e-3}, domain=""),
        Contributed("LayerNormalization", (x, gamma), {"axis": 2}, domain=""),
        Contributed("SimplifiedLayerNormalization", (x, gamma), {"epsilon": 1e-3}, domain=""),
        opset=13,
    )


def test_embeddings_are_summed_and_normalised() -> None:
    ids = np.array([[1, 2, 3], [0, 4, 5]], np.int32)
    segments = np.array([[0, 0, 1], [0, 1, 1]], np.int32)
    mask = np.array([[1, 1, 0], [1, 0, 1]], np.int32)
    words, places, kinds = random(1, 6, 8), random(2, 4, 8), random(3, 2, 8)
    gamma, beta = random(4, 8), random(5, 8)
    check_contributed(
        Contributed(
            "EmbedLayerNormalization",
            (ids, segments, words, places, kinds, gamma, beta, mask),
            {"epsilon": 1e-3},
            outputs=3,
        ),
        Contributed(
            "EmbedLayerNormalization",
            (ids, None, words, places, None, gamma, beta),
            outputs=2,
        ),
        Contributed(
            "EmbedLayerNormalization",
            (ids, None, words, places, None, gamma, beta, None, np.array([[2, 1, 0]], np.int32)),
            outputs=(0, 2),
        ),
    )


def grouped(x: Array, gamma: Array, beta: Array, groups: int) -> Array:
    """Groups of the last axis, each with its mean and variance over all axes but the batch."""
    parts = x.reshape(x.shape[0], -1, groups, x.shape[-1] // groups).astype("float64")
    mean = parts.mean(axis=(1, 3), keepdims=True)
    spread = np.sqrt(((parts - mean) ** 2).mean(axis=(1, 3), keepdims=True) + 1e-5)
    found: Array = (((parts - mean) / spread).reshape(x.shape) * gamma + beta).astype(x.dtype)
    return found


def test_groups_are_normalised_and_may_pass_a_silu() -> None:
    x, gamma, beta, bias = random(1, 2, 4, 4, 8), random(2, 8), random(3, 8), random(4, 8)
    skip, flat = random(5, 2, 1, 1, 8), random(6, 2, 8)
    y = grouped(x, gamma, beta, 4)
    total = x + flat.reshape(2, 1, 1, 8) + bias
    first = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    check_contributed(  # onnxruntime has no kernels on a CPU
        Contributed(
            "GroupNorm",
            (x, gamma, beta),
            {"groups": 4, "activation": 1},
            expected=(y / (1 + np.exp(-y)),),
        ),
        Contributed(
            "GroupNorm",
            (first, gamma, beta),
            {"groups": 4, "activation": 0, "channels_last": 0},
            expected=(y.transpose(0, 3, 1, 2),),
        ),
        Contributed(
            "SkipGroupNorm",
            (x, gamma, beta, flat, bias),
            {"groups": 2, "activation": 0},
            outputs=2,
            expected=(grouped(total, gamma, beta, 2), total),
        ),
        Contributed(
            "SkipGroupNorm",
            (x, gamma, beta, skip),
            {"groups": 2, "activation": 0},
            expected=(grouped(x + skip, gamma, beta, 2),),
        ),
    )


def test_statistics_for_training_and_unknown_activations_are_refused() -> None:
    x, gamma = random(1, 2, 3, 8), random(2, 8)
    node = Contributed("SkipLayerNormalization", (x, x, gamma), outputs=2)
    assert "its output 'n0_y1', a statistic for training, is used" in refusal(node)
    group = Contributed("GroupNorm", (x, gamma, gamma), {"groups": 2, "activation": 2})
    assert "activation is 2; known are 0 for none and 1 for SiLU" in refusal(group)


def test_a_skip_that_is_larger_than_the_input_is_refused() -> None:
    x, gamma = random(1, 1, 3, 8), random(2, 8)
    node = Contributed("SkipLayerNormalization", (x, random(3, 2, 3, 8), gamma))
    assert refusal(node) == (
        "ModelError: model: node 'node0' (SkipLayerNormalization) has input float32[1, 3, 8] and "
        "skip float32[2, 3, 8]; expected a skip that broadcasts to the input. [onnx-skip]"
    )
