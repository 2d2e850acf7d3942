"""Models of nodes with several outputs, from ONNX to a saved engine: by value against NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw
from tilewright.graph.compile import compile
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph, Node
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.convolution import Conv
from tilewright.graph.ops.quantization import DynamicQuantizeLinear
from tilewright.graph.ops.ranking import TopK
from tilewright.graph.passes.pipeline import optimise
from tilewright.graph.plan.plan import plan_model
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array, TensorType
from tilewright.tir.target import Target

SHAPE = (4, 33)


def mixed() -> onnx.ModelProto:
    """Of three TopK, one is read for both of its outputs, one for each alone."""
    nodes = [
        helper.make_node("TopK", ["x", "five"], ["v", "i"], name="both"),
        helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["v", "f"], ["b"]),
        helper.make_node("TopK", ["x", "seven"], ["w", "w_unread"], name="values", largest=0),
        helper.make_node("Relu", ["w"], ["r"]),
        helper.make_node("TopK", ["w", "five"], ["p_unread", "p"], name="places"),
        helper.make_node("GatherElements", ["x", "p"], ["g"], axis=1),
        helper.make_node("DynamicQuantizeLinear", ["g"], ["q", "s", "z"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)
    counts = [
        numpy_helper.from_array(np.array([n]), name) for n, name in ((5, "five"), (7, "seven"))
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in ("b", "r", "g", "q", "z")]
    graph = helper.make_graph(nodes, "mixed", [x], outputs, counts)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def by_numpy(x: Array) -> dict[str, Array]:
    order, below = np.argsort(-x, 1, kind="stable"), np.argsort(x, 1, kind="stable")
    i, w = order[:, :5], np.take_along_axis(x, below, 1)[:, :7]
    p = np.argsort(-w, 1, kind="stable")[:, :5]
    g = np.take_along_axis(x, p, 1)
    low, high = min(g.min(), 0), max(g.max(), 0)
    scale = np.float32((high - low) / np.float32(255))
    zero = np.rint(-low / scale)
    return {
        "b": np.take_along_axis(x, i, 1) + i.astype(np.float32),
        "r": np.maximum(w, 0),
        "g": g,
        "q": np.clip(np.rint(g / scale) + zero, 0, 255).astype(np.uint8),
        "z": np.uint8(zero),
    }


@pytest.mark.needs_cc
@pytest.mark.parametrize("target", [None, "c:scalar", "python"])
def test_a_model_that_reads_outputs_together_and_alone(target: str | None, tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    expected = by_numpy(x)
    for name, array in evaluate(import_onnx(mixed()), {"x": x}, dtype=None).items():
        np.testing.assert_array_equal(array, expected[name], err_msg=name)
    engine = compile(mixed(), target, cache=False)
    engine.save(tmp_path / "mixed.twe")
    for one in (engine, tw.load(tmp_path / "mixed.twe")):
        for name, array in one.run({"x": x}).items():
            np.testing.assert_array_equal(array, expected[name], err_msg=name)
        assert one.verify({"x": x})


def test_outputs_that_nobody_reads_have_memory_for_their_launch() -> None:
    planned = plan_model(import_onnx(mixed()), Target.parse("c:avx2"))
    assert len(planned.lowered.program.launches) == 7  # Cast and Add are one
    places = {item.name: item for item in planned.lowered.plan.placements}
    for name in ("w_unread", "p_unread", "s"):
        assert places[name].first == places[name].last
    assert places["w"].last > places["w"].first


def behind_a_convolution() -> Graph:
    b = GraphBuilder("g")
    x = b.input("x", TensorType("float32", (1, 4, 9, 8)))
    w = b.constant("w", np.random.default_rng(1).standard_normal((16, 4, 3, 3)).astype(np.float32))
    c = b.add(Conv(pads=(1, 1, 1, 1)), x, w)
    b.add_node(Node(TopK(1, 3), (c,), ("values", "places")))
    b.add_node(Node(DynamicQuantizeLinear(), (b.add(Relu(), c),), ("y", "s", "z")))
    return b.finish((b.add(Relu(), "values", output="v"), "places", "y"))


def test_a_layout_ends_at_a_node_with_several_outputs() -> None:
    graph = behind_a_convolution()
    after, reports = optimise(graph)
    assert "undone" not in {report.verdict for report in reports}
    assert any(node.op.title == "Conv" and node.op.layout == "NHWC" for node in after.nodes)  # type: ignore[attr-defined]
    x = np.random.default_rng(2).standard_normal((1, 4, 9, 8))
    before = evaluate(graph, {"x": x})
    for name, array in evaluate(after, {"x": x}).items():
        np.testing.assert_allclose(array, before[name], rtol=1e-9)
