"""The graph on which precision is decided."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ir.ir import Graph
from tilewright.graph.passes.pipeline import PIPELINE, pass_name
from tilewright.graph.precision.prepared import PREPARING, calibrated_values, prepared_graph
from tilewright.graph.reference.reference import evaluate

from ..conftest import random_array
from .models import masked, network

LAYOUT_AND_HEADS = {
    *("ChannelsLast", "HeadMerging", "AttentionRecognition", "SharedHeads", "ProductTurning"),
    "RowProductRecognition",  # what it makes is no MatMul any more
    *("ReshapeMotion", "IntegerProducts", "Int16Products", "WordProducts", "LevelMotion"),
    *("WidenedProducts", "SignedProducts", "BlockProducts", "GridBlockProducts", "LevelRows"),
    *("LevelQuotients", "LevelClamps", "LevelTransposes"),
    *("TransposedPhases", "MaxPoolSplitting"),
}


def normalised() -> Graph:
    """A convolution, a batch normalisation, and a Gelu by its parts."""
    text = """
<ir_version: 8, opset_import: ["": 17]>
normalised (float[1, 2, 4, 4] x) => (float[1, 3, 4, 4] y)
<float root = {1.4142135}, float one = {1.0}, float half = {0.5}>
{
    conv = Conv<pads=[1, 1, 1, 1]>(x, w)
    norm = BatchNormalization(conv, gain, shift, mean, variance)
    scaled = Div(norm, root)
    curve = Erf(scaled)
    above = Add(curve, one)
    product = Mul(norm, above)
    y = Mul(product, half)
}
"""
    model = onnx.parser.parse_model(text)
    arrays = {"w": random_array(0, 3, 2, 3, 3)}
    arrays |= {name: random_array(n, 3) for n, name in enumerate(("gain", "shift", "mean"))}
    arrays["variance"] = np.abs(random_array(9, 3)) + np.float32(1)
    tensors = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    model.graph.initializer.extend(tensors)
    return import_onnx(model)


def test_the_passes_are_those_of_the_pipeline_that_keep_layout_and_heads() -> None:
    names = [pass_name(one) for one in PREPARING]
    assert names == [name for name in map(pass_name, PIPELINE) if name not in LAYOUT_AND_HEADS]


def test_what_is_folded_and_recognised_has_no_values_within() -> None:
    imported = normalised()
    prepared = prepared_graph(imported, check=True)
    assert [node.op.title for node in prepared.nodes] == ["Conv", "Gelu"]
    assert calibrated_values(prepared) == ("x", "norm", "y")
    feeds = {"x": random_array(3, 1, 2, 4, 4)}
    expected, got = (evaluate(graph, feeds)["y"] for graph in (imported, prepared))
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_a_second_preparation_changes_nothing() -> None:
    prepared = prepared_graph(normalised())
    assert prepared_graph(prepared) is prepared


def test_calibrated_values_are_floats_that_are_no_constants() -> None:
    prepared = prepared_graph(import_onnx(masked()))
    assert calibrated_values(prepared) == ("x", "hide", "scores", "mask", "sum", "y")


def test_values_within_a_branch_are_none_of_them() -> None:
    inner = helper.make_graph(
        [helper.make_node("Exp", ["x"], ["inside"])],
        "inner",
        [],
        [helper.make_tensor_value_info("inside", 1, [3])],
    )
    other = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["beside"])],
        "other",
        [],
        [helper.make_tensor_value_info("beside", 1, [3])],
    )
    node = helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=other)
    graph = helper.make_graph(
        [node],
        "branch",
        [helper.make_tensor_value_info("x", 1, [3]), helper.make_tensor_value_info("c", 9, [])],
        [helper.make_tensor_value_info("y", 1, [3])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    assert calibrated_values(prepared_graph(import_onnx(model))) == ("x", "y")


_SCRIPT = """
import sys
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.precision.prepared import prepared_graph
from tilewright.graph.precision.channels.products import products_digest
made = prepared_graph(import_onnx(sys.argv[1]))
print(list(made.types), products_digest(made))
"""


def test_names_and_digests_are_the_same_in_each_process(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(network(), path)
    said = {
        subprocess.run(
            [sys.executable, "-c", _SCRIPT, str(path)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
            cwd=tmp_path,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1
