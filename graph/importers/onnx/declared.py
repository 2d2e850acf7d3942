"""What an ONNX model says of an input."""

from __future__ import annotations

from onnx import ValueInfoProto

from ...types import SymbolicSize
from ..limits import UnsupportedType
from ..symbols import Declared, unnamed
from .tensors import dtype_name


def declared_input(item: ValueInfoProto) -> Declared:
    """An input as a model declares it. Raises: UnsupportedType for what is no tensor."""
    if not item.type.HasField("tensor_type"):
        raise UnsupportedType(f"input '{item.name}'", "is not a tensor")
    tensor = item.type.tensor_type
    if not tensor.HasField("shape"):
        return Declared(item.name, dtype_name(tensor.elem_type), None)
    dims: list[int | SymbolicSize] = []
    for axis, dim in enumerate(tensor.shape.dim):
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            dims.append(dim.dim_value)
        else:
            dims.append(SymbolicSize(dim.dim_param) if dim.dim_param else unnamed(item.name, axis))
    return Declared(item.name, dtype_name(tensor.elem_type), tuple(dims))
