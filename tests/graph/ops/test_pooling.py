"""Pooling against onnxruntime, with mixtures of padding, dilation and rounding."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import onnx
import pytest

from tilewright.graph.errors import ModelError
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ops.pooling import AveragePool, MaxPool
from tilewright.graph.ops.window import Axis
from tilewright.graph.types import Array, TensorType
from tilewright.tir.dim import Dim
from tilewright.tir.sizes import size_in, size_of

Check = Callable[..., object]
Random = Callable[..., Array]

WINDOWS: list[dict[str, list[int]]] = [
    {"kernel_shape": [3, 3]},
    {"kernel_shape": [3, 2], "strides": [2, 3]},
    {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
    {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [0, 0, 1, 1]},
    {"kernel_shape": [2, 3], "strides": [3, 2], "pads": [1, 2, 0, 1]},
]


@pytest.mark.parametrize(("window", "ceil"), list(itertools.product(WINDOWS, (0, 1))))
def test_max_pool_agrees_with_onnxruntime(
    check_node: Check, random_array: Random, window: dict[str, list[int]], ceil: int
) -> None:
    inputs = {"x": random_array(1, 2, 3, 10, 9)}
    check_node("MaxPool", inputs, opset=12, ceil_mode=ceil, **window)
    check_node("MaxPool", inputs, opset=12, ceil_mode=ceil, dilations=[2, 3], **window)


@pytest.mark.parametrize(
    ("window", "ceil", "include"), list(itertools.product(WINDOWS, (0, 1), (0, 1)))
)
def test_average_pool_agrees_with_onnxruntime(
    check_node: Check, random_array: Random, window: dict[str, list[int]], ceil: int, include: int
) -> None:
    inputs = {"x": random_array(1, 2, 3, 10, 9)}
    check_node("AveragePool", inputs, opset=19, ceil_mode=ceil, count_include_pad=include, **window)


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_automatic_padding_agrees_with_onnxruntime(
    check_node: Check, random_array: Random, mode: str
) -> None:
    inputs = {"x": random_array(1, 1, 2, 11, 8)}
    for operator in ("MaxPool", "AveragePool"):
        check_node(operator, inputs, kernel_shape=[3, 4], strides=[2, 3], auto_pad=mode)


def test_dilated_average_pool_agrees_with_onnxruntime(
    check_node: Check, random_array: Random
) -> None:
    inputs = {"x": random_array(1, 1, 2, 11, 9)}
    window = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [2, 1, 1, 0], "dilations": [2, 3]}
    check_node("AveragePool", inputs, opset=19, count_include_pad=0, **window)
    check_node("AveragePool", inputs, opset=19, count_include_pad=1, **window)


def test_pooling_works_over_one_and_three_axes(check_node: Check, random_array: Random) -> None:
    check_node(
        "MaxPool", {"x": random_array(1, 1, 2, 9)}, kernel_shape=[3], strides=[2], pads=[1, 1]
    )
    check_node("AveragePool", {"x": random_array(2, 1, 2, 5, 4, 6)}, kernel_shape=[2, 3, 2])


def test_global_average_pool_agrees_with_onnxruntime(
    check_node: Check, random_array: Random
) -> None:
    check_node("GlobalAveragePool", {"x": random_array(1, 2, 5, 7, 6)})
    check_node("GlobalAveragePool", {"x": random_array(2, 2, 5, 7)}, opset=9)


def test_padding_never_wins_a_maximum() -> None:
    op = MaxPool((2, 2), pads=(1, 1, 0, 0))
    (y,) = op.reference(np.full((1, 1, 2, 2), -5.0))
    assert (y == -5.0).all()
    (small,) = op.reference(np.full((1, 1, 2, 2), -5, dtype=np.int8))
    assert (small == -5).all()


def test_what_ceil_adds_beyond_the_padding_never_counts() -> None:
    """Of windows at 0 and 2 over 4 elements and a pad, the last has a tap beyond the pad."""
    op = AveragePool((4,), (2,), (0, 1), (1,), ceil=True, include_pad=True)
    (y,) = op.reference(np.ones((1, 1, 4)))
    np.testing.assert_allclose(y, [[[1.0, 2 / 3]]])


def test_a_window_needs_to_fit() -> None:
    with pytest.raises(ModelError, match="does not fit into 2 elements"):
        MaxPool((3, 3)).infer((TensorType("float32", (1, 1, 2, 4)),))


@pytest.mark.parametrize("mode", [0, 1])
def test_strides_and_distances_that_lead_nowhere_are_those_of_the_data(
    check_node: Check, random_array: Random, mode: int
) -> None:
    graph = check_node(
        "MaxPool",
        {"x": random_array(1, 1, 2, 5, 6)},
        opset=12,
        kernel_shape=[3, 1],
        strides=[2**31, 2],
        dilations=[1, 2**31],
        ceil_mode=mode,
    )
    (node,) = graph.nodes
    assert node.op.strides == (5, 2)
    assert node.op.dilations == (1, 1)


def test_a_padded_input_beyond_the_limits_is_refused(
    node_model: Callable[..., onnx.ModelProto],
) -> None:
    inputs = {"x": np.zeros((1, 1, 8), np.float32), "w": np.zeros((1, 1, 2), np.float32)}
    model = node_model(
        "Conv", inputs, pads=[2**40, 0], strides=[2**40], dilations=[2**40], kernel_shape=[2]
    )
    with pytest.raises(ModelError, match=r"the padded input of node 'the_node' .*\[model-bytes\]"):
        import_onnx(model)


@pytest.mark.parametrize("ceil", [False, True])
def test_windows_are_counted_alike_of_closed_and_open_sizes(ceil: bool) -> None:
    dim = Dim("n", low=4, high=12)
    for kernel, stride, before, after in itertools.product((1, 2, 3), (1, 2, 3), (0, 1), (0, 2)):
        if before + after and max(before, after) >= kernel:
            continue
        sizes = (size_of(dim), *range(4, 13))
        axes = [Axis(n, kernel, stride, 1, before, after, ceil) for n in sizes]
        for n, closed in enumerate(axes[1:], 4):
            end = n + before + after
            starts = range(0, end, stride)
            inside = [s for s in starts if s + kernel <= end]
            behind = [s for s in starts if s + kernel > end and s < n + before]
            # with ceil, one window more where the last one does not end with the data
            more = behind[:1] if ceil and inside[-1] + kernel < end else []
            assert closed.windows == len(inside) + len(more)
            assert size_in(axes[0].windows, {dim: n}) == closed.windows
            assert size_in(axes[0].padded, {dim: n}) == closed.padded
