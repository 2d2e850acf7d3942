"""Activations with a bias or a mask, against onnxruntime."""

from __future__ import annotations

import math

import numpy as np

from tests.graph.importers.onnx.rules.microsoft.contributed import (
    Contributed,
    check_contributed,
    random,
)
from tilewright.graph.types import Array


def test_activations_are_those_of_onnxruntime() -> None:
    x, bias = random(1, 2, 5, 8) * 3, random(2, 8)
    check_contributed(
        Contributed("Gelu", (x,)),
        Contributed("BiasGelu", (x, bias)),
        Contributed("FastGelu", (x,)),
        Contributed("FastGelu", (x, bias)),
        Contributed("QuickGelu", (x,)),
        Contributed("QuickGelu", (x,), {"alpha": 1.25}),
    )


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    found: Array = powers / powers.sum(axis=-1, keepdims=True)
    return found


def gelu(x: Array) -> Array:
    found: Array = x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2
    return found.astype(x.dtype)


def test_a_softmax_takes_a_bias_of_the_first_or_the_last_axes() -> None:
    x = random(3, 2, 3, 4, 5)
    inner, short, outer = random(4, 2, 1, 1, 5), random(6, 2, 5), random(5, 4, 5)
    flat = (x + outer).reshape(2, 3, 20)
    check_contributed(  # onnxruntime has no kernel on a CPU
        Contributed(
            "BiasSoftmax",
            (x, inner),
            {"axis": 3, "is_inner_broadcast": 1},
            expected=(softmax(x + inner),),
        ),
        Contributed(
            "BiasSoftmax",
            (x, short),
            {"axis": -1, "is_inner_broadcast": 1},
            expected=(softmax(x + short.reshape(2, 1, 1, 5)),),
        ),
        Contributed(
            "BiasSoftmax",
            (x, outer),
            {"axis": 2, "is_inner_broadcast": 0},
            expected=(softmax(flat).reshape(x.shape),),
        ),
    )


def test_sums_and_halves_are_what_their_schemas_say() -> None:
    x, bias, skip = random(7, 2, 3, 8), random(8, 8), random(9, 2, 3, 8)
    left, right = np.split(x + bias, 2, axis=-1)
    check_contributed(  # onnxruntime has no kernels on a CPU
        Contributed("BiasAdd", (x, bias, skip), expected=(x + bias + skip,)),
        Contributed("BiasSplitGelu", (x, bias), expected=(left * gelu(right),)),
    )
