"""GeluRecognition: what it finds, and what it leaves alone."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.arithmetic import Add, Div, Mul, Pow
from tilewright.graph.ops.functions import Erf, Erfc, Tanh
from tilewright.graph.passes.gelu_recognition import GeluRecognition
from tilewright.graph.passes.pipeline import PIPELINE, GraphPass
from tilewright.graph.types import Splat, TensorType

Apply = Callable[[GraphPass, Graph], Graph]
Lines = Callable[[Graph], list[str]]
ORDERS = ("x grown half", "x half grown", "half grown x", "grown x half")


class Spelling(GraphBuilder):
    """A builder that spells Gelu as exporters do."""

    def __init__(self) -> None:
        super().__init__("net")
        self.x = self.input("x", TensorType("float32", (2, 3, 8)))

    def number(self, value: float, shape: tuple[int, ...] = ()) -> str:
        return self.constant(self.fresh("number"), Splat(value, "float32", shape))

    def erf(self, root: float = math.sqrt(2.0), *, quotient: bool = True) -> str:
        if quotient:
            return self.add(Erf(), self.add(Div(), self.x, self.number(root)))
        return self.add(Erf(), self.add(Mul(), self.number(1 / root), self.x))

    def tanh(self, cubic: float = 0.044715, *, power: bool = True) -> str:
        if power:
            cube = self.add(Pow(), self.x, self.number(3.0))
        else:
            cube = self.add(Mul(), self.x, self.add(Mul(), self.x, self.x))
        bent = self.add(Add(), self.x, self.add(Mul(), self.number(cubic), cube))
        return self.add(Tanh(), self.add(Mul(), bent, self.number(math.sqrt(2 / math.pi))))

    def product(self, function: str, order: str = ORDERS[0], one: float = 1.0) -> Graph:
        grown = self.add(Add(), self.number(one), function)
        factors = {"x": self.x, "grown": grown, "half": self.number(0.5)}
        a, b, c = (factors[name] for name in order.split())
        self.add(Mul(), self.add(Mul(), a, b), c, output="y")
        return self.finish(("y",))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("quotient", [True, False])
def test_the_form_of_erf_is_one_node(
    apply: Apply, lines: Lines, order: str, quotient: bool
) -> None:
    net = Spelling()
    after = apply(GeluRecognition(), net.product(net.erf(quotient=quotient), order))
    assert lines(after) == ["y = Gelu(x)"]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("power", [True, False])
def test_the_form_of_tanh_is_one_node(apply: Apply, lines: Lines, order: str, power: bool) -> None:
    net = Spelling()
    after = apply(GeluRecognition(), net.product(net.tanh(power=power), order))
    assert lines(after) == ["y = Gelu[approximate=True](x)"]


def left_alone(kind: str) -> Graph:
    net = Spelling()
    match kind:
        case "the root is another number":
            return net.product(net.erf(1.4142))
        case "the summand is not one":
            return net.product(net.erf(), one=1.001)
        case "the cubic coefficient is another number":
            return net.product(net.tanh(0.0447))
        case "a number makes the shape another one":
            grown = net.add(Add(), net.erf(), net.number(1.0, (1, 1, 1, 1)))
            net.add(Mul(), net.add(Mul(), net.x, grown), net.number(0.5), output="y")
            return net.finish(("y",))
        case "a value in between is an output":
            function = net.erf()
            net.product(function)
            return net.finish(("y", function))
        case "a value in between is read by another node":
            function = net.erf()
            net.product(function)
            net.add(Add(), function, net.x, output="z")
            return net.finish(("y", "z"))
    raise AssertionError(kind)


@pytest.mark.parametrize(
    "kind",
    [
        "the root is another number",
        "the summand is not one",
        "the cubic coefficient is another number",
        "a number makes the shape another one",
        "a value in between is an output",
        "a value in between is read by another node",
    ],
)
def test_what_is_not_quite_one_is_left_alone(kind: str) -> None:
    graph = left_alone(kind)
    assert GeluRecognition()(graph) is graph


def test_a_strict_build_computes_what_is_written() -> None:
    assert GeluRecognition() in PIPELINE
    assert not GeluRecognition.keeps_rounding


@pytest.mark.parametrize("order", ["x half function", "half x function", "function x half"])
@pytest.mark.parametrize("opposite", [True, False])
def test_the_form_of_erfc_is_one_node(
    apply: Apply, lines: Lines, order: str, opposite: bool
) -> None:
    """As JAX and Keras spell it."""
    net = Spelling()
    argument, factor = net.x, -math.sqrt(0.5)
    if opposite:
        argument, factor = net.add(Mul(), net.x, net.number(-1.0)), math.sqrt(0.5)
    function = net.add(Erfc(), net.add(Mul(), argument, net.number(factor)))
    factors = {"x": net.x, "function": function, "half": net.number(0.5)}
    a, b, c = (factors[name] for name in order.split())
    net.add(Mul(), net.add(Mul(), a, b), c, output="y")
    after = apply(GeluRecognition(), net.finish(("y",)))
    assert lines(after) == ["y = Gelu(x)"]


def test_erfc_of_another_number_is_left_alone() -> None:
    net = Spelling()
    function = net.add(Erfc(), net.add(Mul(), net.x, net.number(math.sqrt(0.5))))
    net.add(Mul(), net.add(Mul(), net.x, function), net.number(0.5), output="y")
    graph = net.finish(("y",))
    assert GeluRecognition()(graph) is graph
