"""SoftmaxRecognition: what it finds, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.arithmetic import Add, Div, Sub
from tilewright.graph.ops.functions import Exp, Log
from tilewright.graph.ops.reduction import ReduceMax, ReduceSum
from tilewright.graph.passes.pipeline import GraphPass
from tilewright.graph.passes.softmax_recognition import SoftmaxRecognition
from tilewright.graph.types import TensorType

Apply = Callable[[GraphPass, Graph], Graph]
Lines = Callable[[Graph], list[str]]


class Spelling(GraphBuilder):
    """A builder that spells both as JAX does."""

    def __init__(self) -> None:
        super().__init__("net")
        self.x = self.input("x", TensorType("float32", (2, 3, 8)))

    def below(self, axes: tuple[int, ...] = (2,), *, of: str = "") -> str:
        return self.add(Sub(), self.x, self.add(ReduceMax(axes), of or self.x))

    def total(self, powers: str, axes: tuple[int, ...] = (2,), *, kept: bool = True) -> str:
        return self.add(ReduceSum(axes, kept), powers)


@pytest.mark.parametrize("axes", [(2,), (1,), (1, 2)])
def test_powers_over_their_sum_are_a_softmax(
    apply: Apply, lines: Lines, axes: tuple[int, ...]
) -> None:
    net = Spelling()
    powers = net.add(Exp(), net.below(axes))
    net.add(Div(), powers, net.total(powers, axes), output="y")
    after = apply(SoftmaxRecognition(), net.finish(("y",)))
    assert lines(after) == [f"y = Softmax[axes={axes}](x)"]


def test_with_the_logarithm_of_the_sum_it_is_a_log_softmax(apply: Apply, lines: Lines) -> None:
    net = Spelling()
    below = net.below()
    total = net.total(net.add(Exp(), below))
    net.add(Sub(), below, net.add(Log(), total), output="y")
    after = apply(SoftmaxRecognition(), net.finish(("y",)))
    assert lines(after) == ["y = LogSoftmax[axes=(2,)](x)"]


@pytest.mark.parametrize(
    "case", ["other axes", "read elsewhere", "largest of another", "not kept", "another sum"]
)
def test_others_are_left_alone(case: str) -> None:
    net = Spelling()
    other = net.input("other", TensorType("float32", (2, 3, 8)))
    powers = net.add(Exp(), net.below(of=other if case == "largest of another" else ""))
    axes = (1,) if case == "other axes" else (2,)
    if case == "not kept":
        square = net.input("square", TensorType("float32", (3, 3)))
        below = net.add(Sub(), square, net.add(ReduceMax((1,), False), square))
        powers = net.add(Exp(), below)
        total = net.total(powers, (1,), kept=False)
    elif case == "another sum":
        total = net.total(net.add(Exp(), other))
    else:
        total = net.total(powers, axes)
    net.add(Div(), powers, total, output="y")
    outputs = ["y"]
    if case == "read elsewhere":
        outputs.append(net.add(Add(), powers, other))
    graph = net.finish(tuple(outputs))
    assert SoftmaxRecognition()(graph) is graph
