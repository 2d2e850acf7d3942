"""Biases less what rounding weights adds to the mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.arithmetic import Add
from tilewright.graph.ops.convolution import Conv
from tilewright.graph.precision.layers import find_layers
from tilewright.graph.precision.levels.bias_correction import corrected_biases
from tilewright.graph.precision.levels.level_form import with_levels
from tilewright.graph.precision.levels.spelled_levels import LevelScale
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


def groups() -> Graph:
    net = Net(32, 4, 3, 3)
    w = net.constant("w", owned(normal(4, 2, 1, 1)))
    bias = net.constant("bias", owned(normal(4)))
    return net.finish((net.add(Conv(groups=2), net.x, w, bias, output="y"),))


@pytest.mark.parametrize("make", [linear, convolution, groups])
def test_the_mean_of_a_result_stays(make: Callable[[], Graph]) -> None:
    """On data that lie on the levels, so that nothing but the weights is rounded."""
    graph = make()
    layers, _ = find_layers(graph)
    shape = tuple(map(int, graph.types["x"].shape))  # type: ignore[arg-type]  # they are known
    ranges = {"x": (-20.0, 20.0)}
    scale = LevelScale.of(*ranges["x"])
    levels = np.random.default_rng(1).integers(0, 256, shape).astype(np.float32)
    x = ((levels - np.float32(scale.zero)) * scale.step).astype(np.float32)
    others = tuple(n for n in range(len(shape)) if n != 1)

    def off(means: dict[str, NDArray[np.float32]]) -> float:
        found = evaluate(with_levels(graph, layers, ranges, means), {"x": x})["y"]
        return float(np.abs((found - evaluate(graph, {"x": x})["y"]).mean(axis=others)).max())

    assert off({}) > 1e-4
    assert off({"x": x.mean(axis=others)}) < 0.05 * off({})


@pytest.mark.parametrize("is_by_tensor", [False, True])
def test_what_is_taken_is_the_rounding_of_weights_times_the_mean(is_by_tensor: bool) -> None:
    graph = linear()
    layers = [replace(layer, is_by_tensor=is_by_tensor) for layer in find_layers(graph)[0]]
    w = np.asarray(graph.constants["product.w"]).astype(np.float64)
    step = np.abs(w).max(axis=None if is_by_tensor else 0).astype(np.float32) / np.float32(127)
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
