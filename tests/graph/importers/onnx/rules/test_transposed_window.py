"""ConvTranspose, which becomes a convolution."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest

from tilewright.graph.compile import compile
from tilewright.graph.types import Array

Check = Callable[..., object]
Random = Callable[..., Array]
Refused = Callable[..., str]

CASES: list[dict[str, object]] = [
    {},
    {"strides": [2, 3]},
    {"strides": [2, 2], "pads": [1, 0, 2, 1]},
    {"strides": [2, 2], "output_padding": [1, 0]},
    {"dilations": [2, 1], "pads": [1, 1, 1, 1]},
    {"strides": [3, 2], "output_shape": [12, 9]},
    {"strides": [2, 2], "auto_pad": "SAME_UPPER"},
    {"strides": [2, 2], "auto_pad": "SAME_LOWER"},
    {"strides": [1, 1], "pads": [3, 0, 2, 3], "dilations": [1, 2]},
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("group", [1, 2])
def test_transposed_convolutions_agree_with_onnxruntime(
    check_node: Check, random_array: Random, case: dict[str, object], group: int
) -> None:
    inputs = {"x": random_array(1, 1, 4, 4, 4), "w": random_array(2, 4, 3, 3, 2)}
    check_node("ConvTranspose", inputs, group=group, **case)


@pytest.mark.needs_cc
def test_constant_weights_are_turned_when_the_model_is_compiled(
    node_model: Callable[..., onnx.ModelProto],
    run_onnxruntime: Callable[..., list[Array]],
    random_array: Random,
) -> None:
    inputs = {
        "x": random_array(1, 1, 16, 7, 7),
        "w": random_array(2, 16, 8, 3, 3),
        "b": random_array(3, 8),
    }
    model = node_model("ConvTranspose", inputs, constants=("w", "b"), strides=[2, 2])
    engine = compile(model, cache=False)
    result = engine.run({"x": inputs["x"]})["y"]
    np.testing.assert_allclose(result, run_onnxruntime(model, inputs)[0], rtol=1e-4, atol=1e-4)


def test_weights_that_do_not_fit_are_refused(refused_node: Refused) -> None:
    inputs = {"x": np.zeros((1, 4, 5), np.float32), "w": np.zeros((3, 2, 3), np.float32)}
    assert refused_node("ConvTranspose", inputs) == (
        "ModelError: model: node 'the_node' (ConvTranspose) has input float32[1, 4, 5], weights "
        "float32[3, 2, 3], group 1, kernel_shape [3], strides [1] and dilations [1], which do not "
        "fit. [onnx-conv-transpose]"
    )
