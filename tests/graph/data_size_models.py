"""Models in ONNX of which data decide sizes, and inputs for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

from tilewright.runtime.arrays import Array

Inputs = dict[str, Array]
Declared = Sequence[tuple[str, int, Sequence[int | str] | None]]


def model_of(
    nodes: Sequence[NodeProto],
    inputs: Declared,
    outputs: Declared,
    constants: Mapping[str, Array] | None = None,
    opset: int = 17,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        list(nodes),
        "data_sizes",
        [helper.make_tensor_value_info(*item) for item in inputs],
        [helper.make_tensor_value_info(*item) for item in outputs],
        [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    return model


@dataclass(frozen=True, slots=True, eq=False)
class DataSizes:
    """A model; inputs: some for a share of what may be found, from none (0) to all (1)."""

    model: onnx.ModelProto
    inputs: Callable[[float, np.random.Generator], Inputs]


def sparse(shape: tuple[int, ...], share: float, rng: np.random.Generator) -> Array:
    """Numbers that are not 0 with such a probability."""
    numbers = rng.standard_normal(shape, np.float32) + 5
    return np.where(rng.random(shape) < share, numbers, 0).astype(np.float32)


def nonzero(*shape: int) -> DataSizes:
    """Where elements are not 0, and what else a model may make of that."""
    rank = len(shape)
    nodes = [
        helper.make_node("NonZero", ["x"], ["y"]),
        helper.make_node("Transpose", ["y"], ["rows"], perm=[1, 0]),
        helper.make_node("GatherND", ["x", "rows"], ["found"]),
        helper.make_node("Relu", ["found"], ["positive"]),
        helper.make_node("ReduceSum", ["positive"], ["sum"], keepdims=0),
        helper.make_node("Shape", ["found"], ["shape"]),
    ]
    outputs: Declared = [
        ("y", TensorProto.INT64, [rank, "n"]),
        ("positive", TensorProto.FLOAT, ["n"]),
        ("sum", TensorProto.FLOAT, []),
        ("shape", TensorProto.INT64, [1]),
    ]
    return DataSizes(
        model_of(nodes, [("x", TensorProto.FLOAT, shape)], outputs),
        lambda share, rng: {"x": sparse(shape, share, rng)},
    )


MODELS: Mapping[str, DataSizes] = {
    "NonZero of a vector": nonzero(37),
    "NonZero of a matrix": nonzero(5, 7),
    "NonZero of many": nonzero(3, 20, 9),
}
