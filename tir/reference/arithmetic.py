"""The arithmetic of the language on NumPy values, where NumPy alone does not give its meaning.

Scalars: integers are Python ints inside the range of their type, truth values are Python bools,
floats are NumPy scalars of their own precision. Vectors are one-dimensional arrays of their type.
Call these under `np.errstate(all="ignore")`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..dtype import FLOAT32, DType
from ..dtype import dtype as as_dtype
from ..number import integer_range

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
Float = np.floating
Scalar = int | bool | np.floating
_exact: Callable[[float, float, float], float] | None = getattr(math, "fma", None)


def fma32(a: Float, b: Float, c: Float) -> Float:
    """a * b + c of float32 scalars, rounded once.

    The product is exact in float64. The sum is rounded there to the odd neighbour, so rounding it
    again to float32 gives what one rounding of the exact value gives.
    """
    product, addend = float(a) * float(b), float(c)
    total = product + addend
    shadow = total - product
    error = (product - (total - shadow)) + (addend - shadow)
    if error == 0.0 or error != error or total in (math.inf, -math.inf):
        return np.float32(total)
    towards = math.inf if error > 0.0 else -math.inf
    return np.float32(total if _is_odd(total) else math.nextafter(total, towards))


def _is_odd(value: float) -> bool:
    mantissa, _ = math.frexp(value)
    return bool(
        int(mantissa * 9007199254740992.0) & 1
    )  # 2**53: every normal mantissa becomes whole


def fma64(a: Float, b: Float, c: Float) -> Float:
    """a * b + c of float64 scalars, rounded once: in whole numbers where Python has no math.fma."""
    x, y, z = float(a), float(b), float(c)
    plain = np.float64(a) * b + c
    if math.isinf(z) and math.isfinite(x) and math.isfinite(y):
        return np.float64(z)  # however large the product is
    if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
        return np.float64(plain)
    try:
        return np.float64(_exact(x, y, z) if _exact is not None else _ratio(x, y, z, float(plain)))
    except OverflowError:
        sign = x * y if abs(x * y) >= abs(z) else z
        return np.float64(math.copysign(math.inf, sign))


def _ratio(x: float, y: float, z: float, when_zero: float) -> float:
    (a, p), (b, q), (c, r) = x.as_integer_ratio(), y.as_integer_ratio(), z.as_integer_ratio()
    top = a * b * r + c * p * q
    return top / (p * q * r) if top else when_zero


def fma_vector(a: Array, b: Array, c: Array) -> Array:
    """a * b + c of vectors of one float type, rounded once."""
    single = fma32 if a.dtype == np.float32 else fma64
    return np.array([single(*lanes) for lanes in zip(a, b, c, strict=True)], dtype=a.dtype)


def fma_function(dtype: DType) -> Callable[[Float, Float, Float], Float]:
    """The scalar fused multiply-add of a float type."""
    return fma32 if dtype.scalar == FLOAT32 else fma64


def smaller(a: Float, b: Float) -> Float:
    """The smaller float; NaN when either is NaN."""
    return a if a < b or a != a else b


def larger(a: Float, b: Float) -> Float:
    """The larger float; NaN when either is NaN."""
    return a if a > b or a != a else b


def float_to_integer(value: Float, low: int, high: int) -> int:
    """`value` truncated towards zero; the nearest end outside of low .. high, 0 for NaN."""
    if low <= value <= high:
        return min(int(value), high)  # `high` as a float may lie above it
    return 0 if value != value else low if value < low else high


def convert_array(value: Array, to: np.dtype[np.generic]) -> Array:
    """An array converted to the type `to`, as a Cast converts its elements."""
    source, target = as_dtype(value.dtype), as_dtype(to)
    if source.is_storage:
        value = value.astype(np.float32 if source.is_float else np.int32)
    if to == np.bool_:
        return np.not_equal(value, 0)
    if source.is_float and target.is_integer:
        return _floats_to_integers(value.astype(np.float64), target)
    if target.is_storage and target.is_float:
        value = value.astype(np.float32)
    return value.astype(to)


def convert_number(value: Scalar, source: np.dtype[np.generic], to: np.dtype[np.generic]) -> Scalar:
    """A scalar of type `source` converted to a float, or to an integer of a storage type."""
    converted = convert_array(np.asarray(value, source), to)
    result: Scalar = converted[()]  # type: ignore[assignment]
    return result


def _floats_to_integers(value: Array, target: DType) -> Array:
    (low, high), to = integer_range(target), target.numpy
    below, above = np.less(value, low), np.greater_equal(value, float(high + 1))
    outside = np.logical_or(np.logical_or(below, above), np.isnan(value))
    result = np.where(outside, 0.0, value).astype(to)
    result = np.where(below, np.array(low, to), result)
    return np.where(above, np.array(high, to), result)


def shift_left(value: int, count: int, low: int, high: int) -> int:
    """value * 2**count, wrapped around to low .. high; 0 for a count beyond the width."""
    span = high - low + 1
    moved = value << count if 0 <= count < span.bit_length() - 1 else 0
    return (moved - low) % span + low


def shift_right(value: int, count: int, bits: int) -> int:
    """The floor of value / 2**count; the sign alone for a count beyond the width."""
    return value >> (count if 0 <= count < bits else bits)


def divide_vectors(a: Array, b: Array, mask: Array | None, modulo: bool) -> Array:
    """The floor quotient, or the remainder, of integer vectors.

    Raises: ZeroDivisionError where a lane that is on divides by 0.
    """
    zero = b == 0
    if np.any(zero if mask is None else zero & mask):
        raise ZeroDivisionError
    safe = np.where(zero, np.ones_like(b), b)
    result: Array = np.mod(a, safe) if modulo else np.floor_divide(a, safe)
    return result


def gather(data: Array, flat: Array, mask: Array | None, other: Array | Scalar) -> Array:
    """The elements of a flat array at `flat`; lanes that are off read nothing and have the value
    `other`.
    """
    if mask is None:
        taken: Array = data[flat]
        return taken
    result: Array = np.empty(mask.shape, dtype=data.dtype)
    result[...] = other
    result[mask] = data[np.broadcast_to(flat, mask.shape)[mask]]
    return result


def gather_row(data: Array, start: int, lanes: int) -> Array:
    """A copy of `lanes` neighbours in a flat array. Raises: IndexError beyond its ends."""
    if start < 0 or start + lanes > data.shape[0]:
        raise IndexError(f"elements {start} to {start + lanes - 1} of {data.shape[0]}")
    row: Array = data[start : start + lanes].copy()
    return row


def scatter(data: Array, flat: Array, value: Array, mask: Array | None) -> None:
    """Write the lanes of `value` that are on to the places `flat` of a flat array."""
    if mask is None:
        data[flat] = value
    else:
        data[np.broadcast_to(flat, mask.shape)[mask]] = np.broadcast_to(value, mask.shape)[mask]


def scatter_row(data: Array, start: int, value: Array) -> None:
    """Write a vector to neighbouring places of a flat array. Raises: IndexError beyond its ends."""
    if start < 0 or start + len(value) > data.shape[0]:
        raise IndexError(f"elements {start} to {start + len(value) - 1} of {data.shape[0]}")
    data[start : start + len(value)] = value


def poisoned(shape: tuple[int, ...], dtype: DType) -> Array:
    """Fresh storage whose content nobody should use: NaN, the smallest integer, or true."""
    if dtype.is_bool:
        return np.ones(shape, dtype=bool)
    fill = math.nan if dtype.is_float else integer_range(dtype)[0]
    return np.full(shape, fill, dtype=dtype.numpy)
