"""Rules of torchao's levels: blocks of any shape, with scales and zeros that a run may find."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .....tir.dtype import dtype
from .....tir.number import integer_range
from .....tir.sizes import AnySize, quotient
from ....ops import arithmetic
from ....ops.functions import Round
from ...onnx.node import NotSupported
from ..promotion import Number
from ..rule import Rule
from ..writer import AtenValue, AtenWriter
from .pointwise import clamp
from .quantized import quantized, real
from .reductions import amax, amin

_WIDE = "float32"


def _blocks(
    w: AtenWriter, x: AtenValue, block_size: Sequence[AnySize]
) -> tuple[AtenValue, tuple[int, ...]]:
    """A tensor with an axis for the elements of a block wherever an axis has several blocks, and
    the axes along which the elements of a block lie.
    """
    if len(block_size) != x.rank:
        raise NotSupported(f"its blocks have {len(block_size)} axes, and its data {x.type}")
    shape, inside = list[AnySize](), list[int]()
    for block, size in zip(block_size, x.shape, strict=True):
        if block not in (1, size):
            if isinstance(block, int) and isinstance(size, int) and size % block:
                raise NotSupported(f"an axis of {size} has no whole blocks of {block}")
            shape += [quotient(size, block), block]
        else:
            shape.append(size)
        if block != 1:
            inside.append(len(shape) - 1)
    return w.reshape(x, shape), tuple(inside)


def _spread(
    w: AtenWriter, table: AtenValue, blocks: AtenValue, inside: tuple[int, ...]
) -> AtenValue:
    """A number for each block, as it broadcasts."""
    shape = [1 if axis in inside else size for axis, size in enumerate(blocks.shape)]
    return w.reshape(table, shape)


def _bounds(kind: str, low: Number | None, high: Number | None) -> tuple[Number, Number]:
    least, most = integer_range(dtype(kind))
    return (least if low is None else low, most if high is None else high)


def _check_integers(kind: str) -> None:
    if not dtype(kind).is_integer:
        raise NotSupported(f"its levels are {kind}; known are integers")


def _quantize_affine(
    w: AtenWriter,
    input: AtenValue,
    block_size: Sequence[AnySize],
    scale: AtenValue,
    zero_point: AtenValue | None,
    output_dtype: str,
    quant_min: Number | None = None,
    quant_max: Number | None = None,
) -> AtenValue:
    """clamp(round(x * (1 / scale)) + zero)."""
    _check_integers(output_dtype)
    blocks, inside = _blocks(w, input, block_size)
    zero = w.full(0, _WIDE) if zero_point is None else _spread(w, zero_point, blocks, inside)
    bounds = _bounds(output_dtype, quant_min, quant_max)
    made = quantized(w, blocks, _spread(w, scale, blocks, inside), zero, bounds, output_dtype)
    return w.reshape(made, input.shape)


def _dequantize_affine(
    w: AtenWriter,
    input: AtenValue,
    block_size: Sequence[AnySize],
    scale: AtenValue,
    zero_point: AtenValue | None,
    input_dtype: str,
    quant_min: Number | None = None,
    quant_max: Number | None = None,
    output_dtype: str = _WIDE,
) -> AtenValue:
    """(x - zero) * scale; the bounds are of no consequence."""
    _check_integers(input_dtype)
    blocks, inside = _blocks(w, input, block_size)
    zero = None if zero_point is None else _spread(w, zero_point, blocks, inside)
    made = real(w, blocks, _spread(w, scale, blocks, inside), zero)
    return w.cast(w.reshape(made, input.shape), output_dtype)


def _choose_qparams_affine(
    w: AtenWriter,
    input: AtenValue,
    mapping_type: str,
    block_size: Sequence[AnySize],
    target_dtype: str,
    quant_min: Number | None = None,
    quant_max: Number | None = None,
    eps: float | None = None,
    scale_dtype: str | None = None,
    zero_point_dtype: str | None = None,
    keepdim: bool = False,
) -> list[AtenValue]:
    """Scales and zeros of blocks by their least and largest elements, and 0."""
    _check_integers(target_dtype)
    if input.dtype != _WIDE:
        raise NotSupported(f"its data are {input.dtype}; known is {_WIDE}")
    least, most = _bounds(target_dtype, quant_min, quant_max)
    smallest = float(np.finfo(np.float32).tiny) if eps is None else eps
    blocks, inside = _blocks(w, input, block_size)
    nothing = w.full(0.0, _WIDE)
    low = w.emit(arithmetic.Min(), amin(w, blocks, inside, True), nothing)
    high = w.emit(arithmetic.Max(), amax(w, blocks, inside, True), nothing)
    match mapping_type:
        case "SYMMETRIC":
            peak = w.emit(
                arithmetic.Max(), w.emit(arithmetic.Mul(), low, w.full(-1.0, _WIDE)), high
            )
            scale = _over(w, peak, float(most - least) / 2)
        case "SYMMETRIC_NO_CLIPPING_ERR":
            scale = w.emit(arithmetic.Max(), _over(w, low, least), _over(w, high, most))
        case "ASYMMETRIC":
            scale = _over(w, w.emit(arithmetic.Sub(), high, low), most - least)
        case _:
            raise NotSupported(f"mapping_type is '{mapping_type}'")
    scale = w.emit(arithmetic.Max(), scale, w.full(smallest, _WIDE))
    if mapping_type == "ASYMMETRIC":
        rounded = w.emit(Round(), w.emit(arithmetic.Div(), low, scale))
        zero = clamp(w, w.emit(arithmetic.Sub(), w.full(least, _WIDE), rounded), least, most)
        zero = w.cast(zero, zero_point_dtype or "int32")
    else:
        middle = int((most + least + 1) / 2)
        zero = w.filled(scale.shape, middle, zero_point_dtype or _WIDE)
    kept = (quotient(size, block) for size, block in zip(input.shape, block_size, strict=True))
    shape = tuple(kept)
    if not keepdim:
        shape = tuple(size for axis, size in enumerate(blocks.shape) if axis not in inside)
    return [w.cast(w.reshape(scale, shape), scale_dtype or _WIDE), w.reshape(zero, shape)]


def _over(w: AtenWriter, x: AtenValue, number: Number) -> AtenValue:
    return w.emit(arithmetic.Div(), x, w.full(float(number), _WIDE))


def _int_mm(w: AtenWriter, self: AtenValue, mat2: AtenValue) -> AtenValue:
    """The product of matrices of bytes, in int32."""
    return w.spell("MatMulInteger", self, mat2)


RULES: dict[str, Rule] = {
    "_int_mm": _int_mm,
    "torchao.choose_qparams_affine": _choose_qparams_affine,
    "torchao.dequantize_affine": _dequantize_affine,
    "torchao.quantize_affine": _quantize_affine,
}
