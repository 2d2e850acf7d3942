"""graph/importers/onnx/old_opsets.py: models from before opset 7 mean what they meant."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.graph.importers.onnx.test_importer import refusal, tensor
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.reference.reference import evaluate


@pytest.mark.parametrize("opset", [1, 5, 6])
def test_older_opsets_are_converted_first(opset: int) -> None:
    """Add of opset 6 has an axis."""
    one = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 4, 4])
    b = tensor("b", [1.0, 2.0], "float32")
    ends = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2, 4, 4])]
    declared = [one, helper.make_tensor_value_info("b", TensorProto.FLOAT, [2])]
    add = helper.make_node("Add", ["x", "b"], ["y"], broadcast=1, axis=1)
    graph = helper.make_graph([add], "g", declared, ends, [b])
    opsets = [helper.make_opsetid("", opset)]
    old = helper.make_model(graph, opset_imports=opsets, ir_version=3)
    x = np.zeros((1, 2, 4, 4), np.float32)
    found = evaluate(import_onnx(old), {"x": x})["y"]
    np.testing.assert_array_equal(found, x + np.array([1, 2], np.float32).reshape(2, 1, 1))


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4), (1, 3, 2, 2)])
@pytest.mark.parametrize("slopes", [[0.5, 2.0, 0.25], [0.5]])
def test_slopes_of_an_old_prelu_are_those_of_channels(
    shape: tuple[int, ...], slopes: list[float]
) -> None:
    declared = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, shape),
        helper.make_tensor_value_info("s", TensorProto.FLOAT, [len(slopes)]),
    ]
    ends = [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)]
    node = helper.make_node("PRelu", ["x", "s"], ["y"])
    graph = helper.make_graph([node], "g", declared, ends, [tensor("s", slopes, "float32")])
    old = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 6)], ir_version=3)
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    scale = np.array(slopes, np.float32).reshape(-1, *(1,) * (len(shape) - 2))
    found = evaluate(import_onnx(old), {"x": x})["y"]
    np.testing.assert_array_equal(found, np.where(x < 0, x * scale, x))


def test_what_cannot_be_converted_is_refused_with_the_reason() -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, None)
    ends = [helper.make_empty_tensor_value_info("y")]
    add = helper.make_node("Add", ["x", "x"], ["y"], name="sum", broadcast=1, axis=1)
    unknown = helper.make_graph([add], "g", [x], ends)
    text = refusal(helper.make_model(unknown, opset_imports=[helper.make_opsetid("", 6)]))
    assert (
        "node 'sum' (Add) broadcasts along axis 1, and nobody says how many axes 'x' has." in text
    )
    wide = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
    far = helper.make_node("Add", ["x", "x"], ["y"], name="far", broadcast=1, axis=-(1 << 31))
    text = refusal(
        helper.make_model(
            helper.make_graph([far], "g", [wide], ends), opset_imports=[helper.make_opsetid("", 6)]
        )
    )
    assert "broadcasts 'x', of 2 axes, along axis -2147483648 of 'x', of 2." in text
    odd = helper.make_graph([helper.make_node("Frobnicate", ["x"], ["y"])], "g", [x], ends)
    text = refusal(helper.make_model(odd, opset_imports=[helper.make_opsetid("", 6)]))
    assert "opset of ai.onnx is 6; expected 7 to" in text
    assert "onnx.version_converter says: " in text
