"""The sample models are what they say: real, random where asked, and not deaf to their input."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tilewright.graph.errors import ModelError
from tilewright.graph.samples import random_weights, samples

Array = npt.NDArray[np.float32]

SMALL = ("shufflenet", "squeezenet")
ALL = [pytest.param(n, marks=() if n in SMALL else pytest.mark.slow) for n in samples.LIGHT_MODELS]


def run(model: ModelProto, inputs: Mapping[str, Array], tensor: str) -> Array:
    """The value of one tensor of a model, computed by onnxruntime."""
    copy = ModelProto()
    copy.CopyFrom(model)
    del copy.graph.output[:]
    copy.graph.output.append(helper.make_tensor_value_info(tensor, TensorProto.FLOAT, None))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(copy.SerializeToString(), options)
    return session.run([tensor], dict(inputs))[0]


def difference(a: Array, b: Array) -> float:
    """max |a - b| / max |a|"""
    return float(np.abs(a - b).max() / np.abs(a).max())


def with_weights(model: ModelProto, name: str, values: Array) -> ModelProto:
    copy = ModelProto()
    copy.CopyFrom(model)
    (tensor,) = (tensor for tensor in copy.graph.initializer if tensor.name == name)
    tensor.CopyFrom(numpy_helper.from_array(values, name))
    return copy


@pytest.mark.parametrize("name", ALL)
def test_a_light_model_gives_its_stored_output_for_its_stored_input(name: str) -> None:
    sample = samples.light_model(name)
    ((output, stored),) = sample.outputs.items()
    found = run(sample.model, sample.inputs, output)
    np.testing.assert_allclose(found, stored, rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize("name", ALL)
def test_random_weights_keep_logits_in_range_and_let_the_input_through(name: str) -> None:
    sample = samples.random_model(name)
    logits = run(sample.model, sample.inputs, sample.logits)
    ramp = run(sample.model, samples.ramp_inputs(sample.model), sample.logits)
    other = run(sample.model, samples.normal_inputs(sample.model, seed=1), sample.logits)
    assert logits.size == 1000
    assert 1 < logits.std() < 10
    assert 1 < ramp.std() < 10
    assert difference(logits, ramp) > 0.1
    assert difference(logits, other) > 0.005


@pytest.mark.parametrize("name", SMALL)
def test_no_constant_of_a_random_model_is_a_splat(name: str) -> None:
    model = samples.random_model(name).model
    onnx.checker.check_model(model)
    assert "ConstantOfShape" not in {node.op_type for node in model.graph.node}
    floats = [t for t in model.graph.initializer if t.data_type == TensorProto.FLOAT]
    assert floats
    assert all(np.ptp(numpy_helper.to_array(tensor)) > 0 for tensor in floats)


def test_a_permuted_weight_axis_in_one_layer_shows_in_the_logits() -> None:
    sample = samples.random_model("squeezenet")
    name = "fire9/expand3x3_w_0"
    weights = next(t for t in sample.model.graph.initializer if t.name == name)
    turned = numpy_helper.to_array(weights).transpose(0, 1, 3, 2).copy()
    planted = with_weights(sample.model, name, turned)
    expected = run(sample.model, sample.inputs, sample.logits)
    assert difference(expected, run(planted, sample.inputs, sample.logits)) > 1e-3


def test_what_feeds_an_lrn_is_large_enough_for_its_sum_to_count() -> None:
    """The LRN of a random model does more than divide by its bias alone."""
    image = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 16, 16])
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("LRN", ["r"], ["y"], size=5, alpha=1e-4, beta=0.75, bias=1.0),
        helper.make_node("Conv", ["y", "w2"], ["z"]),
    ]
    shapes = {"w": (8, 3, 3, 3), "w2": (8, 8, 3, 3)}
    tensors = [numpy_helper.from_array(np.zeros(s, np.float32), n) for n, s in shapes.items()]
    graph = helper.make_graph(nodes, "lrn", [image], [result], tensors)
    plain = helper.make_model(graph, opset_imports=[helper.make_operatorsetid("", 13)])
    model = random_weights.randomize(plain, seed=0, deviation=1.0)
    inputs = samples.normal_inputs(model, seed=0)
    before, after = run(model, inputs, "r"), run(model, inputs, "y")
    share = after[before > 0] / before[before > 0]
    assert 0.3 < float(np.median(share)) < 0.9


def test_the_same_seed_gives_the_same_weights_and_another_does_not() -> None:
    first, again, other = (samples.tiny_model(seed=seed).model for seed in (3, 3, 4))
    assert first.SerializeToString() == again.SerializeToString()
    assert first.SerializeToString() != other.SerializeToString()


def test_the_tiny_model_agrees_with_the_reference_evaluator() -> None:
    sample = samples.tiny_model()
    onnx.checker.check_model(sample.model, full_check=True)
    (expected,) = ReferenceEvaluator(sample.model).run(None, dict(sample.inputs))
    found = run(sample.model, sample.inputs, "classes")
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)
    assert run(sample.model, sample.inputs, sample.logits).std() > 0.5
    weights = [t for t in sample.model.graph.initializer if t.data_type == TensorProto.FLOAT]
    assert sum(numpy_helper.to_array(tensor).size for tensor in weights) == 762


def test_logits_are_the_output_where_there_is_no_softmax() -> None:
    model = samples.light_model("densenet121").model
    assert samples.logits(model) == model.graph.output[0].name


def test_an_unknown_name_lists_the_nine_closest_first() -> None:
    with pytest.raises(ModelError) as caught:
        samples.light_model("resnet5")
    assert str(caught.value) == (
        "ModelError: samples: there is no light model 'resnet5'; expected one of 'resnet50', "
        "'densenet121', 'zfnet512', 'bvlc_alexnet', 'inception_v1', 'inception_v2', 'shufflenet', "
        "'squeezenet', 'vgg19'. [sample-unknown]"
    )


@pytest.mark.parametrize("module", [samples, random_weights])
def test_the_sample_modules_need_onnx_and_numpy_alone(module: object) -> None:
    tree = ast.parse(inspect.getsource(module))  # type: ignore[arg-type]
    found = {
        n.module.split(".")[0]
        for n in ast.walk(tree)
        if isinstance(n, ast.ImportFrom) and n.module and not n.level
    }
    found |= {
        a.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names
    }
    allowed = {"__future__", "collections", "dataclasses", "math", "pathlib", "zlib"}
    assert found - allowed == {"numpy", "onnx"}
