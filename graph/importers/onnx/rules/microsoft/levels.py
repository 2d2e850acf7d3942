"""Integers that stand for floating-point numbers by a scale and a zero point, and back: as ONNX's
QuantizeLinear and DequantizeLinear.
"""

from __future__ import annotations

from onnx import helper

from .....types import numpy_type
from ...node import NodeReader


def real(node: NodeReader, value: str, scale: str, zero: str, axis: int = 1) -> str:
    """(value - zero) * scale; zero: "" for 0. axis: that of which each element has its own scale
    and zero, where they are lists.
    """
    return node.spell("DequantizeLinear", value, scale, zero, axis=axis)


def levels(node: NodeReader, value: str, scale: str, zero: str, dtype: str, axis: int = 1) -> str:
    """The nearest integers of `dtype` to value / scale + zero, a half to even."""
    kind = helper.np_dtype_to_tensor_dtype(numpy_type(dtype))
    return node.spell("QuantizeLinear", value, scale, zero, axis=axis, output_dtype=kind)
