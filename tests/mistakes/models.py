"""Mistakes with models and engines, as they are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

import tilewright as tw
from tilewright.graph.passes.gelu_recognition import GeluRecognition


def _model(operator: str, size: str | int, domain: str = "") -> onnx.ModelProto:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [size, 4]) for name in "xy")
    node = helper.make_node(operator, ["x"], ["y"], "node", domain=domain)
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("com.example", 1)]
    graph = helper.make_graph([node], "small", [x], [y])
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


relu = _model("Relu", "batch")
engine = tw.compile(_model("Relu", 2), "python", cache=False)


def has_an_unknown_operator() -> object:
    """A model has an operator of somebody's own"""
    return tw.compile(_model("Frobnicate", 2, "com.example"), "python")


def declares_an_operator_without_a_namespace() -> object:
    """An operator of one's own has no namespace"""
    return tw.operator("Frobnicate", onnx=("com.example", "Frobnicate", (1,)))


def gives_a_class_as_a_pass() -> object:
    """A class is given as a pass"""
    return tw.compile(relu, "python", passes=tw.PASSES.after(GeluRecognition, GeluRecognition))


def puts_a_pass_beside_one_of_several() -> object:
    """A pass is to stand behind one of which there are several"""
    return tw.PASSES.after("DeadCode", GeluRecognition())


def runs_more_than_was_assumed() -> object:
    """The batch of a model is left open, and a run has more rows than was assumed"""
    return tw.compile(relu, "python")(np.ones((32, 4), np.float32))


def sizes_an_input_that_is_not_there() -> object:
    """shapes= names an input that the model does not have"""
    return tw.compile(relu, "python", shapes={"input": (2, 4)})


def gives_another_shape() -> object:
    """shapes= contradicts the model"""
    return tw.compile(relu, "python", shapes={"x": (2, 5)})


def asks_for_another_precision() -> object:
    """A precision is not available"""
    return tw.compile(relu, "python", shapes={"batch": 2}, precision="int8")


def compiles_a_file_that_is_not_there() -> object:
    """A model's file does not exist"""
    return tw.compile("missing.onnx", "python")


def compiles_a_text() -> object:
    """A file is not ONNX"""
    Path("readme.onnx").write_text("see the wiki\n")
    return tw.compile("readme.onnx", "python")


def compiles_a_checkpoint() -> object:
    """A model is a checkpoint of PyTorch"""
    Path("model.pt").write_bytes(b"PK\x03\x04" + bytes(60))
    return tw.compile("model.pt", "python")


def compiles_an_empty_file() -> object:
    """A model's file is empty"""
    Path("empty.onnx").touch()
    return tw.compile("empty.onnx", "python")


def runs_with_another_input() -> object:
    """An input of an engine is misnamed"""
    return engine.run({"X": np.ones((2, 4), np.float32)})


def runs_with_another_shape() -> object:
    """An input of an engine has another shape"""
    return engine(np.ones((3, 4), np.float32))


def runs_with_float64() -> object:
    """An input of an engine is float64"""
    return engine(np.ones((2, 4)))


def loads_what_is_not_there() -> object:
    """An engine's file does not exist"""
    return tw.load("missing.twe")


def loads_a_model() -> object:
    """A model is loaded as an engine"""
    Path("relu.onnx").write_bytes(relu.SerializeToString())
    return tw.load("relu.onnx")


def loads_a_damaged_file() -> object:
    """An engine's file is cut short"""
    engine.save("relu.twe")
    Path("cut.twe").write_bytes(Path("relu.twe").read_bytes()[:-100])
    return tw.load("cut.twe")


def saves_into_a_folder_that_is_not_there() -> object:
    """An engine is saved into a folder that does not exist"""
    return engine.save("engines/relu.twe")


def refuses_what_no_option_says() -> object:
    """on_mismatch= has another value"""
    return tw.load("relu.twe", on_mismatch="ignore")


def runs_an_unbound_context() -> object:
    """A context runs before it is bound"""
    return engine.context().run()
