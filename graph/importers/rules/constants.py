"""Rules of the operators that are constants."""

from __future__ import annotations

import numpy as np

from ...errors import ModelError
from ...types import Splat, TensorType, frozen
from ..limits import checked_type
from ..onnx_node import NodeReader
from .rule import MOVES, Result, Rule


def _constant(node: NodeReader) -> Result:
    if node.given("value"):
        return node.tensor("value")
    if node.given("value_float"):
        return frozen(np.asarray(node.real("value_float", 0.0), dtype=np.float32))
    if node.given("value_int"):
        return frozen(np.asarray(node.integer("value_int"), dtype=np.int64))
    if node.given("value_floats"):
        return frozen(np.asarray(node.reals("value_floats"), dtype=np.float32))
    return frozen(np.asarray(node.integers("value_ints"), dtype=np.int64))


def _constant_of_shape(node: NodeReader) -> Result:
    shape = node.sizes(0)
    value = node.tensor("value") if node.given("value") else np.zeros(1, dtype=np.float32)
    if value.size != 1:
        what = TensorType(value.dtype.name, value.shape)
        raise ModelError(
            f"model: {node.title} has value {what}; expected one element.",
            code="onnx-constant-of-shape",
        )
    type_ = checked_type(
        f"the result of {node.title}", value.dtype.name, shape, node.tensors.limits
    )
    return Splat(value.item(), type_.dtype, type_.shape)


RULES: dict[str, Rule] = {
    "Constant": Rule(
        (1, 9, 11, 12, 19, *MOVES),
        ("value", "value_float", "value_int", "value_floats", "value_ints"),
        _constant,
    ),
    "ConstantOfShape": Rule((9, 20, 21, 23, 24, 25), ("value",), _constant_of_shape),
}
