"""LevelMotion: which operators work on levels, and which do not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add, Mul
from tilewright.graph.ops.base import Operator
from tilewright.graph.ops.functions import Cast, Round
from tilewright.graph.ops.gathering import Gather
from tilewright.graph.ops.movement import Concat, Identity, Reshape, Transpose
from tilewright.graph.ops.pooling import AveragePool, MaxPool
from tilewright.graph.ops.slicing import Slice
from tilewright.graph.passes.level_motion import LevelMotion
from tilewright.graph.passes.pipeline import GraphPass
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import TensorType

from .quantised import Quantised

Apply = Callable[[GraphPass, Graph], Graph]
Lines = Callable[[Graph], list[str]]


def moved(*ops: Operator, scale: float = 0.02, zero: int = 9, dtype: str = "uint8") -> Graph:
    """Levels as numbers, through some operators, as levels again."""
    net = Quantised()
    x = net.input("x", TensorType("uint8", (1, 2, 4, 4)))
    value = net.real(x, net.number(0.02), net.number(9, "uint8"))
    for op in ops:
        value = net.add(op, value)
    net.levels(value, net.number(scale), net.number(zero, dtype), dtype, output="y")
    return net.finish(("y",))


def test_what_moves_moves_levels(apply: Apply, lines: Lines) -> None:
    ops = MaxPool((2, 2)), Transpose((0, 2, 3, 1)), Reshape((9, 2)), Slice((1, 0), (4, 2), (2, 1))
    assert lines(apply(LevelMotion(), moved(*ops))) == [
        "maxpool.levels = MaxPool[kernel=(2, 2)](x)",
        "transpose.levels = Transpose[permutation=(0, 2, 3, 1)](maxpool.levels)",
        "reshape.levels = Reshape[shape=(9, 2)](transpose.levels)",
        "y = Slice[starts=(1, 0), sizes=(4, 2), steps=(2, 1)](reshape.levels)",
    ]
    assert lines(apply(LevelMotion(), moved())) == ["y = Identity(x)"]


def test_parts_of_the_same_levels_are_joined_as_levels(apply: Apply, lines: Lines) -> None:
    net = Quantised()
    parts = [net.input(name, TensorType("int8", (2, 3))) for name in "ab"]
    scale, zero = net.number(0.02), net.number(-9, "int8")
    joined = net.add(Concat(0), *(net.real(one, scale, zero) for one in parts))
    net.levels(joined, scale, zero, "int8", output="y")
    assert lines(apply(LevelMotion(), net.finish(("y",)))) == ["y = Concat[axis=0](a, b)"]


@pytest.mark.parametrize(
    "graph",
    [
        moved(Relu()),
        moved(AveragePool((2, 2))),
        moved(Transpose((0, 2, 3, 1)), scale=0.03),
        moved(Transpose((0, 2, 3, 1)), zero=8),
        moved(Transpose((0, 2, 3, 1)), dtype="int8"),
    ],
    ids=["it computes", "a mean", "another scale", "another zero", "another type"],
)
def test_other_levels_are_rounded_anew(graph: Graph) -> None:
    assert LevelMotion()(graph) is graph


@pytest.mark.parametrize(("factor", "is_same"), [(1.0, True), (1.02, False)])
def test_levels_made_by_an_inverse_are_the_same_where_it_is_the_inverse(
    factor: float, is_same: bool
) -> None:
    net = Quantised()
    x = net.input("x", TensorType("uint8", (4,)))
    value = net.real(x, net.number(0.3), net.number(9, "uint8"))
    scaled = net.add(Mul(), value, net.number(float(np.float32(factor) / np.float32(0.3))))
    net.add(Cast("uint8"), net.add(Add(), net.add(Round(), scaled), net.number(9.0)), output="y")
    graph = net.finish(("y",))
    found = LevelMotion()(graph)
    assert [type(node.op) for node in found.nodes] == [Identity] if is_same else found is graph


@pytest.mark.parametrize("scale", [0.0, -0.5, 1e-40, 1e38, np.nan])
def test_a_scale_that_loses_levels_moves_nothing(scale: float) -> None:
    net = Quantised()
    x = net.input("x", TensorType("uint8", (4,)))
    number, zero = net.number(scale), net.number(9, "uint8")
    net.levels(net.add(Identity(), net.real(x, number, zero)), number, zero, output="y")
    graph = net.finish(("y",))
    assert LevelMotion()(graph) is graph


def test_what_others_read_stays() -> None:
    net = Quantised()
    x = net.input("x", TensorType("uint8", (1, 2, 4, 4)))
    scale, zero = net.number(0.02), net.number(9, "uint8")
    pooled = net.add(MaxPool((2, 2)), net.real(x, scale, zero))
    net.levels(pooled, scale, zero, output="y")
    net.add(Relu(), pooled, output="z")
    graph = net.finish(("y", "z"))
    assert LevelMotion()(graph) is graph


def test_all_levels_come_back() -> None:
    """What the pass rests on, for scales of every size that it takes."""
    levels = np.arange(256, dtype=np.uint8)
    for exponent in range(-100, 100, 7):
        scale = float(np.float32(1.2345 * 2.0**exponent))
        net = Quantised()
        x = net.input("x", TensorType("uint8", (256,)))
        number, zero = net.number(scale), net.number(77, "uint8")
        net.levels(net.real(x, number, zero), number, zero, output="y")
        found = evaluate(net.finish(("y",)), {"x": levels}, dtype=None)["y"]
        np.testing.assert_array_equal(found, levels)


def table(rows: int, scale: list[float]) -> Graph:
    """So many rows of a table of 8, plus an input."""
    net = Quantised()
    scales = net.array(np.array(scale, np.float32).reshape(-1)) if scale[1:] else net.number(*scale)
    numbers = net.real(net.bytes_of("table", "int8", 8, 3), scales, net.number(5, "int8"))
    places = net.constant("places", np.arange(rows) % 8)
    x = net.input("x", TensorType("float32", (rows, 3)))
    net.add(Add(), net.add(Gather(0), numbers, places), x, output="y")
    return net.finish(("y",))


def test_rows_of_a_table_are_levels_until_they_are_read(apply: Apply, lines: Lines) -> None:
    assert lines(apply(LevelMotion(), table(2, [0.02]))) == [
        "cast_1 = Cast[to='float32'](splat(5))",
        "gather.levels = Gather[axis=0](table, places)",
        "gather.levels_1 = Cast[to='float32'](gather.levels)",
        "gather.levels_2 = Sub(gather.levels_1, cast_1)",
        "gather = Mul(gather.levels_2, splat(0.02))",
        "y = Add(gather, x)",
    ]


@pytest.mark.parametrize("graph", [table(9, [0.02]), table(2, [0.02, 0.03, 0.04])])
def test_more_rows_than_a_table_has_and_those_with_many_scales_are_read_as_floats(
    graph: Graph,
) -> None:
    assert LevelMotion()(graph) is graph
