"""Rules of `quantized_decomposed`: what PT2E quantisation and ExecuTorch write as levels."""

from __future__ import annotations

import numpy as np

from .....tir.dtype import dtype as dtype_of
from .....tir.number import integer_range
from ....ops import arithmetic
from ....ops.functions import Cast, Round
from ...onnx.node import NotSupported
from ..promotion import Number
from ..rule import Rule
from ..writer import AtenValue, AtenWriter, Operand
from .pointwise import clamp

_WIDE = "float32"


def _rounded(
    w: AtenWriter,
    scaled: AtenValue,
    zero: AtenValue,
    bounds: tuple[Number, Number],
    dtype: str,
) -> AtenValue:
    """clamp(round(scaled) + zero), to integers: a Cast saturates at the ends of their type."""
    kind = dtype_of(dtype)
    if not kind.is_integer:
        raise NotSupported(f"it quantises to {dtype}; known are integers")
    value = w.emit(arithmetic.Add(), w.emit(Round(), scaled), w.cast(zero, _WIDE))
    if bounds != integer_range(kind):
        value = clamp(w, value, *bounds)
    return w.emit(Cast(dtype), value)


def _quantize_per_tensor(
    w: AtenWriter,
    input: AtenValue,
    scale: float,
    zero_point: int,
    quant_min: int,
    quant_max: int,
    dtype: str,
) -> AtenValue:
    """PyTorch multiplies with the inverse of the scale."""
    inverse = w.full(float(np.float32(1.0 / scale)), _WIDE)
    scaled = w.emit(arithmetic.Mul(), w.cast(input, _WIDE), inverse)
    zero = w.full(zero_point, _WIDE)
    return _rounded(w, scaled, zero, (quant_min, quant_max), dtype)


def _quantize_by_tensors(
    w: AtenWriter,
    input: AtenValue,
    scale: AtenValue,
    zero_point: AtenValue,
    quant_min: int,
    quant_max: int,
    dtype: str,
) -> AtenValue:
    return quantized(w, input, scale, zero_point, (quant_min, quant_max), dtype)


def quantized(
    w: AtenWriter,
    input: AtenValue,
    scale: AtenValue,
    zero: AtenValue,
    bounds: tuple[Number, Number],
    dtype: str,
) -> AtenValue:
    """By a scale and a zero that broadcast."""
    scale, zero = _alone(w, scale), _alone(w, zero)
    inverse = w.emit(arithmetic.Div(), w.full(1.0, _WIDE), w.cast(scale, _WIDE))
    scaled = w.emit(arithmetic.Mul(), w.cast(input, _WIDE), inverse)
    return _rounded(w, scaled, zero, bounds, dtype)


def _alone(w: AtenWriter, x: AtenValue) -> AtenValue:
    """A tensor of one element without axes; others as they are."""
    return w.reshape(x, ()) if x.type.elements == 1 else x


def _dequantize_per_tensor(
    w: AtenWriter,
    input: AtenValue,
    scale: Operand,
    zero_point: Operand,
    quant_min: int,
    quant_max: int,
    dtype: str,
    out_dtype: str | None = None,
) -> AtenValue:
    """(input - zero) * scale; the bounds are of no consequence."""
    scale, zero = _alone(w, w.operand(scale, _WIDE)), w.operand(zero_point, _WIDE)
    return w.cast(real(w, input, scale, _alone(w, zero)), out_dtype or _WIDE)


def real(w: AtenWriter, levels: AtenValue, scale: AtenValue, zero: AtenValue | None) -> AtenValue:
    value = w.cast(levels, _WIDE)
    if zero is not None and not _is_zero(w, zero):
        value = w.emit(arithmetic.Sub(), value, w.cast(zero, _WIDE))
    return w.emit(arithmetic.Mul(), value, w.cast(scale, _WIDE))


def _is_zero(w: AtenWriter, zero: AtenValue) -> bool:
    known = w.known(zero)
    return known is not None and not np.any(known)


def _along(w: AtenWriter, numbers: AtenValue, rank: int, axis: int) -> AtenValue:
    """One number for each element of an axis, as it broadcasts."""
    return w.reshape(numbers, (-1, *(1,) * (rank - 1 - axis % rank)))


def _quantize_per_channel(
    w: AtenWriter,
    input: AtenValue,
    scales: AtenValue,
    zero_points: AtenValue,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: str,
) -> AtenValue:
    scale, zero = (_along(w, one, input.rank, axis) for one in (scales, zero_points))
    return quantized(w, input, scale, zero, (quant_min, quant_max), dtype)


def _dequantize_per_channel(
    w: AtenWriter,
    input: AtenValue,
    scales: AtenValue,
    zero_points: AtenValue | None,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: str,
    out_dtype: str | None = None,
) -> AtenValue:
    scale = _along(w, scales, input.rank, axis)
    zero = None if zero_points is None else _along(w, zero_points, input.rank, axis)
    return w.cast(real(w, input, scale, zero), out_dtype or _WIDE)


def _dequantize_per_channel_group(
    w: AtenWriter,
    input: AtenValue,
    scales: AtenValue,
    zero_points: AtenValue | None,
    quant_min: int,
    quant_max: int,
    dtype: str,
    group_size: int,
    output_dtype: str,
) -> AtenValue:
    """Each group of elements of the last axis by a scale and a zero of its own."""
    size = input.shape[-1] if scales.shape[-1] == 1 else group_size
    groups = w.reshape(input, (-1, size))
    scale = w.reshape(scales, (-1, 1))
    zero = None if zero_points is None else w.reshape(zero_points, (-1, 1))
    return w.cast(w.reshape(real(w, groups, scale, zero), input.shape), output_dtype)


_SPACE = "quantized_decomposed"
RULES: dict[str, Rule] = {
    f"{_SPACE}.dequantize_per_channel": _dequantize_per_channel,
    f"{_SPACE}.dequantize_per_channel_group": _dequantize_per_channel_group,
    f"{_SPACE}.dequantize_per_tensor": _dequantize_per_tensor,
    f"{_SPACE}.dequantize_per_tensor.tensor": _dequantize_per_tensor,
    f"{_SPACE}.quantize_per_channel": _quantize_per_channel,
    f"{_SPACE}.quantize_per_tensor": _quantize_per_tensor,
    f"{_SPACE}.quantize_per_tensor.tensor": _quantize_by_tensors,
}
