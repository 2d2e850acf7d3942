"""Passes on branches and loops: what they leave, and that it means the same."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph, GraphNode
from tilewright.graph.ir.verify import verify
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add, Mul
from tilewright.graph.ops.gathering import Gather
from tilewright.graph.passes.branch_taking import BranchTaking
from tilewright.graph.passes.invariant_hoisting import InvariantHoisting
from tilewright.graph.passes.loop_unrolling import LoopUnrolling
from tilewright.graph.passes.pipeline import GraphPass, optimise
from tilewright.graph.passes.region_inputs import RegionInputs
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.regions.branch import IfElse
from tilewright.graph.regions.loop import Loop
from tilewright.graph.types import Splat, TensorType

from ..flow_models import MODELS, floats

VECTOR = TensorType("float32", (4,))
NUMBER = TensorType("int64", ())


def titles(graph: Graph) -> Counter[str]:
    return Counter(node.op.title for node in graph.nodes)


def body(graph: Graph) -> Graph:
    (loop,) = (node.op for node in graph.nodes if isinstance(node.op, Loop))
    return loop.body


def same(one: Graph, other: Graph, **inputs: np.ndarray) -> None:
    verify(other)
    for name, array in evaluate(one, inputs).items():
        np.testing.assert_allclose(evaluate(other, inputs)[name], array, rtol=1e-6)


def adding(name: str = "step", *, count: int | None = None) -> Graph:
    """s + x w in each iteration; x w is the same in all of them. A count that is no input."""
    inner = GraphBuilder("body")
    inner.input("i", NUMBER)
    s, x, w = (inner.input(name, VECTOR) for name in "sxw")
    product = inner.add(Mul(), x, w, output="p")
    inner.add(Add(), s, product, output="next")
    builder = GraphBuilder("g")
    n = () if count is not None else (builder.input("n", NUMBER),)
    x = builder.input("x", VECTOR)
    w = builder.constant("w", floats((4,), 2))
    op = Loop(inner.finish(("next",)), 1, count, counted=count is None)
    builder.add_node(GraphNode(op, (*n, x, x, w), ("y",), name))
    return builder.finish(("y",))


def test_what_is_the_same_in_each_iteration_is_computed_before_the_loop() -> None:
    graph = adding()
    after = InvariantHoisting()(graph)
    assert titles(after) == {"Mul": 1, "Loop": 1}
    assert titles(body(after)) == {"Add": 1}
    for n in (0, 3):
        same(graph, after, n=np.array(n), x=floats((4,)))
    assert InvariantHoisting()(after) is after


def test_what_may_refuse_an_index_stays_in_a_loop_that_may_not_run() -> None:
    for count, left in ((None, 1), (3, 0)):
        inner = GraphBuilder("body")
        inner.input("i", NUMBER)
        s, table = inner.input("s", VECTOR), inner.input("t", TensorType("float32", (9, 4)))
        at = inner.input("at", NUMBER)
        inner.add(Add(), s, inner.add(Gather(0), table, at), output="next")
        builder = GraphBuilder("g")
        n = () if count is not None else (builder.input("n", NUMBER),)
        x, table = builder.input("x", VECTOR), builder.input("t", TensorType("float32", (9, 4)))
        at = builder.input("at", NUMBER)
        op = Loop(inner.finish(("next",)), 1, count, counted=count is None)
        builder.add_node(GraphNode(op, (*n, x, table, at), ("y",), "loop"))
        after = InvariantHoisting()(builder.finish(("y",)))
        assert titles(body(after))["Gather"] == left


def test_out_of_inner_loops_it_moves_as_far_as_it_may() -> None:
    inner = adding(count=2)
    outer = GraphBuilder("body")
    outer.input("i", NUMBER)
    s, x = outer.input("s", VECTOR), outer.input("x", VECTOR)
    w = outer.constant("w", floats((4,), 2))
    (node,) = inner.nodes
    outer.add_node(GraphNode(node.op, (s, x, w), ("next",), "inner"))
    builder = GraphBuilder("g")
    x = builder.input("x", VECTOR)
    op = Loop(outer.finish(("next",)), 1, 3)
    builder.add_node(GraphNode(op, (x, x), ("y",), "outer"))
    graph = builder.finish(("y",))
    after = InvariantHoisting()(graph)
    assert titles(after) == {"Mul": 1, "Loop": 1}
    assert titles(body(after)) == {"Loop": 1}
    assert titles(body(body(after))) == {"Add": 1}
    same(graph, after, x=floats((4,)))


def test_constants_go_into_regions_and_what_they_do_not_read_stays_out() -> None:
    graph = adding()
    after = RegionInputs()(graph)
    (node,) = after.nodes
    assert node.inputs == ("n", "x", "x")
    assert set(body(after).constants) == {"w"}
    same(graph, after, n=np.array(2), x=floats((4,)))
    assert RegionInputs()(after) is after


def test_what_no_iteration_changes_is_not_carried() -> None:
    graph = import_onnx(MODELS["invariant"]().proto)
    kept = [node.op.carried for node in graph.nodes if isinstance(node.op, Loop)]
    assert kept == [2]
    inner = GraphBuilder("body")
    inner.input("i", NUMBER)
    s, fixed = inner.input("s", VECTOR), inner.input("f", VECTOR)
    inner.add(Add(), s, fixed, output="next")
    builder = GraphBuilder("g")
    x = builder.input("x", VECTOR)
    h = builder.add(Relu(), x, output="h")
    op = Loop(inner.finish(("next", "f")), 2, 3)
    builder.add_node(GraphNode(op, (x, h), ("y", "f_end"), "loop"))
    builder.add(Add(), "y", "f_end", output="z")
    graph = builder.finish(("z",))
    after = RegionInputs()(graph)
    (loop,) = (node for node in after.nodes if isinstance(node.op, Loop))
    assert (loop.inputs, loop.outputs) == (("x", "h"), ("y",))
    same(graph, after, x=floats((4,)))


def test_a_constant_takes_its_branch() -> None:
    sides = []
    for op in (Relu(), Mul()):
        side = GraphBuilder("side")
        x = side.input("x", VECTOR)
        side.add(op, *[x] * (1 if isinstance(op, Relu) else 2), output="r")
        sides.append(side.finish(("r",)))
    for condition, title in ((True, "Relu"), (False, "Mul")):
        builder = GraphBuilder("g")
        x, c = builder.input("x", VECTOR), builder.constant("c", Splat(condition, "bool", ()))
        builder.add_node(GraphNode(IfElse(*sides), (c, x), ("y",), "choice"))
        graph = builder.finish(("y",))
        after = BranchTaking()(graph)
        assert titles(after) == {title: 1, "Identity": 1}
        same(graph, after, x=floats((4,)))


@pytest.mark.parametrize("count", [0, 1, 2, 8])
def test_a_loop_of_few_iterations_is_unrolled(count: int) -> None:
    graph = adding(count=count)
    after = LoopUnrolling()(graph)
    assert not titles(after)["Loop"]
    assert titles(after)["Mul"] == count
    same(graph, after, x=floats((4,)))


def test_a_loop_of_many_iterations_or_nodes_or_of_rows_is_not() -> None:
    for graph in (adding(count=9), adding(count=2), import_onnx(MODELS["scanning"]().proto)):
        unroll = LoopUnrolling(nodes=3)
        assert unroll(graph) is graph


def test_a_loop_over_one_row_is_unrolled_and_stores_one() -> None:
    inner = GraphBuilder("body")
    inner.input("i", NUMBER)
    s, row = inner.input("s", VECTOR), inner.input("row", VECTOR)
    inner.add(Add(), s, row, output="next")
    inner.add(Relu(), s, output="kept")
    for count in (0, 1):
        builder = GraphBuilder("g")
        x = builder.input("x", VECTOR)
        rows = builder.input("rows", TensorType("float32", (count, 4)))
        op = Loop(inner.finish(("next", "kept")), 1, count, rows=(True,), collected=(False,))
        builder.add_node(GraphNode(op, (x, rows), ("y", "all"), "scan"))
        graph = builder.finish(("y", "all"))
        after = LoopUnrolling()(graph)
        assert not titles(after)["Loop"]
        same(graph, after, x=floats((4,)), rows=floats((count, 4)))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "one", [RegionInputs(), BranchTaking(), LoopUnrolling(16, 400), InvariantHoisting()], ids=repr
)
def test_each_pass_keeps_what_a_model_means(name: str, one: GraphPass) -> None:
    made = MODELS[name]()
    graph = import_onnx(made.proto)
    after = one(graph)
    verify(after)
    for inputs in made.runs:
        found = evaluate(after, inputs, dtype=None).values()
        for array, other in zip(found, made.expected(inputs), strict=True):
            np.testing.assert_allclose(array, other, rtol=1e-5, atol=1e-5)


def test_passes_run_within_regions_and_say_so() -> None:
    _, reports = optimise(import_onnx(MODELS["nested"]().proto))
    inner = [report.name for report in reports if " in " in report.name]
    assert "DeadCode in body of 'inner' in body of 'outer'" in inner
    assert all(report.verdict == "equal" for report in reports if " in " in report.name)
