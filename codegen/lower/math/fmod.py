"""fmod: x - y * trunc(x / y), with the sign of x.

Promises: it is exact, with or without fused multiply-add. In float64 it is NaN where
|x / y| > 2**96. fmod(x, 0), fmod(inf, y) and where one is NaN, NaN; fmod(x, inf) = x. Which zero it
is where nothing is left is not said.

What is left of x / y is what y leaves of what y * 2**k leaves of x: steps from the largest k down
to 0, each with so few bits of the quotient that all products and differences are exact. float32
takes its steps in float64, of 28 bits, as many as its exponents ask for; float64 takes steps of 24
bits, and multiplies by the two halves of y.
"""

from __future__ import annotations

import math

from ....tir.dtype import FLOAT64
from ....tir.expr import LE, LT, Add, Call, Cast, Div, Expr, Mul, Select, Sub
from ....tir.intrinsics import ABS, FLOOR, LARGEST_QUOTIENT
from .build import SINGLE, Builder

_SINGLE_STEPS, _SINGLE_BITS = 10, 28  # a quotient of float32 has at most 278 bits
_DOUBLE_STEPS, _DOUBLE_BITS = 4, 24


def expand_fmod(x: Expr, y: Expr) -> Expr:
    """fmod(x, y) in arithmetic."""
    build = Builder(x.dtype)
    x, y = build.let("x", x), build.let("y", y)
    a, b = build.let("a", Call(ABS, (x,))), build.let("b", Call(ABS, (y,)))
    inner = Builder(x.dtype)
    left = _left_of_single(a, b) if build.format is SINGLE else _left_of_double(inner, a, b)
    value = build.let("value", Select(LT(a, b), a, inner.close(left)))
    return build.close(Select(LT(x, build.number(0.0)), Sub(build.number(0.0), value), value))


def _left_of_single(a: Expr, b: Expr) -> Expr:
    """What is left of a / b where 0 <= b <= a, or a NaN."""
    build = Builder(FLOAT64)
    left, divisor = build.let("left", Cast(a, FLOAT64)), build.let("divisor", Cast(b, FLOAT64))
    for step in reversed(range(_SINGLE_STEPS)):
        scaled = build.let("scaled", Mul(divisor, build.number(2.0 ** (_SINGLE_BITS * step))))
        whole = Call(FLOOR, (Div(left, scaled),))
        left = build.let("left", Sub(left, Mul(whole, scaled)))
    return build.close(Cast(left, a.dtype))


def _left_of_double(build: Builder, a: Expr, b: Expr) -> Expr:
    """The same; a scaled divisor that overflows leaves all."""
    left = a
    for step in reversed(range(_DOUBLE_STEPS)):
        scaled = build.let("scaled", Mul(b, build.number(2.0 ** (_DOUBLE_BITS * step))))
        inner = Builder(a.dtype)
        whole = inner.let("whole", Call(FLOOR, (Div(left, scaled),)))
        high, low = inner.halves(inner.let("part", scaled), "part")
        taken = inner.let("taken", Sub(Sub(left, Mul(whole, high)), Mul(whole, low)))
        # a quotient just below a whole number is rounded to it
        taken = Select(LT(taken, inner.number(0.0)), Add(taken, scaled), taken)
        left = build.let("left", Select(LT(left, scaled), left, inner.close(taken)))
    within = LE(Div(a, b), build.number(LARGEST_QUOTIENT))
    return Select(within, left, build.number(math.nan))
