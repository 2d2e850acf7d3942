"""cli/compare/peer_model.py: peers get a model whose sizes are stated and whose weights are
constants.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from tilewright.cli.compare.peer_model import peer_model
from tilewright.cli.errors import UsageError
from tilewright.runtime.model.interface import TensorSpec


def spec(name: str, *shape: int) -> TensorSpec:
    return TensorSpec(name, np.dtype(np.float32), shape)


def scaled(ir_version: int, *sizes: int | str) -> ModelProto:
    """x[sizes] * w, where w is a weight that stands among the inputs."""
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes),
        helper.make_tensor_value_info("w", TensorProto.FLOAT, [4]),
    ]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, sizes)
    weight = numpy_helper.from_array(np.arange(4, dtype=np.float32), "w")
    node = helper.make_node("Mul", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "scaled", inputs, [output], [weight])
    opset = helper.make_opsetid("", 13)
    return helper.make_model(graph, opset_imports=[opset], ir_version=ir_version)


def sizes(value: onnx.ValueInfoProto) -> list[int | str]:
    return [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]


def test_a_model_without_anything_open_is_read_from_its_file(tiny: Path) -> None:
    assert peer_model(str(tiny), [spec("image", 1, 3, 8, 8)]) == str(tiny)


def test_sizes_that_are_open_are_stated(open_model: Path) -> None:
    model = onnx.load_model_from_string(peer_model(str(open_model), [spec("x", 3, 4)]))
    assert sizes(model.graph.input[0]) == [3, 4]
    onnx.checker.check_model(model, full_check=True)


def test_weights_among_the_inputs_become_constants(tmp_path: Path) -> None:
    file = tmp_path / "scaled.onnx"
    onnx.save(scaled(8, 2, 4), file)
    model = onnx.load_model_from_string(peer_model(str(file), [spec("x", 2, 4)]))
    assert [value.name for value in model.graph.input] == ["x"]
    assert [tensor.name for tensor in model.graph.initializer] == ["w"]


def test_an_old_model_whose_weights_must_be_inputs_keeps_them(tmp_path: Path) -> None:
    file = tmp_path / "scaled.onnx"
    onnx.save(scaled(3, 2, 4), file)
    assert peer_model(str(file), [spec("x", 2, 4)]) == str(file)
    onnx.save(scaled(3, "batch", 4), file)
    model = onnx.load_model_from_string(peer_model(str(file), [spec("x", 2, 4)]))
    assert [sizes(value) for value in model.graph.input] == [[2, 4], [4]]


def test_a_model_without_any_shape_gets_one(tmp_path: Path) -> None:
    model = scaled(8, 2, 4)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    file = tmp_path / "scaled.onnx"
    onnx.save(model, file)
    made = onnx.load_model_from_string(peer_model(str(file), [spec("x", 2, 4)]))
    assert sizes(made.graph.input[0]) == [2, 4]


def test_more_than_a_message_holds_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tilewright.cli.compare.peer_model._MOST_BYTES", 8)
    monkeypatch.chdir(tmp_path)
    onnx.save(scaled(8, "batch", 4), "scaled.onnx")
    with pytest.raises(UsageError) as caught:
        peer_model("scaled.onnx", [spec("x", 2, 4)])
    assert str(caught.value) == (
        "UsageError: bench: 'scaled.onnx' leaves sizes open and holds 25 B of weights; expected "
        "at most 8 B, or a model whose inputs state their sizes. [cli-peer-bytes]\n"
        "  Hint: onnx.tools.update_model_dims states them."
    )
