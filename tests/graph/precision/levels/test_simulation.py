"""A model that computes layers both ways: as its switches say."""

from __future__ import annotations

import numpy as np

from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add
from tilewright.graph.precision.layers import find_layers
from tilewright.graph.precision.levels.level_form import with_levels
from tilewright.graph.precision.levels.simulation import simulated
from tilewright.graph.reference.reference import evaluate

from .test_level_form import Net, normal

RANGES = {"x": (-3.0, 3.0), "a": (0.0, 20.0), "c": (0.0, 300.0)}


def network() -> Graph:
    """Three convolutions, a sum over the second."""
    net = Net(1, 4, 7, 7)
    a = net.add(Relu(), net.conv(net.x, 4, "conv_a"), output="a")
    both = net.add(Add(), net.conv(a, 4, "conv_b"), a, output="both")
    net.conv(net.add(Relu(), both, output="c"), 4, "y")
    return net.finish(("y",))


def test_switches_choose_between_floats_and_bytes_layer_by_layer() -> None:
    graph = network()
    layers, _ = find_layers(graph)
    simulation = simulated(graph, layers, RANGES)
    x = normal(1, 4, 7, 7)
    for chosen in ([], [0], [1], [2], [0, 2], [0, 1, 2]):
        switches = np.zeros(3, np.float32)
        switches[chosen] = 1
        found = evaluate(simulation.graph, {"x": x, simulation.switches: switches})["y"]
        expected = evaluate(with_levels(graph, [layers[n] for n in chosen], RANGES), {"x": x})["y"]
        assert np.abs(found - expected).max() <= 2e-3 * np.abs(expected).max(), chosen


def test_errors_are_those_of_each_layer_alone() -> None:
    graph = network()
    layers, _ = find_layers(graph)
    simulation = simulated(graph, layers, RANGES)
    x = normal(1, 4, 7, 7)
    off = np.zeros(3, np.float32)
    found = evaluate(simulation.graph, {"x": x, simulation.switches: off})
    for n, layer in enumerate(layers):
        alone = evaluate(with_levels(graph, [layer], RANGES), {"x": x})
        exact = evaluate(graph, {"x": x})
        error, power = found[simulation.errors[n]], found[simulation.powers[n]]
        if layer.result == "y":
            assert np.isclose(error, np.sum((alone["y"] - exact["y"]) ** 2), rtol=1e-3)
            assert np.isclose(power, np.sum(exact["y"] ** 2), rtol=1e-4)
        assert 0 < error < 0.01 * power
