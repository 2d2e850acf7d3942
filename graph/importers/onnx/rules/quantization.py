"""Rules of the operators that make narrow numbers of floating-point ones by a scale, and back:
QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear.
"""

from __future__ import annotations

import numpy as np

from .....tir.dtype import dtype
from .....tir.sizes import closed
from ....errors import ModelError
from ....ops import quantization
from ....ops.arithmetic import Add, Div, Mul, Sub
from ....ops.base import normal_axis
from ....ops.functions import Cast, Round
from ....ops.movement import Identity, Reshape
from ....ops.repetition import Expand
from ....ops.slicing import Slice
from ....types import FLOATS, Splat
from ..node import NodeReader
from .conversions import conversion, converted, wanted_type
from .rule import ImportRule, Result, plain

_WIDE = "float32"


def _quantize(node: NodeReader) -> Result:
    """saturate(round(x / scale) + zero); to a float8 or float4 what Cast makes of x / scale.

    The quotient is that of the type of the scale, or of `precision`: one in float32, rounded to a
    type of 16 bits, is the quotient in that type, because float32 has twice its digits and more
    (S. A. Figueroa, When is double rounding innocuous?, 1995).
    """
    to = _quantized_type(node)
    precision = (
        wanted_type(node, "precision") if node.integer("precision", 0) else node.type(1).dtype
    )
    if precision not in FLOATS:
        precision = "float64"
    wide = precision if dtype(precision).bits >= 32 else _WIDE
    x, scale = (
        converted(node, converted(node, value, precision), wide)
        for value in (node.value(0), _spread(node, node.value(1)))
    )
    value = node.emit(Div(), x, scale)
    value = converted(node, converted(node, value, precision), wide)
    if dtype(to).is_integer:
        value = node.emit(Round(), value)
    if node.has(2) and not _is_zero(node, node.value(2)):
        zero = converted(node, _spread(node, node.value(2)), wide)
        value = node.emit(Add(), value, zero)
    if dtype(to).is_integer:
        return Cast(to), (value,)
    return conversion(node, value, to, saturate=node.integer("saturate", 1) != 0)


def _quantized_type(node: NodeReader) -> str:
    """The type of a QuantizeLinear's result: that of the zero point, or as it says."""
    given = node.integer("output_dtype", 0)
    wanted = wanted_type(node, "output_dtype") if given else ""
    if not node.has(2):
        return wanted or "uint8"
    zero = node.type(2).dtype
    if wanted not in ("", zero):
        raise ModelError(
            f"model: {node.title} gives {wanted}, and its zero point is {zero}; expected one type.",
            code="onnx-quantized-type",
        )
    return zero


def _dequantize(node: NodeReader) -> Result:
    """(x - zero) * scale, computed in float32."""
    value = converted(node, node.value(0), _WIDE)
    if node.has(2) and not _is_zero(node, node.value(2)):
        zero = converted(node, _spread(node, node.value(2)), _WIDE)
        value = node.emit(Sub(), value, zero)
    scale = converted(node, _spread(node, node.value(1)), _WIDE)
    given = node.integer("output_dtype", 0)
    to = wanted_type(node, "output_dtype") if given else node.type(1).dtype
    if to == _WIDE:
        return Mul(), (value, scale)
    return Cast(to), (node.emit(Mul(), value, scale),)


def _is_zero(node: NodeReader, value: str) -> bool:
    """Whether a value is a constant of zeros."""
    known = node.builder.constants.get(value)
    if known is None:
        return False
    return not np.any(np.not_equal(known.value if isinstance(known, Splat) else known, 0))


def _spread(node: NodeReader, value: str) -> str:
    """A scale or a zero point as it broadcasts with the data: one number, one for each element of
    an axis, or one for each block along it.
    """
    data, type_ = node.type(0), node.builder.types[value]
    block = node.integer("block_size", 0)
    if type_.elements == 1:
        return node.emit(Reshape(()), value) if type_.rank else value
    axis = normal_axis(Identity(), node.integer("axis", 1), data.rank)
    behind = (1,) * (data.rank - 1 - axis)
    if not block and type_.rank == 1 and type_.shape[0] == data.shape[axis]:
        return node.emit(Reshape((*type_.shape, *behind)), value)
    size, blocks = closed(data.shape[axis]), closed(type_.shape[axis]) if type_.rank > axis else 0
    around = (*data.shape[:axis], *data.shape[axis + 1 :])
    fits = type_.rank == data.rank and around == (*type_.shape[:axis], *type_.shape[axis + 1 :])
    if not (fits and block > 0 and blocks == -(-size // block)):
        blocked = f" in blocks of {block}" if block else ""
        raise ModelError(
            f"model: {node.title} has {type_} for {data} along axis {axis}{blocked}; expected one "
            "number, one for each element of the axis, or one for each block.",
            code="onnx-quantized-shape",
        )
    before, after = data.shape[:axis], data.shape[axis + 1 :]
    value = node.emit(Reshape((*before, blocks, 1, *after)), value)
    value = node.emit(Expand((*before, blocks, block, *after)), value)
    value = node.emit(Reshape((*before, blocks * block, *after)), value)
    if blocks * block == size:
        return value
    starts = (0,) * data.rank
    return node.emit(Slice(starts, data.shape, (1,) * data.rank), value)


RULES: dict[str, ImportRule] = {
    "DequantizeLinear": ImportRule(
        (10, 13, 19, 21, 23, 24, 25, 28), ("axis", "block_size", "output_dtype"), _dequantize
    ),
    "DynamicQuantizeLinear": ImportRule(
        (11,), (), plain(quantization.DynamicQuantizeLinear()), outputs=3
    ),
    "QuantizeLinear": ImportRule(
        (10, 13, 19, 21, 23, 24, 25, 28),
        ("axis", "block_size", "output_dtype", "precision", "saturate"),
        _quantize,
    ),
}
