"""MeanRecognition: sums over the number of their elements, and others."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.arithmetic import Div
from tilewright.graph.ops.reduction import ReduceSum
from tilewright.graph.passes.mean_recognition import MeanRecognition
from tilewright.graph.passes.pipeline import GraphPass
from tilewright.graph.types import Splat, TensorType

Apply = Callable[[GraphPass, Graph], Graph]
Lines = Callable[[Graph], list[str]]


def network(
    number: float,
    *,
    dtype: str = "float32",
    shape: tuple[int, ...] = (),
    swapped: bool = False,
    outputs: tuple[str, ...] = ("y",),
) -> Graph:
    """The sum over eight and three elements, and a number."""
    net = GraphBuilder("net")
    x = net.input("x", TensorType(dtype, (2, 3, 8)))
    total = net.add(ReduceSum((1, 2), False), x, output="total")
    count = net.constant("count", Splat(number, dtype, shape))
    operands = (count, total) if swapped else (total, count)
    net.add(Div(), *operands, output="y")
    return net.finish(outputs)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_sum_over_its_number_of_elements_is_their_mean(
    apply: Apply, lines: Lines, dtype: str
) -> None:
    after = apply(MeanRecognition(), network(24.0, dtype=dtype))
    assert lines(after) == ["y = ReduceMean[axes=(1, 2), keepdims=False](x)"]


@pytest.mark.parametrize(
    "graph",
    [
        network(8.0),
        network(24.0, swapped=True),
        network(24.0, dtype="float16"),
        network(24.0, shape=(1, 1)),
        network(24.0, outputs=("y", "total")),
    ],
)
def test_others_are_left_alone(graph: Graph) -> None:
    assert MeanRecognition()(graph) is graph
