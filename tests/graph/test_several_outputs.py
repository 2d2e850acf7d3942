"""Models of nodes with several outputs, from ONNX to a saved engine: by value against NumPy."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw
from tilewright.graph.compile import compile
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.passes.pipeline import optimise
from tilewright.graph.plan.plan import plan_model
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array
from tilewright.tir.target.target import Target

from .transformer import encoder

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


@pytest.mark.sampled(2)
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
    unread = {"values.output1": 2, "places.output0": 4, "q.output1": 6}  # named by their nodes
    assert {name: (places[name].first, places[name].last) for name in unread} == {
        name: (launch, launch) for name, launch in unread.items()
    }
    assert places["w"].last > places["w"].first


def behind(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model with a TopK of its first output, whose values become the data of another one, and a
    quantization of it.
    """
    (first, *_) = (output.name for output in model.graph.output)
    five = numpy_helper.from_array(np.array([5]), "five_of_them")
    model.graph.initializer.append(five)
    model.graph.node.extend(
        [
            helper.make_node("TopK", [first, five.name], ["top.v", "top.places"]),
            helper.make_node("Relu", ["top.v"], ["top.positive"]),
            helper.make_node("TopK", ["top.positive", five.name], ["top.again", "top.unread"]),
            helper.make_node(
                "DynamicQuantizeLinear", [first], ["top.q", "top.scale", "top.unread_zero"]
            ),
        ]
    )
    names = ("top.places", "top.again", "top.q", "top.scale")
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    return model


def convolution() -> onnx.ModelProto:
    """What normalisation folds into, and a layout moves."""
    rng = np.random.default_rng(1)
    weights = {"w": rng.standard_normal((16, 4, 3, 3)), "n": rng.random(16) + 1}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c", "n", "n", "n", "n"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 4, 9, 8))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    arrays = [numpy_helper.from_array(w.astype(np.float32), name) for name, w in weights.items()]
    graph = helper.make_graph(nodes, "convolution", [x], [y], arrays)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def spelled() -> onnx.ModelProto:
    """A layer normalisation that a pass recognises."""
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["m"], axes=[-1]),
        helper.make_node("Sub", ["x", "m"], ["d"]),
        helper.make_node("Mul", ["d", "d"], ["p"]),
        helper.make_node("ReduceMean", ["p"], ["u"], axes=[-1]),
        helper.make_node("Add", ["u", "e"], ["t"]),
        helper.make_node("Sqrt", ["t"], ["r"]),
        helper.make_node("Div", ["d", "r"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    epsilon = numpy_helper.from_array(np.float32([1e-5]), "e")
    graph = helper.make_graph(nodes, "spelled", [x], [y], [epsilon])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


MODELS = {
    "encoder": (lambda: encoder(1, 6), {"Attention", "LayerNormalization"}),
    "convolution": (convolution, {"Conv"}),
    "spelled": (spelled, {"LayerNormalization"}),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_pass_works_beside_nodes_with_several_outputs(name: str) -> None:
    make, expected = MODELS[name]
    plain, wanted = optimise(import_onnx(make()))
    after, reports = optimise(import_onnx(behind(make())))
    undone, others_undone = (
        [r.name for r in rs if r.verdict == "undone"] for rs in (reports, wanted)
    )
    assert undone == others_undone
    found, others = (Counter(node.op.title for node in g.nodes) for g in (after, plain))
    assert expected <= set(found)
    assert all(found[title] == others[title] for title in expected)
    assert (found["TopK"], found["DynamicQuantizeLinear"]) == (2, 1)


@pytest.mark.sampled(2)
@pytest.mark.needs_cc
@pytest.mark.parametrize("name", MODELS)
def test_such_models_run_as_the_reference_does(name: str) -> None:
    engine = compile(behind(MODELS[name][0]()), cache=False)
    assert {kernel.check for kernel in engine.explain().kernels} == {"ok"}
    assert engine.verify()


def test_a_grid_computes_them_too() -> None:
    engine = compile(mixed(), "cuda:sm_90a", cache=False, verify="rewrites")
    x = np.random.default_rng(3).standard_normal(SHAPE).astype(np.float32)
    expected = by_numpy(x)
    for name, array in tw.emulated(engine).run({"x": x}).items():
        np.testing.assert_array_equal(array, expected[name], err_msg=name)
