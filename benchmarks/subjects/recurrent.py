"""Recurrent models with seeded random weights: two layers of both directions, 512 wide, 100 steps.

Their names say the operator and how many sequences run at once: lstm-1, lstm-16, gru-1, gru-16.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tilewright.graph.samples.samples import SampleModel

GATES = {"lstm": 4, "gru": 3}
RECURRENT = tuple(f"{kind}-{batch}" for kind in GATES for batch in (1, 16))
STEPS, SIZE, LAYERS = 100, 512, 2


def recurrent_model(name: str) -> SampleModel:
    """One of `RECURRENT`, as torch.onnx writes it; a GRU resets behind its product."""
    kind, batch = name.split("-")
    rng, nodes, constants = np.random.default_rng(0), [], []
    most, x, size = SIZE**-0.5, "x", SIZE
    linear = {"linear_before_reset": 1} if kind == "gru" else {}
    for layer in range(LAYERS):
        shapes = {
            f"weights{layer}": (2, GATES[kind] * SIZE, size),
            f"state_weights{layer}": (2, GATES[kind] * SIZE, SIZE),
            f"biases{layer}": (2, 2 * GATES[kind] * SIZE),
        }
        for value, shape in shapes.items():
            numbers = rng.uniform(-most, most, shape).astype(np.float32)
            constants.append(numpy_helper.from_array(numbers, value))
        y, turned, joined = (f"{what}{layer}" for what in ("y", "turned", "joined"))
        nodes += [
            helper.make_node(
                kind.upper(),
                [x, *shapes],
                [y],
                name=f"layer{layer}",
                direction="bidirectional",
                hidden_size=SIZE,
                **linear,
            ),
            helper.make_node("Transpose", [y], [turned], perm=[0, 2, 1, 3]),
            helper.make_node("Reshape", [turned, "shape"], [joined]),
        ]
        x, size = joined, 2 * SIZE
    outer = (STEPS, int(batch))
    constants.append(numpy_helper.from_array(np.array((*outer, 2 * SIZE)), "shape"))
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (*outer, SIZE))],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, (*outer, 2 * SIZE))],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    given = rng.standard_normal((*outer, SIZE)).astype(np.float32)
    return SampleModel(name, onnx.shape_inference.infer_shapes(model), {"x": given}, {}, x)
