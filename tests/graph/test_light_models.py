"""The nine light models of the onnx wheel: imported, evaluated, optimised, compared."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest

from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ir.verify import verify
from tilewright.graph.ops.convolution import Conv
from tilewright.graph.ops.movement import Identity, Transpose
from tilewright.graph.ops.normalisation import BatchNormalization
from tilewright.graph.passes.pipeline import optimise
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.samples.samples import LIGHT_MODELS, light_model, random_model
from tilewright.graph.types import Array

Run = Callable[[onnx.ModelProto, dict[str, Array]], list[Array]]

# Transposes that remain in NHWC: of the features before a matrix product that reads them in the old
# order, and those that shuffle channels; the image is read where it lies
TRANSPOSES = {
    "bvlc_alexnet": 1,
    "densenet121": 0,
    "inception_v1": 0,
    "inception_v2": 0,
    "resnet50": 0,
    "shufflenet": 16,
    "squeezenet": 0,
    "vgg19": 1,
    "zfnet512": 1,
}
SMALL = ("shufflenet", "squeezenet")
LARGE = tuple(
    pytest.param(name, marks=pytest.mark.slow) for name in LIGHT_MODELS if name not in SMALL
)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", LIGHT_MODELS)
def test_the_oracle_gives_the_stored_output(name: str) -> None:
    sample = light_model(name)
    graph = import_onnx(sample.model)
    verify(graph)
    # in float64: logits of 1e10 that are all equal must not differ by how a BLAS sums in float32
    results = evaluate(graph, sample.inputs)
    for output, expected in sample.outputs.items():
        np.testing.assert_allclose(results[output], expected, rtol=1e-3, atol=1e-7)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", LIGHT_MODELS)
def test_every_pass_is_found_equal(name: str) -> None:
    graph = import_onnx(light_model(name).model)
    after, reports = optimise(graph, check=name in SMALL)
    assert {report.verdict for report in reports} <= {"equal", "unchecked", "unchanged"}
    kinds = [type(node.op) for node in after.nodes]
    assert kinds.count(Transpose) == TRANSPOSES[name]
    assert BatchNormalization not in kinds
    assert Identity not in kinds
    assert all(node.op.layout == "NHWC" for node in after.nodes if isinstance(node.op, Conv))
    assert after.constant_bytes < 1 << 20, "weights made by ConstantOfShape stay splats"


def errors(graph: Graph, after: Graph, name: str, feeds: dict[str, Array]) -> float:
    """The largest difference of value `name`, as part of its largest element."""
    expected, got = (evaluate(g, feeds, values=(name,))[name] for g in (graph, after))
    return float(np.abs(expected - got).max() / np.abs(expected).max())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [*SMALL, *LARGE])
def test_random_weights_show_no_difference(name: str, run_onnxruntime: Run) -> None:
    sample = random_model(name)
    graph = import_onnx(sample.model)
    feeds = dict(sample.inputs)
    (expected,) = run_onnxruntime(sample.model, feeds)
    output = graph.outputs[0]
    np.testing.assert_allclose(evaluate(graph, feeds)[output], expected, rtol=1e-3, atol=1e-6)
    after, reports = optimise(graph)
    assert {report.verdict for report in reports} <= {"equal", "unchanged"}
    assert errors(graph, after, output, feeds) < 1e-5


def test_a_permuted_weight_axis_would_be_found() -> None:
    sample = random_model("squeezenet")
    graph = import_onnx(sample.model)
    feeds = dict(sample.inputs)
    wrong = onnx.ModelProto()
    wrong.CopyFrom(sample.model)
    kernel = next(t for t in wrong.graph.initializer if tuple(t.dims[2:]) == (3, 3))
    turned = onnx.numpy_helper.to_array(kernel).transpose(0, 1, 3, 2)
    kernel.CopyFrom(onnx.numpy_helper.from_array(np.ascontiguousarray(turned), kernel.name))
    assert errors(graph, import_onnx(wrong), graph.outputs[0], feeds) > 1e-3
