"""Biases less what rounding weights adds to the mean."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.arithmetic import Add
from tilewright.graph.precision.bias_correction import corrected_biases
from tilewright.graph.precision.layers import find_layers
from tilewright.graph.precision.level_form import with_levels
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import owned

from .test_level_form import Net, normal

MEANS = {"x": np.array([0.5, -2, 3, 10], np.float32)}


def linear() -> Graph:
    net = Net(256, 4)
    product = net.linear(net.x, 3, "product")
    net.add(Add(), product, net.constant("bias", owned(normal(3))), output="y")
    return net.finish(("y",))


def convolution() -> Graph:
    net = Net(32, 4, 3, 3)
    return net.finish((net.conv(net.x, 3, "y", 1),))


@pytest.mark.parametrize("make", [linear, convolution])
def test_the_mean_of_a_result_stays(make: object) -> None:
    graph = make()  # type: ignore[operator]
    layers, _ = find_layers(graph)
    shape = tuple(map(int, graph.types["x"].shape))
    mean = MEANS["x"].reshape(-1, *(1,) * (len(shape) - 2))
    x = (mean + 0.01 * normal(*shape)).astype(np.float32)
    others = tuple(n for n in range(len(shape)) if n != 1)
    means = {"x": x.mean(axis=others)}
    ranges = {"x": (-20.0, 20.0)}

    def off(given: dict[str, np.ndarray]) -> float:
        # by many levels, so that data round without a bias of their own
        found = evaluate(with_levels(graph, layers, ranges, given), {"x": x})["y"]
        return float(np.abs((found - evaluate(graph, {"x": x})["y"]).mean(axis=others)).max())

    data_alone = 0.04 * 20 * 2 / 255 * 127  # what rounding data to levels may move, generously
    assert off(means) < 0.7 * off({}) or off({}) < data_alone


def test_what_is_taken_is_the_rounding_of_weights_times_the_mean() -> None:
    graph = linear()
    layers, _ = find_layers(graph)
    w = np.asarray(graph.constants["product.w"]).astype(np.float64)
    step = np.abs(w).max(axis=0).astype(np.float32) / np.float32(127)
    rounded = np.rint(w.astype(np.float32) / step) * step.astype(np.float64)
    bias = np.asarray(graph.constants["bias"])
    expected = bias - MEANS["x"] @ (rounded - w)
    assert corrected_biases(graph, layers, MEANS)["y", 1] == pytest.approx(expected, rel=1e-5)


def test_without_a_bias_or_a_mean_nothing_is_taken() -> None:
    net = Net(3, 4)
    graph = net.finish((net.linear(net.x, 3, "y"),))
    assert corrected_biases(graph, find_layers(graph)[0], MEANS) == {}
    graph = linear()
    assert corrected_biases(graph, find_layers(graph)[0], {}) == {}
    net = Net(3, 4)
    other = net.input("other", graph.types["bias"])
    net.add(Add(), net.linear(net.x, 3, "product"), other, output="y")
    graph = net.finish(("y",))
    assert corrected_biases(graph, find_layers(graph)[0], MEANS) == {}
