"""BatchNormalization and LRN."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from onnx import ValueInfoProto, helper

from tilewright.graph.errors import ModelError
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ops.normalisation import LRN, BatchNormalization
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array, TensorType

Check = Callable[..., object]
Random = Callable[..., Array]


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 3), (1, 3, 6)])
@pytest.mark.parametrize("opset", [7, 9, 15])
def test_batch_normalization_agrees_with_onnxruntime(
    check_node: Check, random_array: Random, shape: tuple[int, ...], opset: int
) -> None:
    inputs = {"x": random_array(1, *shape)}
    inputs |= {name: random_array(n, 3) for n, name in enumerate(("scale", "bias", "mean"))}
    inputs["variance"] = np.abs(random_array(9, 3)) + np.float32(0.1)
    check_node("BatchNormalization", inputs, opset=opset, epsilon=1e-3)


@pytest.mark.parametrize(("dtype", "opset"), [("float32", 14), ("float64", 15), ("float16", 15)])
def test_in_training_the_statistics_are_those_of_the_batch(dtype: str, opset: int) -> None:
    random = np.random.default_rng(4)
    x = random.standard_normal((4, 3, 5, 2)).astype(dtype)
    scale, bias = (random.standard_normal(3).astype(dtype) for _ in range(2))
    kind = "float32" if dtype == "float16" else dtype
    mean, variance = (random.uniform(1, 2, 3).astype(kind) for _ in range(2))
    given = {"x": x, "scale": scale, "bias": bias, "mean": mean, "variance": variance}
    settings = {"training_mode": 1, "momentum": 0.7, "epsilon": 1e-3}
    node = helper.make_node("BatchNormalization", list(given), ["y", "m", "v"], **settings)
    declared = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in given.items()
    ]
    outputs = [ValueInfoProto(name=name) for name in ("y", "m", "v")]
    made = helper.make_graph([node], "g", declared, outputs)
    opsets = [helper.make_opsetid("", opset)]
    graph = import_onnx(helper.make_model(made, opset_imports=opsets, ir_version=8))
    found = evaluate(graph, given, dtype=None)
    wide = x.astype(np.float64)
    average, spread = wide.mean((0, 2, 3)), wide.var((0, 2, 3))
    shape = (3, 1, 1)
    factor = scale.astype(np.float64) / np.sqrt(spread + 1e-3)
    expected = (wide - average.reshape(shape)) * factor.reshape(shape) + bias.reshape(shape)
    tolerance = 4e-3 if dtype == "float16" else 1e-5
    np.testing.assert_allclose(found["y"], expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(found["m"], 0.7 * mean + 0.3 * average, rtol=1e-5)
    np.testing.assert_allclose(found["v"], 0.7 * variance + 0.3 * spread, rtol=1e-5)
    assert [found[name].dtype for name in "ymv"] == [x.dtype, mean.dtype, mean.dtype]


@pytest.mark.parametrize("size", [1, 3, 5, 9])
@pytest.mark.parametrize("shape", [(2, 6, 4, 5), (1, 4, 3)])
def test_lrn_agrees_with_onnxruntime(
    check_node: Check, random_array: Random, size: int, shape: tuple[int, ...]
) -> None:
    if len(shape) == 4:  # onnxruntime's limit
        check_node("LRN", {"x": random_array(1, *shape)}, size=size, alpha=0.3, beta=0.6, bias=1.5)
    x = random_array(2, *shape).astype("float64")
    (y,) = LRN(size, 0.3, 0.6, 1.5).reference(x)
    for c in range(shape[1]):
        near = x[:, max(0, c - (size - 1) // 2) : c + size // 2 + 1]
        expected = x[:, c] / (1.5 + 0.3 / size * (near**2).sum(axis=1)) ** 0.6
        np.testing.assert_allclose(y[:, c], expected)


def test_an_even_window_of_lrn_reaches_further_to_the_right() -> None:
    x = np.array([[1.0, 2.0, 3.0]]).reshape(1, 3, 1, 1)
    (y,) = LRN(2, alpha=2.0, beta=1.0, bias=0.0).reference(x)
    np.testing.assert_allclose(y.reshape(-1), [1 / 5, 2 / 13, 3 / 9])


def test_parameters_that_do_not_fit_are_refused() -> None:
    x, channels = TensorType("float32", (1, 3, 4)), TensorType("float32", (3,))
    cases = [
        (
            BatchNormalization(),
            (x, channels, channels, channels, TensorType("float32", (4,))),
            "BatchNormalization: scale, bias, mean and variance must have shape (3,), got "
            "float32[3], float32[3], float32[3], float32[4]. [batch-norm-channels]",
        ),
        (
            BatchNormalization(),
            (channels,) * 5,
            "BatchNormalization: expected data with a channel axis, got float32[3]. "
            "[batch-norm-rank]",
        ),
        (
            LRN(0),
            (x,),
            "LRN: expected data with a channel axis and size >= 1, got float32[1, 3, 4] and size "
            "0. [lrn-shape]",
        ),
    ]
    for op, types, text in cases:
        with pytest.raises(ModelError) as caught:
            op.infer(types)
        assert str(caught.value) == f"ModelError: {text}"


def test_a_window_of_lrn_is_never_wider_than_the_channels(check_kernel: Check) -> None:
    x = np.arange(24, dtype=np.float64).reshape(1, 6, 4)
    (y,) = LRN(2**40, 2.0**40, 0.5, 1.0).reference(x)
    np.testing.assert_allclose(y, x / np.sqrt(1 + (x**2).sum(axis=1, keepdims=True)))
    assert LRN(11).reach(6) == (5, 5)
    assert LRN(10).reach(6) == (4, 5)
    assert LRN(5).reference(np.zeros((1, 0, 4)))[0].shape == (1, 0, 4)
    check_kernel(LRN(2**40), x.astype(np.float32))
