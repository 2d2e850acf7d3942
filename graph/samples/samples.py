"""Models to try things on, made from onnx and NumPy alone: no network, no file of ours.

The onnx wheel carries nine well-known image classifiers for its own tests, light because most of
their weights are ConstantOfShape nodes; a stored output stands beside each. `light_model` gives one
as shipped; `random_model` gives it with seeded random weights, under which a fault shows
(graph/samples/random_weights.py); `tiny_model` is a few nodes, small enough for an interpreter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import onnx.backend.test
from onnx import ModelProto, TensorProto, helper, numpy_helper

from ...tir.errors import known_names
from ..errors import ModelError
from .random_weights import randomize

# Name of each light model -> the deviation to ask of its last Conv or Gemm, so that the tensor
# before the final Softmax has one near 3: the estimates drift on the way there, and SqueezeNet has
# a Relu and a pool behind its last Conv. Measured once; a test holds the outcome in 1 to 10.
_DEVIATION = {
    "bvlc_alexnet": 2.0,
    "densenet121": 4.0,
    "inception_v1": 2.5,
    "inception_v2": 2.5,
    "resnet50": 6.0,
    "shufflenet": 3.0,
    "squeezenet": 5.0,
    "vgg19": 1.4,
    "zfnet512": 3.0,
}
LIGHT_MODELS = tuple(_DEVIATION)

Array = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class SampleModel:
    """A model, inputs by name, and the outputs by name that are known for them (may be none).

    `logits` names the tensor before the final Softmax, or the output where there is no Softmax.
    """

    name: str
    model: ModelProto
    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]
    logits: str


def light_model(name: str) -> SampleModel:
    """One of `LIGHT_MODELS` as shipped, with arange(n) / n as input and the output stored for it.

    Raises ModelError for another name.
    """
    model = _load(name)
    path = _folder() / f"light_{name}_output_0.pb"
    stored = numpy_helper.to_array(onnx.load_tensor(path))
    outputs = {model.graph.output[0].name: stored}
    return SampleModel(name, model, ramp_inputs(model), outputs, logits(model))


def random_model(name: str, *, seed: int = 0) -> SampleModel:
    """One of `LIGHT_MODELS` with random weights and a random input of standard normal values.

    The tensor before the final Softmax has a standard deviation of 1 to 10 over the 1000 classes.
    Raises ModelError for another name.
    """
    model = randomize(_load(name), seed=seed, deviation=_DEVIATION[name])
    return SampleModel(name, model, normal_inputs(model, seed=seed), {}, logits(model))


def tiny_model(*, seed: int = 0) -> SampleModel:
    """Conv, Relu, MaxPool, Reshape, Gemm, Softmax on a 1x3x8x8 image: 10 classes, 762 weights."""
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 8, 8])
    classes = helper.make_tensor_value_info("classes", TensorProto.FLOAT, [1, 10])
    nodes = [
        helper.make_node("Conv", ["image", "kernel", "shift"], ["convolved"], "conv", pads=[1] * 4),
        helper.make_node("Relu", ["convolved"], ["active"], "relu"),
        helper.make_node(
            "MaxPool", ["active"], ["pooled"], "pool", kernel_shape=[2, 2], strides=[2, 2]
        ),
        helper.make_node("Reshape", ["pooled", "rows"], ["flat"], "flatten"),
        helper.make_node("Gemm", ["flat", "weights", "bias"], ["logits"], "gemm"),
        helper.make_node("Softmax", ["logits"], ["classes"], "softmax", axis=1),
    ]
    shapes = {"kernel": (4, 3, 3, 3), "shift": (4,), "weights": (64, 10), "bias": (10,)}
    tensors = [numpy_helper.from_array(np.zeros(s, np.float32), n) for n, s in shapes.items()]
    tensors.append(numpy_helper.from_array(np.array([1, 64], np.int64), "rows"))
    graph = helper.make_graph(nodes, "tiny", [image], [classes], tensors)
    opset = helper.make_operatorsetid("", 13)
    plain = helper.make_model(graph, opset_imports=[opset], ir_version=8)
    model = randomize(plain, seed=seed, deviation=2.0)
    return SampleModel("tiny", model, normal_inputs(model, seed=seed), {}, logits(model))


def ramp_inputs(model: ModelProto) -> dict[str, Array]:
    """arange(n) / n in the shape of each input, as the onnx wheel's own runner feeds its models."""
    ramps = {}
    for name, shape in _input_shapes(model).items():
        size = int(np.prod(shape))
        ramps[name] = (np.arange(size).reshape(shape) / size).astype(np.float32)
    return ramps


def normal_inputs(model: ModelProto, *, seed: int) -> dict[str, Array]:
    """Standard normal values in the shape of each input."""
    source = np.random.default_rng(seed)
    shapes = _input_shapes(model)
    return {name: source.standard_normal(s, dtype=np.float32) for name, s in shapes.items()}


def logits(model: ModelProto) -> str:
    """Name of the tensor before the final Softmax; the first output where there is none."""
    output: str = model.graph.output[0].name
    for node in model.graph.node:
        if node.op_type == "Softmax" and output in node.output:
            output = node.input[0]
    return output


def _input_shapes(model: ModelProto) -> dict[str, tuple[int, ...]]:
    constants = {tensor.name for tensor in model.graph.initializer}
    return {
        value.name: tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
        for value in model.graph.input
        if value.name not in constants
    }


def _folder() -> Path:
    return Path(onnx.backend.test.__file__).parent / "data" / "light"


def _load(name: str) -> ModelProto:
    if name not in _DEVIATION:
        names = known_names(name, LIGHT_MODELS)
        raise ModelError(
            f"samples: there is no light model '{name}'; expected one of {names}.",
            code="sample-unknown",
        )
    return onnx.load(_folder() / f"light_{name}.onnx")
