"""Shape, Size and Range are constants, and so is what a model computes with them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.graph.importers.onnx import import_onnx
from tilewright.graph.types import array_of

Refused = Callable[..., str]
X = np.zeros((3, 4, 5), np.float32)


@pytest.mark.parametrize(
    ("attributes", "shape"), [({}, [3, 4, 5]), ({"start": 1}, [4, 5]), ({"end": -1}, [3, 4])]
)
def test_shape_is_a_constant(
    node_model: Callable[..., onnx.ModelProto], attributes: dict[str, int], shape: list[int]
) -> None:
    graph = import_onnx(node_model("Shape", {"x": X}, opset=15, **attributes))
    np.testing.assert_array_equal(array_of(graph.constants["y"]), np.array(shape))
    assert not graph.nodes


def test_size_is_a_constant(node_model: Callable[..., onnx.ModelProto]) -> None:
    graph = import_onnx(node_model("Size", {"x": X}))
    assert array_of(graph.constants["y"]).item() == 60


@pytest.mark.parametrize(
    ("start", "limit", "step"), [(0, 5, 1), (5, 0, -2), (0, 0, 1), (0.5, 2.1, 0.5), (1, 2, 3)]
)
def test_range_is_a_constant(
    node_model: Callable[..., onnx.ModelProto], start: float, limit: float, step: float
) -> None:
    dtype = np.int64 if isinstance(start, int) else np.float32
    values = zip(("start", "limit", "delta"), (start, limit, step), strict=True)
    inputs = {name: np.array(value, dtype) for name, value in values}
    graph = import_onnx(node_model("Range", inputs, constants=tuple(inputs)))
    found = array_of(graph.constants["y"])
    np.testing.assert_array_equal(found, np.arange(start, limit, step, dtype=dtype))


def test_a_range_without_a_step_is_refused(refused_node: Refused) -> None:
    inputs = {name: np.array(n) for name, n in (("start", 0), ("limit", 2), ("delta", 0))}
    assert refused_node("Range", inputs, constants=tuple(inputs)) == (
        "ModelError: model: node 'the_node' (Range) has start 0, limit 2 and step 0; expected one "
        "number each and a step other than 0. [onnx-range]"
    )


def test_what_a_model_computes_of_shapes_is_a_constant() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Slice", ["shape", "one", "three"], ["tail"]),
        helper.make_node("Concat", ["minus", "tail"], ["wanted"], axis=0),
        helper.make_node("Reshape", ["x", "wanted"], ["y"]),
    ]
    constants = {"one": [1], "three": [3], "minus": [-1]}
    model = helper.make_model(
        helper.make_graph(
            nodes,
            "shapes",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 4, 5])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            [numpy_helper.from_array(np.array(v), name) for name, v in constants.items()],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
    )
    graph = import_onnx(model)
    assert graph.types["y"].shape == (10, 3, 4)
    assert [node.op.title for node in graph.nodes] == ["Reshape"]
