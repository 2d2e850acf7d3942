"""Models whose sums are exact in float32, so that every system computes the same bits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tilewright.graph.types import Array


def whole(seed: int, *shape: int, most: int = 4) -> Array:
    """Whole numbers of float32 from -most to most."""
    numbers = np.random.default_rng(seed).integers(-most, most + 1, shape)
    return numbers.astype(np.float32)


def network(*, batch: int | str = 1, seed: int = 0) -> onnx.ModelProto:
    """A convolution with its Relu, a product behind a Transpose and a Reshape, a sum of floats that
    are no constants.
    """
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["conv"], name="the_conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["conv"], ["relu"]),
        helper.make_node("Flatten", ["relu"], ["flat"]),
        helper.make_node("MatMul", ["flat", "m"], ["product"], name="the_product"),
        helper.make_node("Add", ["product", "bias"], ["y"]),
    ]
    values = {
        "w": whole(seed + 1, 3, 2, 3, 3),
        "b": whole(seed + 2, 3),
        "m": whole(seed + 3, 48, 5),
        "bias": whole(seed + 4, 1, 5),
    }
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 2, 4, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, 5])],
        [numpy_helper.from_array(value, name) for name, value in values.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def items(count: int, *, batch: int = 1) -> Iterator[dict[str, Array]]:
    """Items for the network, of which later ones are larger."""
    for number in range(count):
        yield {"x": whole(100 + number, batch, 2, 4, 4, most=4 + 3 * number)}


def masked() -> onnx.ModelProto:
    """Scores, the mask of an attention, which is infinite where it hides, and their Softmax."""
    text = """
<ir_version: 8, opset_import: ["": 17]>
masked (float[2, 3] x, float[2, 4] hide) => (float[2, 4] y)
<float[3, 4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}, float far = {-inf}, float zero = {0}>
{
    scores = MatMul(x, w)
    shut = Cast<to=9>(hide)
    mask = Where(shut, far, zero)
    sum = Add(scores, mask)
    y = Softmax(sum)
}
"""
    return onnx.parser.parse_model(text)
