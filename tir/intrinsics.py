"""Declared intrinsics: functions that an expression may call, each with its exact meaning.

An elementary function, as exp, is expanded into arithmetic before
code is generated (codegen/lower/math/), the same expansion for every target and for the interpreter
of lowered code. The others are one instruction each.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .dtype import INT32, DType

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
Double = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
_PIECE = 1 << 13  # elements that are computed at a time: what is between them stays in a cache


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """A function of `arity` values of one float type.

    carried: the type of the arguments after the first; None: all have one type.
    meaning: the function on NumPy arrays or scalars, in their own precision.
    elementary: whether it is expanded into arithmetic; otherwise each back end has one emission for
    it.
    """

    name: str
    arity: int
    meaning: Callable[..., Array]
    elementary: bool = False
    carried: DType | None = None

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Intrinsic) and self.name == other.name

    def __reduce__(self) -> tuple[Callable[[str], Intrinsic], tuple[str]]:
        return by_name, (self.name,)


def _map(function: Callable[[float], float], x: Array) -> Double:
    """A function of Python's applied to each element; in half the time of `np.vectorize`."""
    flat = np.asarray(x, dtype=np.float64).reshape(-1)
    return np.fromiter(map(function, flat.tolist()), np.float64, flat.size).reshape(np.shape(x))


def _erf(x: Array) -> Array:
    return _map(math.erf, x).astype(np.asarray(x).dtype)


def _gelu(x: Array) -> Array:
    """x * erfc(-x / sqrt 2) / 2 in float64, and what erfc of the exact argument is more."""
    flat: Double = np.asarray(x, dtype=np.float64).reshape(-1)
    result = np.empty_like(flat)
    for start in range(0, flat.size, _PIECE):
        piece = slice(start, start + _PIECE)
        result[piece] = _gelu_of(flat[piece])
    return result.reshape(np.shape(x)).astype(np.asarray(x).dtype, copy=False)


def _gelu_of(x: Double) -> Double:
    # elsewhere the value is 0, or the rounding of the argument matters little
    near: Double = np.clip(x, -40.0, 0.0)
    x_square, x_lost = _square(near)
    y_square, y_lost = _square(near * math.sqrt(0.5))
    off = (y_square - x_square / 2) + (y_lost - x_lost / 2)
    with np.errstate(invalid="ignore"):
        result: Double = x * 0.5 * _map(math.erfc, x * -math.sqrt(0.5)) * np.exp(off)
    return result


def _square(x: Double) -> tuple[Double, Double]:
    """x * x rounded, and what that lost: T. J. Dekker's product."""
    scaled = x * 134217729.0
    high = scaled - (scaled - x)
    low = x - high
    square = x * x
    return square, ((high * high - square) + 2 * high * low) + low * low


def _of_angle(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A function of an angle, up to the largest one."""

    def meaning(x: Array) -> Array:
        with np.errstate(invalid="ignore"):
            result: Array = function(
                np.where(np.abs(x) <= LARGEST_ANGLE, x, np.asarray(np.nan, x.dtype))
            )
        return result

    return meaning


def _remainder(x: Array, y: Array) -> Array:
    """What is left of x / y, up to the largest quotient."""
    with np.errstate(all="ignore"):
        wide = np.abs(np.divide(x, y, dtype=np.float64)) > LARGEST_QUOTIENT
        known = ~(wide & np.isfinite(x)) if x.dtype == np.float64 else np.True_
        result: Array = np.where(known, np.fmod(x, y), np.asarray(np.nan, x.dtype))
    return result


def _max_any(a: Array, b: Array) -> Array:
    return np.where(np.greater(a, b), a, b)


def _min_any(a: Array, b: Array) -> Array:
    return np.where(np.less(a, b), a, b)


def _round_quotient(x: Array, y: Array) -> Array:
    """x / y to the nearest integer, at most MOST_QUOTIENT in magnitude."""
    with np.errstate(all="ignore"):
        result: Array = np.clip(np.rint(np.divide(x, y)), -MOST_QUOTIENT, MOST_QUOTIENT)
    return result.astype(np.asarray(x).dtype)


def _scale_by_power_of_two(x: Array, n: Array) -> Array:
    whole = np.where(np.isnan(n), 0, np.clip(n, -4096, 4096)).astype(np.int32)
    return np.where(np.isnan(n), n, np.ldexp(x, whole))


def _threefry(word: int) -> Callable[..., Array]:
    """A word of what Threefry 2x32-20 makes of a counter under a key, of two words each."""

    def meaning(*words: Array) -> Array:
        low, high, first, second = (np.asarray(x).astype(np.uint32) for x in words)
        keys = (first, second, first ^ second ^ np.uint32(PARITY))
        with np.errstate(over="ignore"):  # sums wrap around
            x0, x1 = low + first, high + second
            for number in range(20):
                x0, turn = x0 + x1, np.uint32(ROTATIONS[number % 8])
                x1 = (x1 << turn | x1 >> np.uint32(32) - turn) ^ x0
                if number % 4 == 3:
                    step = number // 4 + 1
                    x0 = x0 + keys[step % 3]
                    x1 = x1 + (keys[(step + 1) % 3] + np.uint32(step))
        result: Array = (x0, x1)[word].astype(np.int32)
        return result

    return meaning


EXP = Intrinsic("exp", 1, np.exp, elementary=True)
EXP2 = Intrinsic("exp2", 1, np.exp2, elementary=True)
LOG = Intrinsic("log", 1, np.log, elementary=True)
TANH = Intrinsic("tanh", 1, np.tanh, elementary=True)
ERF = Intrinsic("erf", 1, _erf, elementary=True)
GELU = Intrinsic("gelu", 1, _gelu, elementary=True)  # x * (1 + erf(x / sqrt 2)) / 2
LARGEST_ANGLE = 32768.0  # of which sin and cos are computed; beyond, they are NaN
SIN = Intrinsic("sin", 1, _of_angle(np.sin), elementary=True)
COS = Intrinsic("cos", 1, _of_angle(np.cos), elementary=True)
ATAN = Intrinsic("atan", 1, np.arctan, elementary=True)
LARGEST_QUOTIENT = 2.0**96  # in float64; beyond, what it leaves is NaN
FMOD = Intrinsic("fmod", 2, _remainder, elementary=True)  # x - y * trunc(x / y), exactly
MOST_QUOTIENT = 512.0
LEAST_STEP = 2.0**-60
# x / y to the nearest integer, ties to even, at most MOST_QUOTIENT in magnitude; what it is unless
# |y| is from LEAST_STEP to 1 / LEAST_STEP is not promised. Of float32, a quotient next to a tie may
# be rounded the other way for such y as `has_exact_reciprocal` (graph/passes/level_quotients.py)
# does not admit
ROUND_QUOTIENT = Intrinsic("round_quotient", 2, _round_quotient, elementary=True)
EXPM1 = Intrinsic("expm1", 1, np.expm1, elementary=True)  # exp(x) - 1
LOG1P = Intrinsic("log1p", 1, np.log1p, elementary=True)  # log(1 + x)
POW = Intrinsic("pow", 2, np.power, elementary=True)
SQRT = Intrinsic("sqrt", 1, np.sqrt)
ABS = Intrinsic("abs", 1, np.abs)
ROUND = Intrinsic("round", 1, np.rint)  # to the nearest integer, ties to even
FLOOR = Intrinsic("floor", 1, np.floor)
# a > b ? a : b, exactly so in lowered code; a definition is not promised which operand a NaN gives
MAX_ANY = Intrinsic("max_any", 2, _max_any)
MIN_ANY = Intrinsic("min_any", 2, _min_any)
SCALE = Intrinsic("scale", 2, _scale_by_power_of_two)  # a * 2**b for an integral b, or NaN for one

# J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, Parallel random numbers: as easy as 1, 2, 3
# (SC 2011): the words that Threefry 2x32-20 makes of a counter and a key, int32, low words first
ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
PARITY = 0x1BD11BDA
THREEFRY = tuple(
    Intrinsic(f"threefry_{word}", 4, _threefry(word), elementary=True, carried=INT32)
    for word in range(2)
)

_ELEMENTARY = (
    *(EXP, EXP2, LOG, TANH, ERF, GELU, SIN, COS, ATAN, FMOD, ROUND_QUOTIENT, EXPM1, LOG1P, POW),
)
ALL = (*_ELEMENTARY, SQRT, ABS, ROUND, FLOOR, MAX_ANY, MIN_ANY, SCALE)
_BY_NAME = {intrinsic.name: intrinsic for intrinsic in (*ALL, *THREEFRY)}


def by_name(name: str) -> Intrinsic:
    """The declared intrinsic called `name`; KeyError when there is none."""
    return _BY_NAME[name]
