"""MaxPool with the places of its maxima, MaxUnpool, and the pools that rules are made of."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnxruntime as ort
import pytest

from tests.graph.onnx_reference import agree, model_of
from tilewright.graph.compile import compile
from tilewright.graph.errors import ModelError
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ops.base import Operator
from tilewright.graph.ops.pool_places import MaxPoolPlaces, MaxUnpool
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array, TensorType
from tilewright.runtime.index_checks import IndexRangeError

Random = Callable[..., Array]
WINDOWS: list[dict[str, list[int]]] = [
    {"kernel_shape": [2, 2], "strides": [2, 2]},
    {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
    {"kernel_shape": [3, 2], "dilations": [2, 1], "pads": [1, 0, 0, 1]},
]


def compare_with_onnxruntime(x: Array, **settings: int | list[int]) -> None:
    model = model_of("MaxPool", {"x": x}, opset=12, outputs=2, **settings)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted = session.run(None, {"x": x})
    graph = import_onnx(model)
    for found in (evaluate(graph, {"x": x}, dtype=None), compile(graph, cache=False).run({"x": x})):
        for got, expected in zip(found.values(), wanted, strict=True):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.sampled(2)
@pytest.mark.needs_cc
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("columns", [0, 1])
def test_places_of_maxima_agree_with_onnxruntime(
    random_array: Random, window: dict[str, list[int]], columns: int
) -> None:
    x = random_array(1, 2, 3, 7, 6)
    compare_with_onnxruntime(x, storage_order=columns, **window)
    compare_with_onnxruntime(np.round(x), ceil_mode=1, storage_order=columns, **window)


@pytest.mark.sampled(2)
@pytest.mark.needs_cc
@pytest.mark.parametrize("dtype", ["int8", "uint8", "float64"])
def test_places_of_other_types_and_of_the_least_number(random_array: Random, dtype: str) -> None:
    low = -128 if dtype == "int8" else 0
    x = np.clip(4 * random_array(1, 1, 2, 5, 5), low, 100).astype(dtype)
    x[0, 0] = low  # as low as padding
    compare_with_onnxruntime(x, kernel_shape=[3, 3], pads=[1, 1, 1, 1])


def test_places_in_volumes_and_lines_agree_with_onnxruntime(random_array: Random) -> None:
    compare_with_onnxruntime(random_array(1, 1, 2, 4, 3, 5), kernel_shape=[2, 2, 2])
    compare_with_onnxruntime(
        random_array(1, 1, 2, 4, 3, 5), kernel_shape=[2, 2, 2], storage_order=1
    )
    compare_with_onnxruntime(random_array(1, 2, 2, 9), kernel_shape=[3], strides=[2])


@pytest.mark.needs_cc
@pytest.mark.parametrize("window", [{"kernel": (2, 2), "strides": (2, 2)}, {"kernel": (3, 3)}])
def test_what_is_pooled_goes_back_to_its_place(
    check_kernel: Callable[..., None], random_array: Random, window: dict[str, tuple[int, int]]
) -> None:
    kernel, strides = window["kernel"], window.get("strides", (2, 2))
    size = 3 * strides[0] + kernel[0]
    x = random_array(1, 2, 3, size, size)
    values, places = MaxPoolPlaces(kernel, strides).reference(x)
    op = MaxUnpool(kernel, strides, (0, 0, 0, 0))
    (y,) = op.reference(values, places)
    assert y.shape == x.shape
    np.testing.assert_array_equal(y.reshape(-1)[places], values)
    assert np.count_nonzero(y) == len(np.unique(places))
    check_kernel(op, values, places)


def test_unpooling_agrees_with_the_reference(random_array: Random) -> None:
    x = random_array(1, 1, 1, 6, 6)
    values, places = MaxPoolPlaces((2, 2), (2, 2)).reference(x)
    inputs = {"x": values, "places": places}
    window = {"kernel_shape": [2, 2], "strides": [2, 2]}
    agree("MaxUnpool", inputs, opset=11, **window)
    sized = {**inputs, "output_shape": np.array([1, 1, 7, 8])}
    agree("MaxUnpool", sized, opset=11, constants=("output_shape",), **window)


@pytest.mark.needs_cc
def test_a_place_in_another_window_refuses_a_run() -> None:
    inputs = {"x": np.ones((1, 1, 2, 2), np.float32), "places": np.array([[[[0, 3], [8, 0]]]])}
    model = model_of("MaxUnpool", inputs, opset=11, kernel_shape=[2, 2], strides=[2, 2])
    with pytest.raises(IndexRangeError, match=r"'place within its window' of .* is -10; expected"):
        compile(import_onnx(model), cache=False).run(inputs)


@pytest.mark.parametrize("power", [1, 2, 3])
def test_powers_are_pooled(
    check_node: Callable[..., object], random_array: Random, power: int
) -> None:
    x = random_array(1, 2, 3, 7, 6)
    window = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 0, 1], "p": power}
    agree("LpPool", {"x": x}, opset=18, **window)
    agree("LpPool", {"x": x}, opset=22, dilations=[2, 1], **window)
    check_node("LpPool", {"x": x}, opset=18, ceil_mode=1, **window)


@pytest.mark.parametrize("operator", ["GlobalMaxPool", "GlobalLpPool"])
def test_all_elements_are_pooled(
    check_node: Callable[..., object], random_array: Random, operator: str
) -> None:
    check_node(operator, {"x": random_array(1, 2, 3, 5, 4)})
    check_node(operator, {"x": random_array(2, 2, 3, 7)})


def test_automatic_padding_of_powers(
    check_node: Callable[..., object], random_array: Random
) -> None:
    for mode in ("SAME_UPPER", "SAME_LOWER"):
        inputs = {"x": random_array(1, 1, 2, 7, 5)}
        check_node("LpPool", inputs, opset=18, kernel_shape=[3, 2], auto_pad=mode)


REFUSALS: list[tuple[Operator, tuple[TensorType, ...], str]] = [
    (
        MaxUnpool((2, 2), (2, 2), (0, 0, 0, 0)),
        (TensorType("float32", (1, 1, 2, 2)), TensorType("int64", (1, 1, 2, 3))),
        "MaxUnpool: float32[1, 1, 2, 2], int64[1, 1, 2, 3] are no maxima and places of windows "
        "with kernel (2, 2), strides (2, 2), pads (0, 0, 0, 0). [unpool-windows]",
    ),
    (
        MaxUnpool((2, 2), (2, 2), (2, 2, 2, 2)),
        (TensorType("float32", (1, 1, 2, 2)), TensorType("int64", (1, 1, 2, 2))),
        "MaxUnpool: float32[1, 1, 2, 2] gives a result of (0, 0) elements. [unpool-size]",
    ),
]


@pytest.mark.parametrize(("op", "types", "text"), REFUSALS)
def test_what_does_not_fit_is_refused(
    op: Operator, types: tuple[TensorType, ...], text: str
) -> None:
    with pytest.raises(ModelError) as caught:
        op.infer(types)
    assert str(caught.value) == f"ModelError: {text}"


def test_pools_that_do_not_fit_are_refused(refused_node: Callable[..., str]) -> None:
    flat = {"x": np.zeros((2, 3), np.float32)}
    assert refused_node("GlobalMaxPool", flat) == (
        "ModelError: model: node 'the_node' (GlobalMaxPool) pools float32[2, 3]; expected batch, "
        "channels and at least one spatial axis. [onnx-pool-rank]"
    )
    inputs = {
        "x": np.zeros((1, 1, 2, 2), np.float32),
        "places": np.zeros((1, 1, 2, 2), np.int64),
        "size": np.array([1, 1, 3, 4]),
    }
    text = refused_node(
        "MaxUnpool", inputs, constants=("size",), kernel_shape=[2, 2], strides=[2, 2]
    )
    assert text == (
        "ModelError: model: node 'the_node' (MaxUnpool) has output_shape [1, 1, 3, 4]; expected at "
        "least [1, 1, 4, 4]. [onnx-unpool-shape]"
    )
    assert "p is 0" in refused_node("GlobalLpPool", {"x": np.zeros((1, 1, 2), np.float32)}, p=0)
