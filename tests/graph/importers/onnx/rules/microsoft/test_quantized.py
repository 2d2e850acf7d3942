"""Operators of integers that stand for floating-point numbers, against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest

from tests.graph.importers.onnx.rules.microsoft.contributed import (
    Contributed,
    check_contributed,
    drawn,
    random,
    refusal,
)
from tilewright.graph.types import Array

TYPES = ("uint8", "int8")


def real(*values: float) -> Array:
    """One number, or a list of them."""
    return np.array(values[0] if len(values) == 1 else values, np.float32)


def level(*values: int, dtype: str = "uint8") -> Array:
    """One zero point, or a list of them."""
    return np.array(values[0] if len(values) == 1 else values, dtype)


def drawn_levels(seed: int, dtype: str, *shape: int) -> tuple[Array, Array, Array]:
    """Integers, their scale and their zero point."""
    return drawn(seed, dtype, *shape), real(0.02), level(3, dtype=dtype)


def test_numbers_become_levels_and_levels_numbers() -> None:
    x = random(1, 2, 3, 4) * np.float32(100)
    check_contributed(
        Contributed("QuantizeLinear", (x, real(0.7), level(5))),
        Contributed("QuantizeLinear", (x, real(0.7))),
        Contributed("QuantizeLinear", (x, real(0.001), level(5, dtype="int16"))),
        Contributed(
            "QuantizeLinear",
            (x, real(0.7, 0.5, 0.3), level(5, 6, -7, dtype="int8")),
            {"axis": 1},
        ),
        Contributed("DequantizeLinear", drawn_levels(1, "uint8", 2, 3)),
        Contributed("DequantizeLinear", (drawn(1, "int32", 2, 3), real(0.1))),
        Contributed(
            "DequantizeLinear",
            (drawn(1, "int8", 2, 3), real(0.1, 0.2, 0.3), level(1, 2, -3, dtype="int8")),
            {"axis": -1},
        ),
    )


def test_functions_of_levels_are_rounded_once() -> None:
    nodes = []
    for dtype in TYPES:
        a, b = drawn_levels(1, dtype, 2, 3, 4), drawn_levels(2, dtype, 3, 1)
        to = real(0.05), level(7, dtype=dtype)
        nodes += [
            Contributed("QLinearAdd", (*a, *b, *to)),
            Contributed("QLinearMul", (*a, *b, *to)),
            Contributed("QLinearSigmoid", (*a, real(1 / 256), level(0, dtype=dtype))),
            Contributed("QLinearLeakyRelu", (*a, *to), {"alpha": 0.2}),
        ]
    uniform = real(1 / 256), level(0)
    nodes += [
        Contributed(
            "QLinearSoftmax",
            (*drawn_levels(3, "uint8", 4, 10), *uniform),
            {"opset": 13, "axis": -1},
        ),
        Contributed(
            "QLinearSoftmax",
            (*drawn_levels(4, "int8", 2, 3, 4), uniform[0], level(-128, dtype="int8")),
            {"opset": 12, "axis": 1},
        ),
        Contributed(
            "QLinearWhere",
            (
                np.array([True, False, True]),
                *drawn_levels(5, "uint8", 2, 3),
                *drawn_levels(6, "uint8", 2, 3),
                real(0.05),
                level(7),
            ),
        ),
        Contributed(
            "QLinearConcat",
            (
                real(0.04),
                level(9),
                *drawn_levels(7, "uint8", 2, 3),
                *(drawn(8, "uint8", 2, 2), real(0.05), level(1)),
            ),
            {"axis": 1},
        ),
    ]
    check_contributed(*nodes)


def test_means_of_levels_are_rounded_once() -> None:
    pool = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    x, to = drawn_levels(1, "uint8", 1, 2, 7, 8), (real(0.018), level(4))
    last = drawn_levels(2, "int8", 1, 7, 8, 2), (real(0.018), level(4, dtype="int8"))
    data = drawn(3, "uint8", 2, 3, 4)
    mean = np.rint((data.astype("float32") - 3).mean(axis=1) * (0.02 / 0.03)) + 7
    check_contributed(
        Contributed("QLinearAveragePool", (*x, *to), pool),
        Contributed(
            "QLinearAveragePool",
            (*last[0], *last[1]),
            {**pool, "channels_last": 1, "count_include_pad": 1},
        ),
        Contributed("QLinearGlobalAveragePool", (*x, *to)),
        Contributed("QLinearGlobalAveragePool", (*last[0], *last[1]), {"channels_last": 1}),
        Contributed(  # onnxruntime has no kernel on a CPU
            "QLinearReduceMean",
            (data, real(0.02), level(3), real(0.03), level(7)),
            {"axes": [1], "keepdims": 0},
            expected=(np.clip(mean, 0, 255).astype("uint8"),),
        ),
    )


@pytest.mark.needs_cc
def test_engines_round_as_the_reference_does() -> None:
    a, b = drawn_levels(1, "int8", 2, 3, 4), drawn_levels(2, "int8", 3, 1)
    check_contributed(
        Contributed("QLinearAdd", (*a, *b, real(0.05), level(7, dtype="int8"))),
        Contributed("QuantizeLinear", (random(1, 2, 3, 4), real(0.007), level(5))),
        engine=True,
    )


def test_levels_that_do_not_fit_are_refused() -> None:
    x = random(1, 2, 3)
    node = Contributed("QuantizeLinear", (x, real(0.7, 0.5), level(5, 6)), {"axis": 1})
    assert refusal(node) == (
        "ModelError: model: node 'node0' (QuantizeLinear) has float32[2] for float32[2, 3] along "
        "axis 1; expected one number, one for each element of the axis, or one for each block. "
        "[onnx-quantized-shape]"
    )
    part = Contributed("QLinearConcat", (real(0.04), level(9), x), {"axis": 1})
    assert refusal(part) == (
        "ModelError: model: node 'node0' (QLinearConcat) has 3 inputs; expected a scale and a zero "
        "point, then three for each part. [onnx-concat-levels]"
    )
