"""LevelTransposes: bytes are moved after they have become other bytes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.arithmetic import Add, Mul
from tilewright.graph.ops.functions import Cast
from tilewright.graph.ops.matmul import MatMul
from tilewright.graph.ops.movement import Reshape, Transpose
from tilewright.graph.passes.constant_folding import ConstantFolding
from tilewright.graph.passes.level_transposes import LevelTransposes
from tilewright.graph.passes.pipeline import GraphPass
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import TensorType

from .quantised import Quantised

Apply = Callable[[GraphPass, Graph], Graph]
Lines = Callable[[Graph], list[str]]


def heads(
    *, read: str = "", scale: str = "one", after: str = "", end: str = "uint8", views: int = 1
) -> Graph:
    """Levels of rows of heads, transposed, scaled and rounded to other levels."""
    net = Quantised(1)
    x = net.input("x", TensorType("float32", (6, 8)))
    levels = net.levels(x, net.number(0.03), net.number(9.0), output="levels")
    for n in range(views):
        levels = net.add(Reshape((6, 2, 4) if n == 0 else (6, 2, 4, 1)), levels, output=f"view{n}")
    order = (1, 2, 0) if views == 1 else (1, 2, 3, 0) if views else (1, 0)
    moved = net.add(Transpose(order), levels, output="moved")
    if after == "transpose":
        moved = net.add(Transpose((0, 2, 1)), moved, output="again")
    number = net.number(0.7)
    if scale == "many":
        number = net.array(np.linspace(0.1, 0.7, 6, dtype=np.float32))
    if scale == "of a run":
        number = net.input("s", TensorType("float32", ()))
    real = net.real(moved, number, net.number(3, "uint8"))
    if end == "uint8":
        net.levels(real, net.number(0.4), net.number(5.0), output="y")
    else:
        net.add(Cast(end), real, output="y")
    return net.finish(("y", read) if read else ("y",))


def test_a_transpose_follows_what_makes_other_bytes(apply: Apply, lines: Lines) -> None:
    text = lines(apply(LevelTransposes(), ConstantFolding()(heads())))
    assert [line for line in text if "Transpose" in line] == [
        "y = Transpose[permutation=(1, 2, 0)](y.unmoved)"
    ]
    at = next(n for n, line in enumerate(text) if line.startswith("view0 ="))
    assert "(view0)" in text[at + 1]
    assert text[-1].startswith("y = Transpose")


def test_more_shapes_may_stand_between(apply: Apply) -> None:
    for views in (0, 2):
        after = apply(LevelTransposes(), ConstantFolding()(heads(views=views)))
        assert isinstance(after.nodes[-1].op, Transpose)


def test_bytes_are_moved_where_floats_follow_them(apply: Apply) -> None:
    """Behind the last bytes: what follows is wider."""
    net = Quantised(1)
    x = net.input("x", TensorType("float32", (6, 8)))
    levels = net.levels(x, net.number(0.03), net.number(9.0))
    real = net.real(net.add(Transpose((1, 0)), levels), net.number(0.7))
    made = net.levels(real, net.number(0.4), net.number(5.0), "int8", output="made")
    net.add(Add(), net.real(made, net.number(0.4)), net.number(0.1), output="y")
    after = apply(LevelTransposes(), ConstantFolding()(net.finish(("y",))))
    (move,) = (node for node in after.nodes if isinstance(node.op, Transpose))
    assert move.outputs == ("made",)
    assert after.types["made"].dtype == "int8"


@pytest.mark.parametrize(
    "graph",
    [
        heads(read="levels"),
        heads(read="view0"),
        heads(read="moved"),
        heads(scale="many"),
        heads(scale="of a run"),
        heads(end="float32"),
        heads(after="transpose", end="float32"),
    ],
    ids=["bytes", "shapes", "moved", "many", "run", "floats", "again"],
)
def test_what_others_read_and_what_needs_more_stays(graph: Graph) -> None:
    folded = ConstantFolding()(graph)
    assert LevelTransposes()(folded) is folded


def test_bytes_of_the_caller_stay_as_they_are() -> None:
    """No kernel makes them, so that nothing would be joined."""
    net = Quantised(1)
    x = net.input("x", TensorType("uint8", (6, 8)))
    real = net.real(net.add(Transpose((1, 0)), x), net.number(0.7))
    net.levels(real, net.number(0.4), net.number(5.0), output="y")
    folded = ConstantFolding()(net.finish(("y",)))
    assert LevelTransposes()(folded) is folded


@pytest.mark.needs_cc
def test_an_engine_moves_bytes_alone() -> None:
    net = Quantised(2)
    _, x = net.quantised_input(9, 8)
    w = net.real(net.bytes_of("w", "int8", 8, 12), net.number(0.01))
    made = net.levels(net.add(MatMul(), x, w), net.number(0.3), net.number(7.0))
    keys = net.add(Transpose((1, 2, 0)), net.add(Reshape((9, 3, 4)), made))
    real = net.add(Mul(), net.real(keys, net.number(0.3), net.number(7, "uint8")), net.number(0.5))
    net.levels(real, net.number(0.2), net.number(4.0), output="y")
    graph = net.finish(("y",))
    engine = tw.compile(graph, cache=False, verify="off")
    fused = [str(line) for line in engine.explain().notes if "fused: " in str(line)]
    assert not any("Transpose" in line for line in fused)
    given = np.random.default_rng(0).standard_normal((9, 8), np.float32)
    np.testing.assert_array_equal(engine(given), evaluate(graph, {"x": given}, dtype=None)["y"])
