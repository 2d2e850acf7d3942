"""Products that stay floats since bytes are slower, by price."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import tilewright as tw
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.convolution import Conv
from tilewright.graph.plan.layer_prices import LayerPrices
from tilewright.graph.plan.tasks import taken
from tilewright.graph.precision.layers import find_layers
from tilewright.graph.precision.levels.level_form import with_levels
from tilewright.graph.types import owned
from tilewright.runtime.model.precision_report import LayerPrecision, LayerTimes
from tilewright.tir.target.target import Target
from tilewright.tir.text.canonical import workload_key

from ..precision.levels.test_level_form import Net

AVX2 = Target.parse("c:avx2")
VNNI = Target.parse("c:avx2+vnni")


def convolution(size: int, channels: int = 64) -> Graph:
    net = Net(1, channels, 28, 28)
    return net.finish((net.conv(net.x, channels, "y", size),))


def times(graph: Graph, target: Target) -> LayerTimes | None:
    layers, _ = find_layers(graph)
    return LayerPrices(target).times(graph, partial(with_levels, graph, layers, {"x": (-1.0, 1.0)}))


def chain() -> Graph:
    """Two convolutions of 3x3, and one of 1x1 between them."""
    net = Net(1, 64, 28, 28)
    value = net.x
    for name, size in {"first": 3, "pointwise": 1, "last": 3}.items():
        value = net.add(Relu(), net.conv(value, 64, name, size), output=f"{name}.relu")
    return net.finish((value,))


def test_bytes_meet_winograd_only_where_one_instruction_takes_four() -> None:
    pairs, fours = times(convolution(3), AVX2), times(convolution(3), VNNI)
    assert pairs is not None
    assert fours is not None
    assert pairs.is_estimate
    assert pairs.narrow > pairs.floats
    assert fours.narrow < fours.floats == pairs.floats
    assert times(convolution(1), AVX2) is None
    assert times(convolution(5), AVX2) is None


def in_groups(groups: int, size: int, channels: int) -> Graph:
    net = Net(1, groups * channels, 14, 14)
    w = net.constant("w", owned(net.normal(groups * size, channels, 3, 3)))
    return net.finish((net.add(Conv(pads=(1, 1, 1, 1), groups=groups), net.x, w, output="y"),))


def test_groups_are_as_their_price_says() -> None:
    """Of 5 channels, the third pair of int16 is half empty, and is read number by number."""
    for target in (AVX2, VNNI):
        for groups, size in ((2, 32), (32, 4)):
            found = times(in_groups(groups, size, size), target)
            assert found is not None
            assert found.narrow < found.floats
    pairs, fours = times(in_groups(9, 12, 5), AVX2), times(in_groups(9, 12, 5), VNNI)
    assert pairs is not None
    assert fours is not None
    assert pairs.narrow > pairs.floats
    assert fours.narrow < fours.floats


@pytest.mark.needs_cc
def test_without_an_accuracy_a_layer_is_as_its_price_says() -> None:
    graph = chain()
    x = np.random.default_rng(3).standard_normal((1, 64, 28, 28), np.float32)
    known = tw.calibrate(graph, [x])
    how = {"calibration": known, "cache": False, "verify": "off"}

    def found(target: str, precision: str | dict[str, str] = "int8") -> tuple[LayerPrecision, ...]:
        engine = tw.compile(graph, target=target, precision=precision, **how)
        return engine.explain().precision.layers

    def kinds(layers: tuple[LayerPrecision, ...]) -> list[str]:
        return [one.precision for one in layers]

    assert kinds(found("c:avx2+vnni")) == ["bytes"] * 3
    assert kinds(found("c:avx2", {"first": "int8"})) == ["bytes", "float32", "float32"]
    layers = found("c:avx2")
    assert kinds(layers) == ["float32", "bytes", "float32"]
    first = layers[0]
    assert str(first).startswith("first: float32: slower with bytes; estimated ")
    assert first.times is not None
    assert first.times.narrow > first.times.floats


@pytest.mark.needs_cc
def test_what_is_tuned_is_what_is_compiled() -> None:
    graph = chain()
    x = np.random.default_rng(3).standard_normal((1, 64, 28, 28), np.float32)
    known = tw.calibrate(graph, [x])
    engine = tw.compile(
        graph, target="c:avx2", precision="int8", calibration=known, cache=False, verify="off"
    )
    plain = engine.parts.plain
    assert plain is not None
    found = taken(graph, AVX2, precision="int8", calibration=known)
    made = plain.model().program.functions
    assert {workload_key(func) for func, _ in found} == set(map(workload_key, made))
