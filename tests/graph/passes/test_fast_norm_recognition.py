"""FastNormRecognition: the forms that it finds, what they lose, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add, Div, Max, Mul, Pow, Sub
from tilewright.graph.ops.functions import Sqrt
from tilewright.graph.ops.reduction import ReduceMean
from tilewright.graph.passes.fast_norm_recognition import FastNormRecognition
from tilewright.graph.passes.pipeline import PIPELINE, GraphPass, optimise
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Splat, TensorType

STRICT = tuple(one for one in PIPELINE if one.keeps_rounding)

Apply = Callable[[GraphPass, Graph], Graph]
Lines = Callable[[Graph], list[str]]
SETTINGS = "axis=2, epsilon=0.0009765625"


class Spelling(GraphBuilder):
    """A builder that spells a normalisation as flax does."""

    def __init__(self) -> None:
        super().__init__("net")
        self.x = self.input("x", TensorType("float32", (2, 3, 8)))
        self.g = self.constant("g", np.linspace(0.5, 1.5, 8, dtype=np.float32).reshape(1, 1, 8))
        self.b = self.constant("b", np.linspace(-1, 1, 8, dtype=np.float32))
        self.mean = self.add(ReduceMean((2,)), self.x)
        self.centred = self.add(Sub(), self.x, self.mean)

    def number(self, value: float) -> str:
        return self.constant(self.fresh("number"), Splat(value, "float32", ()))

    def square(self, value: str, *, power: bool = False) -> str:
        if power:
            return self.add(Pow(), value, self.number(2.0))
        return self.add(Mul(), value, value)

    def fast(self, clamp: str = "max", *, power: bool = False) -> str:
        """The variance as a difference of means."""
        squares = self.add(ReduceMean((2,)), self.square(self.x, power=power))
        difference = self.add(Sub(), squares, self.square(self.mean, power=power))
        if clamp == "max":
            return self.add(Max(), self.number(0.0), difference)
        return self.add(Relu(), difference) if clamp == "relu" else difference

    def exact(self, value: str) -> str:
        return self.add(ReduceMean((2,)), self.square(value))

    def root(self, variance: str) -> str:
        return self.add(Sqrt(), self.add(Add(), variance, self.number(2**-10)))

    def inverse(self, variance: str, one: float = 1.0) -> str:
        return self.add(Div(), self.number(one), self.root(variance))


@pytest.mark.parametrize("clamp", ["max", "relu", "none"])
@pytest.mark.parametrize("power", [False, True])
def test_a_difference_of_means_is_a_variance(
    apply: Apply, lines: Lines, clamp: str, power: bool
) -> None:
    net = Spelling()
    scale = net.add(Mul(), net.inverse(net.fast(clamp, power=power)), net.g)
    net.add(Add(), net.add(Mul(), net.centred, scale), net.b, output="y")
    after = apply(FastNormRecognition(), net.finish(("y",)))
    assert lines(after) == [f"y = LayerNormalization[{SETTINGS}](x, g, b)"]


@pytest.mark.parametrize("divided", [False, True])
def test_a_scale_behind_it_may_be_missing(apply: Apply, lines: Lines, divided: bool) -> None:
    net = Spelling()
    if divided:
        net.add(Div(), net.centred, net.root(net.fast()), output="y")
    else:
        net.add(Mul(), net.inverse(net.fast()), net.centred, output="y")
    after = apply(FastNormRecognition(), net.finish(("y",)))
    assert lines(after) == [f"y = LayerNormalization[{SETTINGS}](x, splat(1))"]


@pytest.mark.parametrize("centred", [False, True])
def test_a_scale_may_be_multiplied_first(apply: Apply, lines: Lines, centred: bool) -> None:
    net = Spelling()
    value = net.centred if centred else net.x
    scale = net.add(Mul(), net.g, net.inverse(net.exact(value)))
    net.add(Mul(), value, scale, output="y")
    text = lines(apply(FastNormRecognition(), net.finish(("y",))))
    kind = f"LayerNormalization[{SETTINGS}]" if centred else f"RMSNormalization[{SETTINGS}, inver"
    assert text[-1].startswith(f"y = {kind}")


def test_scale_and_bias_may_be_computed(apply: Apply, lines: Lines) -> None:
    net = Spelling()
    g, b = (net.input(name, TensorType("float32", (1, 8))) for name in ("scale", "bias"))
    factor = net.add(Mul(), net.inverse(net.fast()), g)
    net.add(Add(), net.add(Mul(), net.centred, factor), b, output="y")
    after = apply(FastNormRecognition(), net.finish(("y",)))
    assert lines(after) == [f"y = LayerNormalization[{SETTINGS}](x, scale, bias)"]


@pytest.mark.parametrize(
    "case", ["of each row", "of other means", "another number", "read elsewhere", "above a half"]
)
def test_others_are_left_alone(case: str) -> None:
    net = Spelling()
    scale, outputs = net.g, ["y"]
    if case == "of each row":
        scale = net.input("rows", TensorType("float32", (2, 3, 1)))
    if case == "of other means":
        other = net.input("other", TensorType("float32", (2, 3, 8)))
        means = [net.add(ReduceMean((2,)), one) for one in (net.square(other), other)]
        variance = net.add(Sub(), means[0], net.square(means[1]))
    elif case == "above a half":
        variance = net.add(Max(), net.number(0.5), net.fast("none"))
    else:
        variance = net.fast()
    inverse = net.inverse(variance, 2.0 if case == "another number" else 1.0)
    if case == "read elsewhere":
        outputs.append(inverse)
    net.add(Mul(), net.centred, net.add(Mul(), inverse, scale), output="y")
    graph = net.finish(tuple(outputs))
    assert FastNormRecognition()(graph) is graph


def test_a_strict_build_keeps_the_difference_and_what_it_loses() -> None:
    """Of a mean of 10,000 and a deviation of 1 float32 leaves no digit of the variance."""
    net = Spelling()
    net.add(Mul(), net.centred, net.inverse(net.fast()), output="y")
    graph = net.finish(("y",))
    x = 1e4 + np.random.default_rng(0).standard_normal((2, 3, 8)).astype(np.float32)
    exact = evaluate(graph, {"x": x.astype(np.float64)})["y"]
    errors = []
    for passes in (PIPELINE, STRICT):
        after, _ = optimise(graph, passes)
        found = evaluate(after, {"x": x}, dtype=None)["y"]
        errors.append(np.abs(found - exact).max())
    assert errors[0] < 1e-2 < 0.5 < errors[1]
