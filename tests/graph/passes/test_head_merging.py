"""HeadMerging: what it merges, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add
from tilewright.graph.ops.attention import Attention, Heads
from tilewright.graph.ops.matmul import MatMul
from tilewright.graph.ops.movement import Reshape
from tilewright.graph.passes.head_merging import HeadMerging
from tilewright.graph.passes.pipeline import GraphPass
from tilewright.graph.types import TensorType

Apply = Callable[[GraphPass, Graph], Graph]
Lines = Callable[[Graph], list[str]]
STEPS, HEADS, DEPTH = 5, 2, 4
WIDTH = HEADS * DEPTH


class Products(GraphBuilder):
    """A builder of attention over products."""

    def __init__(self) -> None:
        super().__init__("net")
        self.x = self.input("x", TensorType("float32", (1, STEPS, 6)))
        self.other = self.input("other", TensorType("float32", (1, STEPS, 6)))

    def weight(self, name: str, *shape: int) -> str:
        rng = np.random.default_rng(list(name.encode()))
        return self.constant(name, rng.standard_normal(shape).astype(np.float32))

    def product(self, name: str, x: str = "", *, biased: bool = True) -> str:
        value = self.add(MatMul(), x or self.x, self.weight(name, 6, WIDTH))
        return self.add(Add(), self.weight(f"{name}.b", WIDTH), value) if biased else value

    def heads(self, value: str) -> str:
        return self.add(Reshape((1, STEPS, HEADS, DEPTH)), value)


@pytest.mark.parametrize("biased", [False, True])
def test_three_products_of_one_tensor_are_one(apply: Apply, lines: Lines, biased: bool) -> None:
    net = Products()
    parts = (net.heads(net.product(name, biased=biased)) for name in "qkv")
    net.add(Attention(HEADS, 0.5, guarded=True), *parts, output="y")
    text = lines(apply(HeadMerging(), net.finish(("y",))))
    sums = ["add_3 = Add(matmul_3, q.b.merged)"] if biased else []
    value = "add_3" if biased else "matmul_3"
    assert text == [
        "matmul_3 = MatMul(x, q.merged)",
        *sums,
        f"reshape_3 = Reshape[shape=(1, 5, 6, 4)]({value})",
        "y = Attention[heads=2, scale=0.5, key=Heads(first=2, outer=False), "
        "value=Heads(first=4, outer=False), guarded=True](reshape_3, reshape_3, reshape_3)",
    ]


def left_alone(kind: str) -> Graph:
    net = Products()
    op, outputs = Attention(HEADS, 0.5), ["y"]
    values = [net.product(name) for name in "qk"]
    match kind:
        case "the values are those of another tensor":
            values.append(net.product("v", net.other))
        case "one has no bias":
            values.append(net.product("v", biased=False))
        case "a product is read twice":
            values.append(net.product("v"))
            outputs.append(net.add(Relu(), values[0]))
        case "a product is an output":
            values.append(net.product("v"))
            outputs.append(values[2])
        case "it is no product":
            values.append(net.add(Relu(), net.product("v")))
        case "the heads are not the first":
            values.append(net.product("v"))
            op = Attention(1, 0.5, value=Heads(1))
        case "the weights are given":
            weights = net.input("w", TensorType("float32", (6, WIDTH)))
            values.append(net.add(Add(), net.add(MatMul(), net.x, weights), net.weight("b", WIDTH)))
    net.add(op, *map(net.heads, values), output="y")
    return net.finish(tuple(outputs))


@pytest.mark.parametrize(
    "kind",
    [
        "the values are those of another tensor",
        "one has no bias",
        "a product is read twice",
        "a product is an output",
        "it is no product",
        "the heads are not the first",
        "the weights are given",
    ],
)
def test_what_is_something_else_is_left_alone(kind: str) -> None:
    graph = left_alone(kind)
    assert HeadMerging()(graph) is graph


@pytest.mark.parametrize("shape", [(HEADS, DEPTH), (1, 1, HEADS, DEPTH)])
def test_a_bias_may_be_added_to_the_heads(
    apply: Apply, lines: Lines, shape: tuple[int, ...]
) -> None:
    """As flax does it."""
    net = Products()
    parts = []
    for name in "qkv":
        value = net.heads(net.product(name, biased=False))
        parts.append(net.add(Add(), value, net.weight(f"{name}.b", *shape)))
    net.add(Attention(HEADS, 0.5), *parts, output="y")
    assert lines(apply(HeadMerging(), net.finish(("y",)))) == [
        "matmul_3 = MatMul(x, q.merged)",
        "add_3 = Add(matmul_3, q.b.merged)",
        "reshape_3 = Reshape[shape=(1, 5, 6, 4)](add_3)",
        "y = Attention[heads=2, scale=0.5, key=Heads(first=2, outer=False), "
        "value=Heads(first=4, outer=False)](reshape_3, reshape_3, reshape_3)",
    ]


@pytest.mark.parametrize("shape", [(1, DEPTH), (STEPS, HEADS, DEPTH), (HEADS, 1)])
def test_a_bias_that_is_none_of_the_products_is_left_alone(shape: tuple[int, ...]) -> None:
    net = Products()
    parts = []
    for name in "qkv":
        value = net.heads(net.product(name, biased=False))
        parts.append(net.add(Add(), value, net.weight(f"{name}.b", *shape)))
    net.add(Attention(HEADS, 0.5), *parts, output="y")
    graph = net.finish(("y",))
    assert HeadMerging()(graph) is graph
