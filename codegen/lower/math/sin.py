"""sin and cos: x = n * pi + r with r from -pi/2 to pi/2; sin x = (-1)**n * sin r, a polynomial. For
cos n is half of an odd number, so that r is small where cos is.

Promises, for |x| <= 32768: error at most 2.4 ulp in float32 and in float64, with or without fused
multiply-add, near the zeros of the function too. Beyond, and for NaN, the value is NaN: there r
would lose its digits. The sign of a zero is not kept.

pi is split after Cody and Waite: n has at most 15 bits, and n times each part but the last one is
exact. Coefficients: in float32 our own minimax fit of (sin r - r) / r**3 (relative error of sin r),
each coefficient rounded before the next is fitted; in float64 those of the Taylor series.
"""

from __future__ import annotations

import math

from ....tir.expr import LE, Add, Call, Expr, Mul, Select
from ....tir.intrinsics import ABS, FLOOR, LARGEST_ANGLE, ROUND
from ....tir.lowered import Fma
from .build import Builder

_PI = {
    32: (
        3.140625,
        0.0009670257568359375,
        6.277114152908325e-07,
        1.2141754268668592e-10,
        1.2434497875801753e-13,
        1.2246468525851679e-16,
    ),
    64: (3.1415926535846666, 5.1266883031679116e-12, 2.1125998133974855e-23),
}
_COEFFICIENTS = {
    32: (
        -0.16666659712791443,
        0.008333069272339344,
        -0.00019809773948509246,
        2.606081807243754e-06,
    ),
    64: (
        -0.16666666666666666,
        0.008333333333333333,
        -0.0001984126984126984,
        2.7557319223985893e-06,
        -2.505210838544172e-08,
        1.6059043836821613e-10,
        -7.647163731819816e-13,
        2.8114572543455206e-15,
        -8.22063524662433e-18,
        1.9572941063391263e-20,
    ),
}


def expand_sin(x: Expr) -> Expr:
    """sin(x) in arithmetic."""
    return _expand(x, 0.0, 1.0)


def expand_cos(x: Expr) -> Expr:
    """cos(x) in arithmetic: for x = (n + 1/2) * pi + r it is -(-1)**n * sin r."""
    return _expand(x, 0.5, -1.0)


def _expand(x: Expr, shift: float, sign: float) -> Expr:
    """sign * (-1)**n * sin r, where x = (n + shift) * pi + r."""
    build = Builder(x.dtype)
    width = build.format.type.bits
    x = build.let("x", x)
    inner = Builder(x.dtype)
    turns = Fma(x, inner.number(1.0 / math.pi), inner.number(-shift))
    n = inner.let("n", Call(ROUND, (turns,)))
    times = inner.let("times", Add(n, inner.number(shift)))
    r = x
    for part in _PI[width]:
        r = inner.let("r", Fma(times, inner.number(-part), r))
    halves = Call(FLOOR, (Mul(n, inner.number(0.5)),))
    odd = Fma(halves, inner.number(-2.0), n)  # 1 where n is odd, else 0
    signed = inner.let("signed", Mul(r, Fma(odd, inner.number(-2.0 * sign), inner.number(sign))))
    square = inner.let("square", Mul(r, r))
    tail = Mul(Mul(signed, square), inner.polynomial(square, _COEFFICIENTS[width]))
    value = inner.close(Add(signed, tail))
    inside = LE(Call(ABS, (x,)), build.number(LARGEST_ANGLE))
    return build.close(Select(inside, value, build.number(math.nan)))
