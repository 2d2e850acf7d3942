"""Shape, Size and Range are constants, and so is what a model computes with them."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.graph.errors import ModelError
from tilewright.graph.importers.limits import ImportLimits
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.types import array_of

Refused = Callable[..., str]
X = np.zeros((3, 4, 5), np.float32)
_ENDS = ((0, "a"), (1000, "b"), (1, "c"))


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


@pytest.mark.parametrize(
    ("start", "limit", "step"),
    [(0, 2, 0), (0, math.inf, 1), (math.nan, 2, 1), (0, 1, math.nan), (-3e38, 3e38, 1e-38)],
)
def test_a_range_without_an_end_is_refused(
    refused_node: Refused, start: float, limit: float, step: float
) -> None:
    named = (("start", start), ("limit", limit), ("delta", step))
    inputs = {name: np.array(n, np.float32) for name, n in named}
    text = refused_node("Range", inputs, constants=tuple(inputs))
    shown = [str(array) for array in inputs.values()]
    if step == 1e-38:
        assert text.endswith(" [model-bytes]")
        return
    assert text == (
        f"ModelError: model: node 'the_node' (Range) has start {shown[0]}, limit {shown[1]} and "
        f"step {shown[2]}; expected one finite number each and a step other than 0. [onnx-range]"
    )


def test_ranges_are_counted_together_before_they_are_made() -> None:
    """Each is allowed; all of them are not."""
    ends = [numpy_helper.from_array(np.array(n, np.int64), name) for n, name in _ENDS]
    nodes = [helper.make_node("Range", ["a", "b", "c"], [f"r{n}"]) for n in range(1000)]
    outputs = [onnx.ValueInfoProto(name=f"r{n}") for n in range(1000)]
    model = helper.make_model(
        helper.make_graph(nodes, "ranges", [], outputs, ends),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    tracemalloc.start()
    with pytest.raises(ModelError, match=r"expected at most 1000000\. \[model-computed-bytes\]"):
        import_onnx(model, limits=ImportLimits(computed_bytes=1_000_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000


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
