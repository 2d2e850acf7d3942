"""Rules of the operators that convert element types: Cast, CastLike."""

from __future__ import annotations

import ml_dtypes

from .....tir.dtype import NAMES, dtype
from ....ops.functions import Cast
from ....types import FLOATS, Splat, is_only_stored, numpy_type
from ...limits import told
from ..node import NodeReader, NotSupported
from ..tensors import dtype_name
from .arithmetic import clipped
from .rule import Application, ImportRule, Result


def converted(node: NodeReader, value: str, to: str) -> str:
    """A value in another element type, itself where it has that."""
    same = node.builder.types[value].dtype == to
    return value if same else node.emit(Cast(to), value)


def conversion(node: NodeReader, value: str, to: str, *, saturate: bool) -> Application:
    """A value in another element type. saturate: what is beyond the largest number of a float8,
    infinity too, becomes that number, as it always does in a float4; else it is what Cast makes of
    it. What is beyond an integer of less than a byte has no meaning in ONNX; its test cases want
    the low bits.
    """
    source, kind = node.builder.types[value], dtype(to)
    if not is_only_stored(to):
        return Cast(to), (value,)
    if kind.is_integer:
        return Cast(to), (node.emit(Cast("int32"), value) if source.is_float else value,)
    if not saturate and kind.bits == 8:
        return Cast(to), (value,)
    if source.dtype not in FLOATS:
        value = converted(node, value, "float32")
    most = float(ml_dtypes.finfo(numpy_type(to)).max)  # type: ignore[no-untyped-call]
    given = node.builder.types[value].dtype
    least, greatest = (node.table("end", Splat(end, given, ())) for end in (-most, most))
    op, inputs = clipped(node, value, least, greatest)
    return Cast(to), (node.emit(op, *inputs),)


def _cast(node: NodeReader) -> Result:
    return conversion(node, node.value(0), wanted_type(node, "to"), saturate=_saturates(node))


def wanted_type(node: NodeReader, attribute: str) -> str:
    """The element type that an attribute names. Raises: NotSupported where we have none such."""
    name = dtype_name(node.integer(attribute))
    if name not in NAMES:
        raise NotSupported(f"it converts to {told(name)}; known are {', '.join(NAMES)}")
    return name


def _cast_like(node: NodeReader) -> Result:
    return conversion(node, node.value(0), node.type(1).dtype, saturate=_saturates(node))


def _saturates(node: NodeReader) -> bool:
    return node.integer("saturate", 1) != 0


RULES: dict[str, ImportRule] = {
    "Cast": ImportRule((6, 9, 13, 19, 21, 23, 24, 25, 28), ("round_mode", "saturate", "to"), _cast),
    "CastLike": ImportRule((15, 19, 21, 23, 24, 25), ("round_mode", "saturate"), _cast_like),
}
