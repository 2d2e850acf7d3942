"""A model is the same engine in every opset: the same C, the same bits.

Each model is written in an old opset, from which ONNX's own converter makes the others. On the way
axes, splits, pads and bounds become inputs, Softmax, BatchNormalization and ReduceMean get other
definitions, and Upsample becomes Resize. The converter names that one's result anew; C has such
names in comments.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper, version_converter

import tilewright as tw
from tilewright.graph.types import Array
from tilewright.runtime.engine.engine import Engine

pytestmark = [pytest.mark.needs_cc, pytest.mark.sampled(6)]

OPSETS = (7, 9, 11, 13, 15, 17, 18, 20, 21, 23, onnx.defs.onnx_opset_version())


class Net:
    """Nodes from x to y, with weights."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.weights: dict[str, Array] = {}
        self.rng = np.random.default_rng(0)

    def add(self, kind: str, inputs: str, output: str, **attributes: object) -> None:
        self.nodes.append(helper.make_node(kind, inputs.split(), [*output.split()], **attributes))

    def weight(self, name: str, *shape: int) -> None:
        self.weights[name] = (0.3 * self.rng.random(shape) - 0.1).astype(np.float32)

    def model(self, x: tuple[int, ...], opset: int) -> onnx.ModelProto:
        tensors = [numpy_helper.from_array(array, name) for name, array in self.weights.items()]
        graph = helper.make_graph(
            self.nodes,
            "net",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            tensors,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def perceptron() -> onnx.ModelProto:
    net = Net()
    for name, *shape in (("w1", 12, 8), ("b1", 12), ("w2", 12, 5), ("b2", 5)):
        net.weight(str(name), *map(int, shape))
    net.add("Gemm", "x w1 b1", "h", transB=1)
    net.add("Relu", "h", "r")
    net.add("Dropout", "r", "d", ratio=0.1)
    net.add("MatMul", "d w2", "m")
    net.add("Add", "m b2", "s")
    net.add("Softmax", "s", "y", axis=1)
    return net.model((3, 8), 7)


def convolutions() -> onnx.ModelProto:
    net = Net()
    shapes = {"w1": (8, 3, 3, 3), "w2": (8, 8, 3, 3), "w3": (5, 8), "b3": (5,)}
    for name, shape in shapes.items():
        net.weight(name, *shape)
    for name in ("scale", "shift", "mean", "variance"):
        net.weight(name, 8)
    net.weights["variance"] += 1
    net.add("Pad", "x", "p", pads=[0, 0, 0, 0, 0, 0, 1, 1])
    net.add("Conv", "p w1", "c", kernel_shape=[3, 3], strides=[2, 2])
    net.add("BatchNormalization", "c scale shift mean variance", "n", epsilon=1e-3)
    net.add("Clip", "n", "k", min=0.0, max=6.0)
    net.add("MaxPool", "k", "m", kernel_shape=[2, 2], strides=[2, 2])
    net.add("Conv", "m w2", "c2", kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    net.add("Upsample", "c2", "u", scales=[1.0, 1.0, 2.0, 2.0], mode="nearest")
    net.add("GlobalAveragePool", "u", "g")
    net.add("Squeeze", "g", "q", axes=[2, 3])
    net.add("Gemm", "q w3 b3", "y", transB=1)
    return net.model((1, 3, 12, 12), 7)


def attention() -> onnx.ModelProto:
    """A norm, two heads and a Gelu, each spelled out."""
    net, (places, heads, depth) = Net(), (6, 2, 4)
    width = heads * depth
    for name, *shape in (("g", width), ("b", width), ("qkv", width, 3 * width), ("o", width, 9)):
        net.weight(str(name), *map(int, shape))
    numbers = {"epsilon": 1e-5, "two": 2.0, "root": 2**0.5, "one": 1.0, "half": 0.5}
    net.weights |= {name: np.array(number, np.float32) for name, number in numbers.items()}
    net.weights["split"] = np.array([1, places, heads, depth])
    net.weights["flat"] = np.array([1, places, width])
    net.add("ReduceMean", "x", "mean", axes=[-1])
    net.add("Sub", "x mean", "c")
    net.add("Mul", "c c", "cc")
    net.add("ReduceMean", "cc", "v", axes=[-1])
    net.add("Add", "v epsilon", "ve")
    net.add("Sqrt", "ve", "deviation")
    net.add("Div", "c deviation", "n")
    net.add("Mul", "n g", "ng")
    net.add("Add", "ng b", "ln")
    net.add("MatMul", "ln qkv", "three")
    net.add("Split", "three", "q k v3", axis=2, split=[width] * 3)
    for part in ("q", "k", "v3"):
        net.add("Reshape", f"{part} split", f"{part}s")
        net.add("Transpose", f"{part}s", f"{part}h", perm=[0, 2, 1, 3])
    net.add("Transpose", "kh", "kt", perm=[0, 1, 3, 2])
    net.add("MatMul", "qh kt", "scores")
    net.add("Div", "scores two", "scaled")
    net.add("Softmax", "scaled", "weights", axis=3)
    net.add("MatMul", "weights v3h", "mixed")
    net.add("Transpose", "mixed", "turned", perm=[0, 2, 1, 3])
    net.add("Reshape", "turned flat", "joined")
    net.add("MatMul", "joined o", "h")
    net.add("Div", "h root", "hr")
    net.add("Erf", "hr", "he")
    net.add("Add", "he one", "h1")
    net.add("Mul", "h h1", "hh")
    net.add("Mul", "hh half", "gelu")
    net.add("Unsqueeze", "gelu", "y", axes=[0])
    return net.model((1, places, width), 9)


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    make.__name__: make for make in (perceptron, convolutions, attention)
}


@cache
def engine(name: str, opset: int | None = None) -> Engine:
    """By default of the opset in which the model is written."""
    model = MODELS[name]()
    if opset is not None:
        model = version_converter.convert_version(model, opset)
    return tw.compile(model, "c", verify="off")


def written(found: Engine) -> str:
    return re.sub(r"/\*.*?\*/", "", str(found.source))


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("name", MODELS)
def test_every_opset_gives_the_same_c_and_the_same_bits(name: str, opset: int) -> None:
    oldest = MODELS[name]().opset_import[0].version
    if opset <= oldest:
        assert oldest in OPSETS
        return
    first, other = engine(name), engine(name, opset)
    assert written(other) == written(first)
    x = np.random.default_rng(1).standard_normal(first.inputs[0].shape).astype(np.float32)
    assert other(x).tobytes() == first(x).tobytes()
