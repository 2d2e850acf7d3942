"""Give a convolutional model seeded random weights under which every part of it matters.

Constant weights hide faults: with all of them equal, a permuted axis changes nothing. Random ones
of the wrong size hide faults too: signals vanish, or the Softmax at the end saturates. So weights
are sized from the graph alone, without running it. An estimate of each tensor's mean square is
carried from the input (1) forwards; each Conv and Gemm gets normal weights that bring the mean
square of its output to 2, so to 1 after a Relu; each BatchNormalization gets the statistics of what
reaches it; what feeds an LRN is made so large that the LRN's sum counts as much as its bias. The
last Conv or Gemm is sized for a wanted standard deviation of its output.

Only float32 constants are drawn. An operator without a rule here is taken to keep the mean square.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnx.helper import get_node_attr_value

_CONVOLVED = 2.0  # wanted mean square of what a Conv or Gemm gives
_SHIFT = 0.2  # biases and means, in units of the root mean square of what they are added to
_SPREAD = 13 / 12  # mean square of a scale, drawn from [0.5, 1.5)


def randomize(model: ModelProto, *, seed: int, deviation: float) -> ModelProto:
    """Return a model like `model` whose float32 constants are initializers drawn anew.

    Replaced are the outputs of ConstantOfShape nodes and the float32 initializers. `deviation` is
    the standard deviation aimed at for the output of the last Conv or Gemm, for inputs whose mean
    square is 1. A tensor depends on `seed`, its own name and the graph before it, nothing else.
    """
    walk = _Walk(model, seed, deviation)
    for node in walk.nodes:
        walk.visit(node)
    return walk.result()


def _float_constants(model: ModelProto) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Name and shape of each float32 constant of a model."""
    sizes = {}
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            yield tensor.name, tuple(tensor.dims)
        else:
            sizes[tensor.name] = tensor
    for node in model.graph.node:
        if node.op_type == "ConstantOfShape":
            shape = numpy_helper.to_array(sizes[node.input[0]])
            yield node.output[0], tuple(int(extent) for extent in shape)


class _Walk:
    """One pass over the nodes in their order: estimates in `mean_square`, tensors in `drawn`."""

    def __init__(self, model: ModelProto, seed: int, deviation: float) -> None:
        graph = model.graph
        self.model, self.seed, self.deviation = model, seed, deviation
        self.nodes = [node for node in graph.node if node.op_type != "ConstantOfShape"]
        self.last = [node for node in self.nodes if node.op_type in ("Conv", "Gemm")][-1]
        self.shapes = dict(_float_constants(model))
        self.root = {name: name for name in self.shapes}  # also: reshaped constant -> constant
        self.drawn: dict[str, TensorProto] = {}
        initialized = {tensor.name for tensor in graph.initializer}
        self.inputs = [value for value in graph.input if value.name not in initialized]
        self.mean_square = {value.name: 1.0 for value in self.inputs}
        self.sums: set[str] = set()  # a residual sum is mostly positive: a Relu keeps most of it

    def visit(self, node: NodeProto) -> None:
        """Draw the constants of a node and estimate the mean square of what it gives."""
        if node.input[0] in self.root:  # Unsqueeze or Reshape of a constant
            self.root[node.output[0]] = self.root[node.input[0]]
            return
        x = self.mean_square[node.input[0]]
        match node.op_type:
            case "Conv" | "Gemm":
                x = self._weigh(node, x)
            case "BatchNormalization":
                x = self._normalise(node, x)
            case "Relu":
                x = x if node.input[0] in self.sums else x / 2
            case "LRN":
                bias, alpha, beta = _lrn(node)
                x = x / (bias + alpha * x) ** (2 * beta)
            case "Concat":
                x = sum(self.mean_square[name] for name in node.input) / len(node.input)
            case "Mul":
                self._draw_scale(node.input[1], 1.0)
                x = x * _SPREAD
            case "Add" if node.input[1] in self.root:
                self._draw_normal(node.input[1], _SHIFT * math.sqrt(x))
                x = x * (1 + _SHIFT**2)
            case "Add" | "Sum":
                self.sums.add(node.output[0])
                x = sum(self.mean_square[name] for name in node.input)
        self.mean_square[node.output[0]] = x

    def _weigh(self, node: NodeProto, x: float) -> float:
        wanted = self.deviation**2 if node is self.last else self._wanted(node)
        features = node.input[1 if node.op_type == "Conv" else 2]  # a Gemm's bias has one for each
        size = math.prod(self.shapes[self.root[node.input[1]]])
        fan_in = size // self.shapes[self.root[features]][0]
        self._draw_normal(node.input[1], math.sqrt(wanted / (fan_in * x)))
        if len(node.input) > 2:
            self._draw_normal(node.input[2], _SHIFT * math.sqrt(wanted))
        return wanted

    def _wanted(self, node: NodeProto) -> float:
        """Mean square wanted of a Conv or Gemm: more where it feeds an LRN."""
        name = node.output[0]
        while users := [user for user in self.nodes if name in user.input]:
            if users[0].op_type == "LRN":
                bias, alpha, _ = _lrn(users[0])
                return _CONVOLVED * bias / alpha
            if users[0].op_type not in ("Relu", "MaxPool"):
                break
            name = users[0].output[0]
        return _CONVOLVED

    def _normalise(self, node: NodeProto, x: float) -> float:
        _, scale, bias, mean, variance = node.input
        self._draw_scale(scale, 1.0)
        self._draw_normal(bias, _SHIFT)
        self._draw_normal(mean, _SHIFT * math.sqrt(x))
        self._draw_scale(variance, x)
        return (
            _SPREAD * (1 + _SHIFT**2) * math.log(3) + _SHIFT**2
        )  # E[1 / u] = log 3 for u of a scale

    def _draw_normal(self, name: str, deviation: float) -> None:
        root = self.root[name]
        values = self._source(root).standard_normal(self.shapes[root], dtype=np.float32)
        values *= np.float32(deviation)
        self.drawn[root] = numpy_helper.from_array(values, root)

    def _draw_scale(self, name: str, unit: float) -> None:
        root = self.root[name]
        values = (self._source(root).random(self.shapes[root], dtype=np.float32) + 0.5) * unit
        self.drawn[root] = numpy_helper.from_array(values.astype(np.float32), root)

    def _source(self, name: str) -> np.random.Generator:
        return np.random.default_rng([self.seed, zlib.crc32(name.encode())])

    def result(self) -> ModelProto:
        graph = self.model.graph
        used = {name for node in self.nodes for name in node.input}
        kept = [t for t in graph.initializer if t.name in used and t.name not in self.drawn]
        tensors = [*kept, *self.drawn.values()]
        drawn = helper.make_graph(self.nodes, graph.name, self.inputs, graph.output, tensors)
        imports = list(self.model.opset_import)
        return helper.make_model(drawn, opset_imports=imports, ir_version=8)


def _lrn(node: NodeProto) -> tuple[float, float, float]:
    """Bias, alpha and beta of an LRN; the light models state them all."""
    bias, alpha, beta = (get_node_attr_value(node, key) for key in ("bias", "alpha", "beta"))
    return float(bias), float(alpha), float(beta)
