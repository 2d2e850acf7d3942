"""KeptAxes: which reductions keep their axes, and which do not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add, Mul, Sub
from tilewright.graph.ops.movement import Reshape
from tilewright.graph.ops.reduction import ReduceMax, ReduceMean, ReduceSum
from tilewright.graph.passes.kept_axes import KeptAxes
from tilewright.graph.passes.pipeline import GraphPass
from tilewright.graph.types import Splat, TensorType

Apply = Callable[[GraphPass, Graph], Graph]
Lines = Callable[[Graph], list[str]]


class Network(GraphBuilder):
    """A builder of statistics."""

    def __init__(self) -> None:
        super().__init__("net")
        self.x = self.input("x", TensorType("float32", (2, 3, 8)))
        self.half = self.constant("half", Splat(0.5, "float32", ()))

    def mean(self, value: str, axes: tuple[int, ...] = (2,)) -> str:
        return self.add(ReduceMean(axes, False), value)

    def back(self, value: str, shape: tuple[int, ...] = (2, 3, 1), output: str = "") -> str:
        return self.add(Reshape(shape), value, output=output)


def test_what_is_made_of_reductions_alone_has_their_axes(apply: Apply, lines: Lines) -> None:
    net = Network()
    mean, squares = net.mean(net.x), net.mean(net.add(Mul(), net.x, net.x))
    variance = net.add(Sub(), squares, net.add(Mul(), mean, mean))
    variance = net.add(Add(), net.add(Relu(), variance), net.half)
    net.add(Add(), net.add(Sub(), net.x, net.back(mean)), net.back(variance), output="y")
    assert lines(apply(KeptAxes(), net.finish(("y",)))) == [
        "reshape = ReduceMean[axes=(2,)](x)",
        "mul = Mul(x, x)",
        "reducemean_1.kept = ReduceMean[axes=(2,)](mul)",
        "mul_1.kept = Mul(reshape, reshape)",
        "sub.kept = Sub(reducemean_1.kept, mul_1.kept)",
        "relu.kept = Relu(sub.kept)",
        "reshape_1 = Add(relu.kept, splat(0.5))",
        "sub_1 = Sub(x, reshape)",
        "y = Add(sub_1, reshape_1)",
    ]


def test_axes_in_the_middle_and_all_of_them(apply: Apply, lines: Lines) -> None:
    net = Network()
    middle = net.back(net.add(ReduceMax((0, 1), False), net.x), (1, 1, 8))
    whole = net.back(net.add(ReduceSum((0, 1, 2), False), net.x), (1, 1, 1))
    net.add(Add(), middle, whole, output="y")
    assert lines(apply(KeptAxes(), net.finish(("y",)))) == [
        "reshape = ReduceMax[axes=(0, 1)](x)",
        "reshape_1 = ReduceSum[axes=(0, 1, 2)](x)",
        "y = Add(reshape, reshape_1)",
    ]


@pytest.mark.parametrize(
    "case", ["read plain", "an output", "another shape", "other axes", "a vector", "no reshape"]
)
def test_what_is_read_in_another_shape_keeps_it(apply: Apply, case: str) -> None:
    net = Network()
    mean = net.mean(net.x)
    outputs = ["y"]
    if case == "read plain":
        outputs.append(net.mean(mean, (1,)))
    if case == "an output":
        outputs.append(mean)
    shape = (2, 1, 3) if case == "another shape" else (2, 3, 1)
    value = mean
    if case == "other axes":
        other = net.input("other", TensorType("float32", (2, 8, 3)))
        value = net.add(Add(), mean, net.mean(other, (1,)))
    if case == "a vector":
        value = net.add(Add(), mean, net.constant("v", np.arange(3, dtype=np.float32)))
    if case == "no reshape":
        net.add(Relu(), value, output="y")
    else:
        net.add(Relu(), net.back(value, shape), output="y")
    graph = net.finish(tuple(outputs))
    assert KeptAxes()(graph) is graph


def test_a_reshape_that_is_an_output_stays() -> None:
    net = Network()
    net.back(net.mean(net.x), output="y")
    graph = net.finish(("y",))
    assert KeptAxes()(graph) is graph
