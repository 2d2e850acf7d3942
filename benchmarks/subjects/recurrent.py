"""Recurrent models with seeded random weights, as exporters write them, of both directions.

Those by name have two layers, 512 wide, and 100 steps; the name says the operator and how many
sequences run at once: lstm-1, lstm-16, gru-1, gru-16.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tilewright.graph.samples.samples import SampleModel

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
RECURRENT = tuple(f"{kind}-{batch}" for kind in ("lstm", "gru") for batch in (1, 16))


@dataclass(frozen=True)
class RecurrentSizes:
    """Of a recurrent model: `inputs` numbers in each step. steps, batch: names where a run decides
    them.
    """

    steps: int | str
    batch: int | str
    inputs: int
    hidden: int


def stacked(
    kind: str,
    sizes: RecurrentSizes,
    layers: int,
    *,
    with_lengths: bool = False,
    **attributes: object,
) -> onnx.ModelProto:
    """Layers of both directions; outputs are all steps of the last one, and its last state.

    with_lengths: sequences have lengths, an input. attributes: of each node.
    """
    rng, nodes, constants = np.random.default_rng(0), [], []
    hidden, x, size = sizes.hidden, "x", sizes.inputs
    most, lengths = hidden**-0.5, "lengths" if with_lengths else ""
    for layer in range(layers):
        shapes = {
            f"weights{layer}": (2, GATES[kind] * hidden, size),
            f"state_weights{layer}": (2, GATES[kind] * hidden, hidden),
            f"biases{layer}": (2, 2 * GATES[kind] * hidden),
        }
        for value, shape in shapes.items():
            numbers = rng.uniform(-most, most, shape).astype(np.float32)
            constants.append(numpy_helper.from_array(numbers, value))
        y, turned, joined = (f"{what}{layer}" for what in ("y", "turned", "joined"))
        nodes += [
            helper.make_node(
                kind,
                [x, *shapes, lengths],
                [y, "last"] if layer == layers - 1 else [y],
                name=f"layer{layer}",
                direction="bidirectional",
                hidden_size=hidden,
                **attributes,
            ),
            helper.make_node("Transpose", [y], [turned], perm=[0, 2, 1, 3]),
            helper.make_node("Reshape", [turned, "shape"], [joined]),
        ]
        x, size = joined, 2 * hidden
    outer = (sizes.steps, sizes.batch)
    constants.append(numpy_helper.from_array(np.array((0, 0, 2 * hidden)), "shape"))
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, (*outer, sizes.inputs))]
    if with_lengths:
        inputs.append(helper.make_tensor_value_info(lengths, TensorProto.INT32, (sizes.batch,)))
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in (x, "last")]
    graph = helper.make_graph(nodes, "recurrent", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def recurrent_model(name: str) -> SampleModel:
    """One of `RECURRENT`; a GRU resets behind its product."""
    kind, batch = name.split("-")
    shape = (100, int(batch), 512)
    sizes = RecurrentSizes(*shape, hidden=512)
    linear = {"linear_before_reset": 1} if kind == "gru" else {}
    model = stacked(kind.upper(), sizes, 2, **linear)
    given = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    first = model.graph.output[0].name
    return SampleModel(name, onnx.shape_inference.infer_shapes(model), {"x": given}, {}, first)
