"""Operators that hold graphs: what they mean by NumPy, how they print, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.graph.errors import ModelError
from tilewright.graph.ir.at_sizes import graph_at, usual_sizes
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph, GraphNode, RegionOperator
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add
from tilewright.graph.ops.logic import Less
from tilewright.graph.ops.reduction import ReduceSum
from tilewright.graph.ops.repetition import Expand
from tilewright.graph.reference.effort import TooLarge
from tilewright.graph.reference.reference import StepBudget, evaluate
from tilewright.graph.regions.branch import IfElse
from tilewright.graph.regions.loop import Loop
from tilewright.graph.types import Splat, TensorType
from tilewright.tir.dim import Dim
from tilewright.tir.errors import InternalError
from tilewright.tir.sizes import is_closed, size_of

VECTOR, NUMBER, FLAG = (
    TensorType("float32", (3,)),
    TensorType("int64", ()),
    TensorType("bool", ()),
)
LONGER = TensorType("float32", (4,))


def region(*inputs: TensorType, outputs: tuple[int, ...]) -> Graph:
    """A graph that gives some of its inputs."""
    builder = GraphBuilder("region")
    names = [builder.input(f"v{n}", type_) for n, type_ in enumerate(inputs)]
    return Graph(
        "region", tuple(names), tuple(names[n] for n in outputs), (), {}, dict(builder.types)
    )


def refused(op: RegionOperator, *types: TensorType) -> str:
    with pytest.raises(ModelError) as caught:
        op.infer(types)
    return str(caught.value)


STEP = region(NUMBER, VECTOR, outputs=(1,))


def test_refusals(golden: Callable[[str, str], None]) -> None:
    same = region(VECTOR, outputs=(0,))
    texts = [
        refused(IfElse(same, same), NUMBER, VECTOR),
        refused(IfElse(same, same), FLAG, LONGER),
        refused(IfElse(same, same), FLAG),
        refused(IfElse(same, region(VECTOR, outputs=(0, 0))), FLAG, VECTOR),
        refused(
            IfElse(region(VECTOR, LONGER, outputs=(0,)), region(VECTOR, LONGER, outputs=(1,))),
            FLAG,
            VECTOR,
            LONGER,
        ),
        refused(Loop(STEP, 1, counted=True), FLAG, VECTOR),
        refused(Loop(STEP, 1, conditional=True), NUMBER, VECTOR),
        refused(Loop(STEP, 1, counted=True, rows=(False,)), NUMBER, VECTOR, VECTOR),
        refused(Loop(STEP, 1, 5), LONGER),
        refused(Loop(STEP, 0, 5, rows=(False,)), TensorType("float32", (4, 3))),
        refused(Loop(region(NUMBER, VECTOR, outputs=(1, 1)), 1, 5), VECTOR),
        refused(Loop(region(NUMBER, VECTOR, LONGER, outputs=(2,)), 1, 5), VECTOR, LONGER),
    ]
    golden("errors/graph_regions.txt", "\n\n".join(texts))


def test_they_are_no_kernels() -> None:
    op = Loop(STEP, 1, 2)
    with pytest.raises(InternalError) as caught:
        op.express(name="x")
    assert str(caught.value).startswith(
        "InternalError: operators: 'express' of Loop was asked for, which runs graphs; expected a "
        "plan, or `run`, to take them one by one. [operator-regions]"
    )
    with pytest.raises(InternalError, match="'reference' of Loop was asked for"):
        op.reference()


def doubling() -> Graph:
    """x doubled while its first element is below the limit."""
    inner = GraphBuilder("body")
    inner.input("i", NUMBER)
    x = inner.input("x", TensorType("float32", ()))
    limit = inner.constant("limit", Splat(100.0, "float32", ()))
    inner.add(Add(), x, x, output="next")
    inner.add(Less(), "next", limit, output="more")
    body = inner.finish(("more", "next"))
    builder = GraphBuilder("g")
    x, begins = builder.input("x", TensorType("float32", ())), builder.input("c", FLAG)
    builder.add_node(GraphNode(Loop(body, 1, conditional=True), (begins, x), ("y",), "loop"))
    return builder.finish(("y",))


def test_a_graph_prints_with_its_regions() -> None:
    assert str(doubling()) == (
        "graph g(x: float32[], c: bool[]):\n"
        "    # 1 nodes; 0 constants: 0 splats, 0 B in the others\n"
        "    y = Loop[carried=1, conditional=True](c, x)  # float32[]\n"
        "        body:\n"
        "        graph body(i: int64[], x: float32[]):\n"
        "            # 2 nodes; 1 constants: 1 splats, 0 B in the others\n"
        "            next = Add(x, x)  # float32[]\n"
        "            more = Less(next, splat(100))  # bool[]\n"
        "            return more, next\n"
        "    return y"
    )


def test_data_end_a_loop_or_a_budget_does() -> None:
    graph = doubling()
    yes = np.array(True)
    assert evaluate(graph, {"x": np.float32(3), "c": yes})["y"] == 192
    assert evaluate(graph, {"x": np.float32(3), "c": np.array(False)})["y"] == 3
    for budget in (StepBudget(1 << 9, 1 << 30), StepBudget(1 << 60, 1 << 9)):
        with pytest.raises(TooLarge, match="has loops that go on for longer than a check may"):
            evaluate(graph, {"x": np.float32(-1), "c": yes}, budget=budget)
    enough = StepBudget(1 << 9, 6)
    assert evaluate(graph, {"x": np.float32(3), "c": yes}, budget=enough)["y"] == 192


def test_work_is_counted_with_what_is_known_of_it() -> None:
    side = GraphBuilder("side")
    side.add(Relu(), side.input("x", VECTOR), output="y")
    relu = side.finish(("y",))
    once = relu.nodes[0].op.work((VECTOR,)).steps
    assert IfElse(relu, region(VECTOR, outputs=(0,))).work((FLAG, VECTOR)).steps == once
    inner = GraphBuilder("body")
    inner.input("i", NUMBER)
    inner.add(Relu(), inner.input("x", VECTOR), output="y")
    body = inner.finish(("y",))
    assert Loop(body, 1, 7).work((VECTOR,)).steps == 7 * once
    assert Loop(body, 1, counted=True).work((NUMBER, VECTOR)).steps == once


def test_a_graph_of_open_sizes_is_at_a_choice_of_them_one_whose_loops_are_too() -> None:
    rows = size_of(Dim("count", low=1, high=9))
    inner = GraphBuilder("body")
    inner.input("i", NUMBER)
    wide = inner.add(Expand((rows, 3)), inner.input("x", VECTOR))
    inner.add(ReduceSum((0,), keepdims=False), wide, output="y")
    builder = GraphBuilder("g")
    builder.input("rows", TensorType("float32", (rows, 3)))
    builder.add(
        Loop(inner.finish(("y",)), 1, rows), builder.input("x", VECTOR), output="y", name="loop"
    )
    graph = builder.finish(("y",))
    at = graph_at(graph, dict.fromkeys(graph.dims, 4))
    (loop,) = (node.op for node in at.nodes if isinstance(node.op, Loop))
    assert loop.count == 4
    assert all(is_closed(type_.shape) for type_ in loop.body.types.values())
    for count in (1, 3):
        given = {"rows": np.zeros((count, 3)), "x": np.ones(3)}
        assert (evaluate(graph, given)["y"] == count**count).all()
    body = graph.nodes[0].op
    assert isinstance(body, Loop)
    assert [dim.name for dim in usual_sizes(body.body)] == ["count"]  # no input tells it
