"""LayerNormRecognition: what it finds, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add, Div, Mul, Pow, Sub
from tilewright.graph.ops.functions import Sqrt
from tilewright.graph.ops.reduction import ReduceMean
from tilewright.graph.passes.layer_norm_recognition import LayerNormRecognition
from tilewright.graph.passes.pipeline import GraphPass
from tilewright.graph.types import Splat, TensorType

Apply = Callable[[GraphPass, Graph], Graph]
Lines = Callable[[Graph], list[str]]
X = TensorType("float32", (2, 3, 8))


class Spelling(GraphBuilder):
    """A builder that spells a normalisation as exporters do."""

    def __init__(self) -> None:
        super().__init__("net")
        self.x = self.input("x", X)
        self.g = self.constant("g", np.linspace(0.5, 1.5, 8, dtype=np.float32))
        self.b = self.constant("b", np.linspace(-1, 1, 8, dtype=np.float32))
        self.eps = self.constant("eps", Splat(2**-10, "float32", ()))
        self.one = self.constant("one", Splat(1.0, "float32", ()))
        self.two = self.constant("two", Splat(2.0, "float32", ()))

    def mean(self, value: str, axes: tuple[int, ...] = (2,)) -> str:
        return self.add(ReduceMean(axes), value)

    def root(self, value: str, *, power: bool = True, axes: tuple[int, ...] = (2,)) -> str:
        square = self.add(Pow(), value, self.two) if power else self.add(Mul(), value, value)
        return self.add(Sqrt(), self.add(Add(), self.mean(square, axes), self.eps))

    def over_root(self, value: str, *, power: bool = True, axes: tuple[int, ...] = (2,)) -> str:
        return self.add(Div(), value, self.root(value, power=power, axes=axes))

    def times_inverse(self, value: str, one: str) -> str:
        return self.add(Mul(), value, self.add(Div(), one, self.root(value)))

    def layer(self, *, power: bool = True, axes: tuple[int, ...] = (2,)) -> str:
        centred = self.add(Sub(), self.x, self.mean(self.x, axes))
        return self.over_root(centred, power=power, axes=axes)


@pytest.mark.parametrize("power", [True, False])
def test_layer_normalisation_with_scale_and_bias_is_one_node(
    apply: Apply, lines: Lines, power: bool
) -> None:
    net = Spelling()
    scaled = net.add(Mul(), net.g, net.layer(power=power))
    net.add(Add(), scaled, net.b, output="y")
    after = apply(LayerNormRecognition(), net.finish(("y",)))
    assert lines(after) == ["y = LayerNormalization[axis=2, epsilon=0.0009765625](x, g, b)"]


def test_scale_and_bias_may_be_missing(apply: Apply, lines: Lines) -> None:
    net = Spelling()
    net.add(Relu(), net.layer(axes=(1, 2)), output="y")
    after = apply(LayerNormRecognition(), net.finish(("y",)))
    assert lines(after) == [
        "div = LayerNormalization[axis=1, epsilon=0.0009765625](x, splat(1))",
        "y = Relu(div)",
    ]


def test_a_bias_without_a_scale_stays_behind(apply: Apply, lines: Lines) -> None:
    net = Spelling()
    net.add(Add(), net.layer(), net.b, output="y")
    after = apply(LayerNormRecognition(), net.finish(("y",)))
    assert lines(after) == [
        "div = LayerNormalization[axis=2, epsilon=0.0009765625](x, splat(1))",
        "y = Add(div, b)",
    ]


def test_without_the_mean_it_is_rms_normalisation(apply: Apply, lines: Lines) -> None:
    net = Spelling()
    scaled = net.add(Mul(), net.over_root(net.x), net.g)
    net.add(Add(), scaled, net.b, output="y")
    after = apply(LayerNormRecognition(), net.finish(("y",)))
    assert lines(after) == [
        "mul = RMSNormalization[axis=2, epsilon=0.0009765625](x, g)",
        "y = Add(mul, b)",
    ]


def test_the_reciprocal_of_the_root_may_be_multiplied(apply: Apply, lines: Lines) -> None:
    net = Spelling()
    net.add(Mul(), net.g, net.times_inverse(net.x, net.one), output="y")
    after = apply(LayerNormRecognition(), net.finish(("y",)))
    assert lines(after) == [
        "y = RMSNormalization[axis=2, epsilon=0.0009765625, inverse=True](x, g)"
    ]


def test_a_layer_normalisation_multiplies_the_reciprocal_anyway(apply: Apply, lines: Lines) -> None:
    net = Spelling()
    centred = net.add(Sub(), net.x, net.mean(net.x))
    scaled = net.add(Mul(), net.times_inverse(centred, net.one), net.g)
    net.add(Add(), scaled, net.b, output="y")
    after = apply(LayerNormRecognition(), net.finish(("y",)))
    assert lines(after) == ["y = LayerNormalization[axis=2, epsilon=0.0009765625](x, g, b)"]


def test_a_part_that_stands_there_twice_counts_as_one(apply: Apply, lines: Lines) -> None:
    net = Spelling()
    first, second = (net.add(Sub(), net.x, net.mean(net.x)) for _ in range(2))
    mean = net.mean(net.add(Pow(), first, net.two))
    net.add(Div(), second, net.add(Sqrt(), net.add(Add(), net.eps, mean)), output="y")
    after = apply(LayerNormRecognition(), net.finish(("y",)))
    assert lines(after) == ["y = LayerNormalization[axis=2, epsilon=0.0009765625](x, splat(1))"]


def left_alone(kind: str) -> Graph:
    net = Spelling()
    match kind:
        case "a value in between is an output":
            net.layer()
            return net.finish(("sub", "div"))
        case "a value in between is read by another node":
            net.add(Add(), net.layer(), "sub", output="y")
        case "the means are over different axes":
            centred = net.add(Sub(), net.x, net.mean(net.x, (1,)))
            mean = net.mean(net.add(Mul(), centred, net.x))
            net.add(Div(), centred, net.add(Sqrt(), net.add(Add(), mean, net.eps)), output="y")
        case "the means are not over the last axes":
            net.add(Relu(), net.layer(axes=(1,)), output="y")
        case "the power is not two":
            cube = net.add(Pow(), net.x, net.constant("three", Splat(3.0, "float32", ())))
            root = net.add(Sqrt(), net.add(Add(), net.mean(cube), net.eps))
            net.add(Div(), net.x, root, output="y")
        case "two over the root":
            net.add(Relu(), net.times_inverse(net.x, net.two), output="y")
        case "epsilon is no number":
            root = net.add(Sqrt(), net.add(Add(), net.mean(net.add(Mul(), net.x, net.x)), net.g))
            net.add(Div(), net.x, root, output="y")
    return net.finish(("y",))


@pytest.mark.parametrize(
    "kind",
    [
        "a value in between is an output",
        "a value in between is read by another node",
        "the means are over different axes",
        "the means are not over the last axes",
        "the power is not two",
        "two over the root",
        "epsilon is no number",
    ],
)
def test_what_is_something_else_is_left_alone(kind: str) -> None:
    graph = left_alone(kind)
    assert LayerNormRecognition()(graph) is graph
