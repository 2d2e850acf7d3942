"""ReshapeMotion: what is computed in another shape, what is left alone, and what fuses then."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.graph.compile import compile
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add, Mul
from tilewright.graph.ops.base import Operator
from tilewright.graph.ops.functions import Exp, Tanh
from tilewright.graph.ops.logic import Where
from tilewright.graph.ops.matmul import Gemm, MatMul
from tilewright.graph.ops.movement import Concat, Identity, Reshape, Transpose
from tilewright.graph.ops.softmax import Softmax
from tilewright.graph.passes.pipeline import GraphPass
from tilewright.graph.passes.reshape_motion import ReshapeMotion, aligned
from tilewright.graph.plan.fusion import fuse
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Constant, Splat, TensorType

Apply = Callable[[GraphPass, Graph], Graph]
Lines = Callable[[Graph], list[str]]
ROWS, WIDTH = 6, 8


class Net(GraphBuilder):
    """A builder of products of 6 rows, which the model holds as 2 times 3."""

    def __init__(self) -> None:
        super().__init__("net")
        self.x = self.input("x", TensorType("float32", (ROWS, WIDTH)))
        self.r = self.input("r", TensorType("float32", (2, 3, WIDTH)))
        self.w = self.constant("w", self.numbers(WIDTH, WIDTH))

    @staticmethod
    def numbers(*shape: int) -> np.ndarray:
        return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)

    def product(self, name: str) -> str:
        """A product, as the model reads it."""
        return self.add(Reshape((2, 3, WIDTH)), self.add(Gemm(), self.x, self.w, output=name))


def test_an_operator_is_computed_in_the_shape_of_the_product_before_it(
    apply: Apply, lines: Lines
) -> None:
    net = Net()
    net.add(Tanh(), net.product("p"), output="y")
    after = apply(ReshapeMotion(), net.finish(("y",)))
    assert lines(after) == [
        "p = Gemm(x, w)",
        "y.moved = Tanh(p)",
        "y = Reshape[shape=(2, 3, 8)](y.moved)",
    ]
    assert [group.title for group in fuse(after).groups] == ["Gemm+Tanh"]


def test_another_operand_is_reshaped_and_a_chain_needs_one_reshape(
    apply: Apply, lines: Lines
) -> None:
    net = Net()
    p = net.product("p")
    value = net.add(Mul(), net.add(Tanh(), p), p)
    total = net.add(Add(), net.r, value)
    net.add(Softmax((2,)), total, output="y")
    assert lines(apply(ReshapeMotion(), net.finish(("y",)))) == [
        "p = Gemm(x, w)",
        "tanh.moved = Tanh(p)",
        "mul.moved = Mul(tanh.moved, p)",
        "r.reshaped = Reshape[shape=(6, 8)](r)",
        "add.moved = Add(r.reshaped, mul.moved)",
        "add = Reshape[shape=(2, 3, 8)](add.moved)",
        "y = Softmax[axes=(2,)](add)",
    ]


def test_a_reshape_back_costs_nothing(apply: Apply, lines: Lines) -> None:
    net = Net()
    value = net.add(Relu(), net.product("p"))
    net.add(MatMul(), net.add(Reshape((ROWS, WIDTH)), value), net.w, output="y")
    assert lines(apply(ReshapeMotion(), net.finish(("y",)))) == [
        "p = Gemm(x, w)",
        "relu.moved = Relu(p)",
        "y = MatMul(relu.moved, w)",
    ]


@pytest.mark.parametrize(
    ("constant", "name", "shape"),
    [
        (Splat(0.5, "float32", ()), "c", ()),
        (Splat(0.5, "float32", (2, 3, WIDTH)), "c.reshaped", (ROWS, WIDTH)),
        (Net.numbers(WIDTH), "c", (WIDTH,)),
        (Net.numbers(1, 1, WIDTH), "c.reshaped", (1, WIDTH)),
        (Net.numbers(2, 3, 1), "c.reshaped", (ROWS, 1)),
        (Net.numbers(2, 3, WIDTH), "c.reshaped", (ROWS, WIDTH)),
    ],
)
def test_a_constant_gets_the_shape_that_fits(
    apply: Apply, constant: Constant, name: str, shape: tuple[int, ...]
) -> None:
    net = Net()
    net.add(Mul(), net.product("p"), net.constant("c", constant), output="y")
    after = apply(ReshapeMotion(), net.finish(("y",)))
    assert after.nodes[1].inputs == ("p", name)
    assert after.types[name].shape == shape


def test_several_shapes_of_one_value_are_one_view_each(apply: Apply, lines: Lines) -> None:
    net = Net()
    p = net.product("p")
    a, b = net.add(Exp(), p), net.add(Relu(), net.add(Reshape((3, 2, WIDTH)), p))
    net.add(Concat(0), a, net.add(Identity(), a), net.add(Reshape((2, 3, WIDTH)), b), output="y")
    assert lines(apply(ReshapeMotion(), net.finish(("y",)))) == [
        "p = Gemm(x, w)",
        "exp.moved = Exp(p)",
        "relu.moved = Relu(p)",
        "exp = Reshape[shape=(2, 3, 8)](exp.moved)",
        "reshape_2 = Reshape[shape=(2, 3, 8)](relu.moved)",
        "y = Concat[axis=0](exp, exp, reshape_2)",
    ]


def left_alone(kind: str) -> Graph:
    net = Net()
    outputs = ["y"]
    p = net.product("p")
    op: Operator = Add()
    match kind:
        case "an operand changes along a part of the rows":
            values = [p, net.constant("c", net.numbers(3, 1))]
        case "the product is an output":
            values = [p, net.r]
            outputs.append("p")
        case "its elements are an output in another shape":
            values = [p, net.r]
            outputs.append(p)
        case "what is no elementwise operator reads it, too":
            values = [p, net.add(Softmax((2,)), p)]
        case "another operand is computed later in its own shape":
            values = [p, net.add(Exp(), net.r)]
        case "nothing is computed":
            values = [net.add(Reshape((2, 3, WIDTH)), net.x), net.r]
        case "the result is larger":
            values = [net.add(Reshape((ROWS, 1, WIDTH)), "p"), net.constant("c", net.numbers(4, 1))]
        case "there are no elements":
            empty = net.add(MatMul(), net.input("e", TensorType("float32", (0, WIDTH))), net.w)
            values = [net.add(Reshape((2, 0, 3)), empty), net.constant("c", net.numbers(2, 1, 1))]
    net.add(op, *values, output="y")
    return net.finish(tuple(outputs))


@pytest.mark.parametrize(
    "kind",
    [
        "an operand changes along a part of the rows",
        "the product is an output",
        "its elements are an output in another shape",
        "what is no elementwise operator reads it, too",
        "another operand is computed later in its own shape",
        "nothing is computed",
        "the result is larger",
        "there are no elements",
    ],
)
def test_what_would_gain_nothing_or_copy_is_left_alone(kind: str) -> None:
    graph = left_alone(kind)
    assert ReshapeMotion()(graph) is graph


def test_a_transpose_of_axes_of_one_element_is_a_reshape(apply: Apply, lines: Lines) -> None:
    net = Net()
    p = net.add(Reshape((1, ROWS, WIDTH)), net.add(Gemm(), net.x, net.w, output="p"))
    net.add(Relu(), net.add(Transpose((1, 0, 2)), p), output="y")
    assert lines(apply(ReshapeMotion(), net.finish(("y",)))) == [
        "p = Gemm(x, w)",
        "y.moved = Relu(p)",
        "y = Reshape[shape=(6, 1, 8)](y.moved)",
    ]


def test_outputs_keep_names_and_shapes(apply: Apply) -> None:
    net = Net()
    value = net.add(Relu(), net.product("p"), output="y")
    net.add(Identity(), value, output="z")
    net.add(Reshape((ROWS, WIDTH)), value, output="flat")
    after = apply(ReshapeMotion(), net.finish(("flat", "z", "y")))
    assert [str(after.types[name]) for name in after.outputs] == [
        "float32[6, 8]",
        "float32[2, 3, 8]",
        "float32[2, 3, 8]",
    ]


@pytest.mark.parametrize(
    ("own", "result", "moved", "expected"),
    [
        ((4,), (2, 3, 4), (6, 4), (4,)),
        ((), (2, 3, 4), (6, 4), ()),
        ((2, 3, 1), (2, 3, 4), (6, 4), (6, 1)),
        ((1, 1, 4), (2, 3, 4), (6, 4), (1, 4)),
        ((3, 4), (2, 3, 4), (6, 4), None),
        ((3, 1), (2, 3, 4), (6, 4), None),
        ((6, 1), (6, 4), (2, 3, 4), (2, 3, 1)),
        ((1, 4), (6, 4), (2, 3, 4), (1, 1, 4)),
        ((5, 1), (1, 5, 4), (5, 1, 4), (5, 1, 1)),
        ((2, 1), (2, 0), (0, 3), None),
        ((2, 0), (2, 0), (0, 3), (0, 3)),
    ],
)
def test_operands_broadcast_as_before(
    own: tuple[int, ...],
    result: tuple[int, ...],
    moved: tuple[int, ...],
    expected: tuple[int, ...] | None,
) -> None:
    assert aligned(own, result, moved) == expected
    if expected is not None:
        numbers = np.arange(np.prod(own, dtype=int)).reshape(own)
        before = np.broadcast_to(numbers, result).reshape(moved)
        np.testing.assert_array_equal(np.broadcast_to(numbers.reshape(expected), moved), before)


def test_random_networks_keep_their_meaning(apply: Apply) -> None:
    shapes = ((ROWS, WIDTH), (2, 3, WIDTH), (1, 3, 2, WIDTH), (ROWS, 2, 4), (ROWS, 1, WIDTH))
    moved = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        net = Net()
        values = [net.x, net.r]
        for _ in range(10):
            value = values[rng.integers(len(values))]
            shape = net.types[value].shape
            match rng.integers(5):
                case 0:
                    values.append(net.add(Tanh(), value))
                case 1:
                    other = values[rng.integers(len(values))]
                    values.append(net.add(Add(), value, net.add(Reshape(shape), other)))
                case 2 if shape[-1] == WIDTH:
                    values.append(net.add(MatMul(), value, net.w))
                case 3:
                    sizes = tuple(int(rng.choice([1, size])) for size in shape[rng.integers(2) :])
                    name = net.fresh("c")
                    values.append(net.add(Mul(), value, net.constant(name, net.numbers(*sizes))))
                case _:
                    values.append(net.add(Reshape(shapes[rng.integers(len(shapes))]), value))
        graph = net.finish(tuple(dict.fromkeys((values[-1], values[-2]))))
        moved += apply(ReshapeMotion(), graph) is not graph
    assert moved > 15


@pytest.mark.needs_cc
def test_the_kernel_of_a_product_computes_what_was_behind_its_reshape() -> None:
    net = Net()
    p = net.product("p")
    condition = net.constant("c", np.arange(2 * 3 * WIDTH).reshape(2, 3, WIDTH) % 3 == 0)
    net.add(Where(), condition, net.add(Add(), net.add(Tanh(), p), net.r), p, output="y")
    graph = net.finish(("y",))
    engine = compile(graph, cache=False)
    assert any("1 launches of 1 functions" in line for line in str(engine.explain()).splitlines())
    feeds = {name: net.numbers(*graph.types[name].shape) for name in graph.inputs}
    got, expected = engine.run(feeds)["y"], evaluate(graph, feeds)["y"]
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
