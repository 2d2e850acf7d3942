"""Factors of channels: the function stays, and channels become alike."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add
from tilewright.graph.ops.convolution import Conv
from tilewright.graph.ops.layer_norm import LayerNormalization
from tilewright.graph.ops.matmul import Gemm
from tilewright.graph.ops.movement import Reshape
from tilewright.graph.ops.pooling import GlobalAveragePool
from tilewright.graph.precision.channels.channel_factors import Factors, rescaled
from tilewright.graph.precision.channels.equalisation import equalised_factors, smoothing_factors
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import owned

from ..levels.test_level_form import Net, normal


def network() -> Graph:
    """Convolutions, one of them depthwise, and a product behind a pool."""
    net = Net(2, 3, 6, 6)
    a = net.add(Relu(), net.conv(net.x, 4, "conv_a"), output="a")
    w = net.constant("deep.w", owned(normal(8, 1, 3, 3) * np.float32(10)))
    deep = net.add(Conv(pads=(1, 1, 1, 1), groups=4), a, w, output="deep")
    b = net.add(
        Relu(), net.conv(net.add(Relu(), deep, output="deep_relu"), 5, "conv_b"), output="b"
    )
    pool = net.add(GlobalAveragePool(), b, output="pool")
    flat = net.add(Reshape((2, 5)), pool, output="flat")
    w = net.constant("last.w", owned(normal(3, 5)))
    c = net.constant("last.b", owned(normal(3)))
    net.add(Gemm(trans_b=True), flat, w, c, output="y")
    return net.finish(("y",))


def rows() -> Graph:
    """A normalisation that products and a residual sum read, another that products alone read."""
    net = Net(4, 6)
    gain, shift = (net.constant(name, owned(normal(6))) for name in ("gain", "shift"))
    first = net.add(LayerNormalization(1), net.x, gain, shift, output="first")
    both = net.add(Add(), net.linear(first, 6, "inner"), first, output="both")
    gain = net.constant("gain2", owned(normal(6)))
    second = net.add(LayerNormalization(1), both, gain, output="second")
    bias = net.constant("bias", owned(normal(5)))
    hidden = net.add(Add(), net.linear(second, 5, "up"), bias, output="hidden")
    net.add(Add(), net.linear(net.add(Relu(), hidden, output="relu"), 6, "down"), both, output="y")
    net.linear(second, 2, "z")
    return net.finish(("y", "z"))


def check_same(graph: Graph, factors: Factors) -> Graph:
    made = rescaled(graph, factors)
    x = {"x": normal(*map(int, graph.types["x"].shape))}  # type: ignore[arg-type]
    for name, array in evaluate(graph, x).items():
        found = evaluate(made, x)[name]
        assert np.abs(found - array).max() <= 1e-5 * np.abs(array).max(), name
    return made


def channel_peaks(graph: Graph, value: str) -> np.ndarray:
    weights = np.asarray(graph.constants[value])
    return np.abs(weights).reshape(len(weights), -1).max(axis=1)


def test_a_rescaled_model_computes_the_same_and_its_values_are_divided() -> None:
    graph = network()
    factors = {
        "a": np.array([1, 2, 4, 0.5], np.float32),
        "deep_relu": np.array([1, 8, 2, 3, 1, 5, 0.1, 7], np.float32),
        "flat": np.array([3, 1, 2, 9, 0.2], np.float32),
    }
    made = check_same(graph, factors)
    assert len(made.nodes) == len(graph.nodes)
    assert np.allclose(
        channel_peaks(made, "conv_a.w.scaled"), channel_peaks(graph, "conv_a.w") / factors["a"]
    )


def test_normalisations_take_factors_unless_others_read_them() -> None:
    graph = rows()
    numbers = np.array([1, 2, 4, 0.5, 3, 9], np.float32)
    made = check_same(graph, {"second": numbers})
    assert len(made.nodes) == len(graph.nodes)
    made = check_same(graph, {"first": numbers, "relu": numbers[:5]})
    # the residual sum reads what the model has; the product reads what is divided
    assert len(made.nodes) == len(graph.nodes) + 1
    assert "first.scaled" in made.types


def test_equalised_channels_have_weights_as_large_on_either_side() -> None:
    graph = network()
    factors = equalised_factors(graph)
    assert set(factors) == {"a", "deep_relu", "flat"}
    made = check_same(graph, factors)
    behind = np.abs(np.asarray(made.constants["last.w.scaled"])).max(axis=0)
    assert channel_peaks(made, "conv_b.w.scaled") == pytest.approx(behind, rel=1e-3)
    deep = channel_peaks(made, "deep.w.scaled")
    assert channel_peaks(made, "conv_a.w.scaled") == pytest.approx(
        deep.reshape(4, 2).max(axis=1), rel=1e-2
    )


def test_channels_without_weights_stay() -> None:
    net = Net(1, 2, 4, 4)
    first = normal(3, 2, 1, 1)
    first[1] = 0
    w = net.constant("w", owned(first))
    net.conv(net.add(Conv(), net.x, w, output="a"), 2, "y", 1)
    graph = net.finish(("y",))
    factors = equalised_factors(graph)
    assert factors["a"][1] == 1
    check_same(graph, factors)


@pytest.mark.parametrize("alpha", [0.5, 0.7])
def test_smoothing_moves_peaks_from_data_to_weights(alpha: float) -> None:
    graph = rows()
    peaks = {
        "first": np.array([1, 1, 50, 1, 1, 1], np.float32),
        "second": np.array([2, 100, 2, 2, 2, 2], np.float32),
    }
    factors = smoothing_factors(graph, peaks, alpha)
    assert set(factors) == {"first", "second"}
    for value, place in (("first", 2), ("second", 1)):
        # of data that far apart little is left
        after = peaks[value] / factors[value]
        assert after[place] / np.median(after) < peaks[value][place] / np.median(peaks[value]) / 3
    check_same(graph, factors)
    weights = np.abs(np.asarray(graph.constants["inner.w"])).max(axis=1)
    expected = peaks["first"] ** alpha / weights ** (1 - alpha)
    expected = np.maximum(expected, np.quantile(expected, 0.1))
    assert factors["first"] == pytest.approx(expected, rel=1e-5)


def test_convolutions_and_data_of_zeros_are_not_smoothed() -> None:
    assert smoothing_factors(network(), {"a": np.ones(4, np.float32)}, 0.5) == {}
    assert smoothing_factors(rows(), {"first": np.zeros(6, np.float32)}, 0.5) == {}
