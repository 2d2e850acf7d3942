"""One graph of all regions, and the blocks beside it."""

from __future__ import annotations

import pytest

from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import GraphNode
from tilewright.graph.ir.verify import verify
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add
from tilewright.graph.ops.functions import Tanh
from tilewright.graph.plan.flatten import FlatBlock, FlatBranch, FlatLoop, flatten, loops_in
from tilewright.graph.plan.fusion import fuse
from tilewright.graph.plan.homes import plan_steps
from tilewright.graph.regions.loop import Loop
from tilewright.graph.types import TensorType

from ..flow_models import MODELS

VECTOR = TensorType("float32", (4,))


def test_a_graph_without_regions_is_its_own_flat_graph() -> None:
    builder = GraphBuilder("g")
    builder.add(Relu(), builder.input("x", VECTOR), output="y")
    graph = builder.finish(("y",))
    flat = flatten(graph)
    assert flat.graph is graph
    assert not flat.has_flow
    assert flat.block == FlatBlock(("y",))


@pytest.mark.parametrize("name", MODELS)
def test_a_flat_graph_is_one_whose_values_have_names_of_their_own(name: str) -> None:
    graph = import_onnx(MODELS[name]().proto)
    flat = flatten(graph)
    verify(flat.graph)
    assert flat.outputs == graph.outputs
    assert flat.inputs == graph.inputs
    assert flat.has_flow


def test_blocks_lie_within_each_other_as_the_graphs_do() -> None:
    flat = flatten(import_onnx(MODELS["nested"]().proto))
    (outer,) = flat.block.items
    assert isinstance(outer, FlatLoop)
    assert [loop.label for loop in loops_in(flat.block)] == ["outer", "inner"]
    inner = next(item for item in outer.body.items if isinstance(item, FlatLoop))
    assert isinstance(inner.body.items[-1], FlatBranch)
    assert (outer.number, inner.number) == (0, 1)


def captured() -> GraphNode:
    """A loop that reads a value which is computed before it."""
    inner = GraphBuilder("body")
    inner.input("i", TensorType("int64", ()))
    s, h = inner.input("s", VECTOR), inner.input("h", VECTOR)
    inner.add(Add(), s, h, output="next")
    op = Loop(inner.finish(("next",)), 1, counted=True)
    return GraphNode(op, ("n", "x", "h"), ("y",), "loop")


def test_what_a_loop_reads_is_computed_before_it_and_not_again_in_each_iteration() -> None:
    builder = GraphBuilder("g")
    builder.input("n", TensorType("int64", ()))
    x = builder.input("x", VECTOR)
    builder.add(Tanh(), x, output="h")
    builder.add_node(captured())
    flat = flatten(builder.finish(("y",)))
    fusion = fuse(flat.graph, outputs=flat.outputs)
    assert [group.title for group in fusion.groups] == ["Tanh", "Add"]
    assert [str(miss) for miss in fusion.misses] == [
        "not fused: node 'next' (Add) behind node 'h' (Tanh): 'h' is read within a branch or a "
        "loop, or given by one, and must be stored; to fuse: let Add stand where Tanh does"
    ]
    steps = plan_steps(flat, ())
    assert dict(steps.homes)["s"].value == "y"
