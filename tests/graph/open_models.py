"""Small models in ONNX whose sizes a run decides, as exporters write them."""

from __future__ import annotations

import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.graph.transformer import DEPTH, HEADS, WIDTH, WORDS, Writer

PLACES = 32


def model_of(writer: Writer, inputs: dict[str, tuple[int, list[str | int]]]) -> onnx.ModelProto:
    """The model of what was written, with one output, y."""
    given = [helper.make_tensor_value_info(n, kind, dims) for n, (kind, dims) in inputs.items()]
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    weights = [numpy_helper.from_array(a, n) for n, a in writer.weights.items()]
    graph = helper.make_graph(writer.nodes, "open", given, [made], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model


def perceptron() -> onnx.ModelProto:
    """Two products and a softmax; the batch is open."""
    w = Writer(1)
    hidden = w.add("Relu", w.linear("x", "first", 24, 40))
    w.add("Softmax", w.linear(hidden, "second", 40, 12), output="y", axis=-1)
    return model_of(w, {"x": (TensorProto.FLOAT, ["batch", 24])})


def encoder() -> onnx.ModelProto:
    """One layer of an encoder; batch and sequence are open, and every shape is computed."""
    w = Writer(1)
    shape = w.add("Shape", "ids")
    batch, seq = (w.add("Gather", shape, w.whole(f"axis{n}", n), axis=0) for n in range(2))
    split = w.add("Concat", batch, seq, w.whole("heads", HEADS, DEPTH), axis=0)
    joined = w.add("Concat", batch, seq, w.whole("minus", -1), axis=0)
    places = w.add(
        "Slice", w.weight("places", PLACES, WIDTH), w.whole("first", 0), seq, w.whole("rows", 0)
    )
    x = w.add("Add", w.add("Gather", w.weight("words", WORDS, WIDTH), "ids"), places)
    kept = w.add("Cast", w.add("Unsqueeze", "mask", w.whole("middle", 1, 2)), to=TensorProto.FLOAT)
    mask = w.add("Mul", w.add("Sub", w.number("one", 1.0), kept), w.number("far", -1e4))

    def heads(name: str, order: list[int]) -> str:
        parts = w.add("Reshape", w.linear(x, name, WIDTH, WIDTH), split)
        return w.add("Transpose", parts, perm=order)

    scores = w.add("MatMul", heads("q", [0, 2, 1, 3]), heads("k", [0, 2, 3, 1]))
    scores = w.add("Add", w.add("Div", scores, w.number("root", DEPTH**0.5)), mask)
    mixed = w.add("MatMul", w.add("Softmax", scores, axis=-1), heads("v", [0, 2, 1, 3]))
    flat = w.add("Reshape", w.add("Transpose", mixed, perm=[0, 2, 1, 3]), joined)
    x = w.norm(w.add("Add", x, w.linear(flat, "o", WIDTH, WIDTH)), "middle_norm")
    grown = w.gelu(w.linear(x, "up", WIDTH, 4 * WIDTH))
    w.norm(w.add("Add", x, w.linear(grown, "down", 4 * WIDTH, WIDTH)), "last", output="y")
    dims: list[str | int] = ["batch", "seq"]
    return model_of(w, {"ids": (TensorProto.INT64, dims), "mask": (TensorProto.INT64, dims)})
