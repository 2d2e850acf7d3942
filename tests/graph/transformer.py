"""Small transformers in ONNX, as exporters write them: an encoder, and a decoder with its past."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from tilewright.runtime.arrays import Array

WORDS, PLACES, LAYERS, HEADS, DEPTH = 50, 16, 1, 2, 4
WIDTH = HEADS * DEPTH


@dataclass
class Writer:
    """An ONNX graph under construction; its weights are random, but the same for equal names."""

    batch: int
    nodes: list[NodeProto] = field(default_factory=list)
    weights: dict[str, Array] = field(default_factory=dict)

    def add(self, operator: str, *inputs: str, output: str = "", **attributes: object) -> str:
        name = output or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def weight(self, name: str, *shape: int, around: float = 0.0) -> str:
        source = np.random.default_rng(list(name.encode()))
        scale = (1.6 / shape[0]) ** 0.5 if len(shape) > 1 else 0.1
        self.weights[name] = (around + scale * source.standard_normal(shape)).astype(np.float32)
        return name

    def whole(self, name: str, *values: int) -> str:
        self.weights[name] = np.array(values, np.int64)
        return name

    def number(self, name: str, value: float) -> str:
        self.weights[name] = np.array(value, np.float32)
        return name

    def linear(self, x: str, name: str, inputs: int, outputs: int) -> str:
        product = self.add("MatMul", x, self.weight(f"{name}.w", inputs, outputs))
        return self.add("Add", self.weight(f"{name}.b", outputs), product)

    def norm(self, x: str, name: str, *, output: str = "") -> str:
        scale = self.weight(f"{name}.scale", WIDTH, around=1.0)
        shift = self.weight(f"{name}.shift", WIDTH)
        return self.add("LayerNormalization", x, scale, shift, output=output, axis=-1, epsilon=1e-5)

    def gelu(self, x: str) -> str:
        halves = self.add("Div", x, self.number("root", 2.0**0.5))
        grown = self.add("Add", self.add("Erf", halves), self.number("one", 1.0))
        return self.add("Mul", self.add("Mul", x, grown), self.number("half", 0.5))

    def heads(self, x: str, name: str, steps: int, *, output: str = "") -> str:
        shape = self.whole("split", self.batch, steps, HEADS, DEPTH)
        parts = self.add("Reshape", self.linear(x, name, WIDTH, WIDTH), shape)
        return self.add("Transpose", parts, perm=[0, 2, 1, 3], output=output)

    def model(self, name: str, inputs: list[ValueInfoProto], outputs: list[str]) -> onnx.ModelProto:
        weights = [numpy_helper.from_array(array, key) for key, array in self.weights.items()]
        ends = [
            helper.make_tensor_value_info(output, TensorProto.FLOAT, None) for output in outputs
        ]
        graph = helper.make_graph(self.nodes, name, inputs, ends, weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def attention(self, x: str, name: str, steps: int, mask: str, cache: tuple[str, ...]) -> str:
        """Attention as torch exports it: rows that the mask leaves nothing of become zeros.

        cache: the names of the keys and values of all steps, behind those of the earlier ones where
        there are any.
        """
        *past, key_name, value_name = cache or ("", "")
        query = self.heads(x, f"{name}.q", steps)
        key = self.heads(x, f"{name}.k", steps, output="" if past else key_name)
        value = self.heads(x, f"{name}.v", steps, output="" if past else value_name)
        if past:
            key = self.add("Concat", past[0], key, axis=2, output=key_name)
            value = self.add("Concat", past[1], value, axis=2, output=value_name)
        turned = self.add("Transpose", key, perm=[0, 1, 3, 2])
        scaled = self.add("Mul", query, self.number("scale", DEPTH**-0.5))
        scores = self.add("Add", self.add("MatMul", scaled, turned), mask)
        weights = self.add("Softmax", scores, axis=-1)
        kept = self.add("Where", self.add("IsNaN", weights), self.number("zero", 0.0), weights)
        mixed = self.add("Transpose", self.add("MatMul", kept, value), perm=[0, 2, 1, 3])
        joined = self.add("Reshape", mixed, self.whole("join", self.batch, steps, WIDTH))
        return self.linear(joined, f"{name}.out", WIDTH, WIDTH)

    def layer(self, x: str, n: int, steps: int, mask: str, cache: tuple[str, ...] = ()) -> str:
        found = self.attention(self.norm(x, f"{n}.first"), f"{n}.attention", steps, mask, cache)
        x = self.add("Add", x, found)
        wide = self.gelu(self.linear(self.norm(x, f"{n}.second"), f"{n}.up", WIDTH, 4 * WIDTH))
        return self.add("Add", x, self.linear(wide, f"{n}.down", 4 * WIDTH, WIDTH))

    def embedding(self, ids: str, start: int, steps: int) -> str:
        words = self.add("Gather", self.weight("words", WORDS, WIDTH), ids)
        places = self.whole("places", *range(start, start + steps))
        found = self.add("Gather", self.weight("positions", PLACES, WIDTH), places)
        return self.add("Add", words, found)


def encoder(batch: int, steps: int) -> onnx.ModelProto:
    """Words and which of them are seen -> a vector for each place."""
    w = Writer(batch)
    x = w.embedding("ids", 0, steps)
    seen = w.add("Cast", w.add("Unsqueeze", "seen", w.whole("axes", 1, 2)), to=TensorProto.BOOL)
    mask = w.add("Where", seen, w.number("zero", 0.0), w.number("never", -np.inf))
    for n in range(LAYERS):
        x = w.layer(x, n, steps, mask)
    w.norm(x, "last", output="y")
    inputs = [
        helper.make_tensor_value_info(n, TensorProto.INT64, (batch, steps)) for n in ("ids", "seen")
    ]
    return w.model("encoder", inputs, ["y"])


def decoder(steps: int, past: int) -> onnx.ModelProto:
    """Words behind `past` others, whose keys and values are given -> the logits of what follows
    each, and the keys and values of all. `past` may be 0: then nothing is given.
    """
    w = Writer(1)
    x = w.embedding("ids", past, steps)
    seen = np.tril(np.ones((steps, past + steps)), past)
    w.weights["mask"] = np.where(seen > 0, 0, -np.inf).astype(np.float32)
    inputs = [helper.make_tensor_value_info("ids", TensorProto.INT64, (1, steps))]
    outputs = ["logits"]
    for n in range(LAYERS):
        names = [f"key.{n}", f"value.{n}"]
        given = [f"past_{name}" for name in names] if past else []
        shape = (1, HEADS, past, DEPTH)
        inputs += [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in given]
        x = w.layer(x, n, steps, "mask", (*given, *names))
        outputs += names
    table = w.add("Transpose", w.weight("words", WORDS, WIDTH), perm=[1, 0])
    w.add("MatMul", w.norm(x, "last"), table, output="logits")
    return w.model("decoder", inputs, outputs)
