"""log and log1p: x = m * 2**k with m from sqrt(1/2) to sqrt(2), log x = k * ln 2 + log(1 + f), with
f = m - 1.

Promises: error at most 0.9 ulp in float32 and in float64, with or without fused multiply-add,
numbers below the smallest normal one included; log(0) = -inf, log(inf) = inf, log(nan) and the log
of a negative number are nan. log1p(x) = log(1 + x) has at most 1.5 ulp, however small x is, and
does not keep the sign of a zero.

log(1 + f) = f - f*f/2 + tail(f). In float32 the tail is f**3 times a polynomial: our own minimax
fit (Remez), each coefficient rounded before the next is fitted. In float64 it is that of fdlibm
(e_log.c): s = f / (2 + f), tail = s * (f*f/2 + R(s*s)), with its published coefficients. For log1p
what rounds off 1 + x is added, divided by 1 + x.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ....tir.expr import EQ, LT, Add, Cast, Div, Expr, FloorDiv, Mul, Select, Sub, const
from ....tir.lowered import Fma, Reinterpret
from .build import SINGLE, Builder
from .exp import LN2_HIGH, LN2_LOW

_TAIL_SINGLE = (
    0.3333331346511841,
    -0.2500016689300537,
    0.20002223551273346,
    -0.16659367084503174,
    0.14209558069705963,
    -0.125496044754982,
    0.12108787149190903,
    -0.10917513817548752,
    0.05340925604104996,
)
_TAIL_DOUBLE = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
    1.479819860511658591e-01,
)


@dataclass(frozen=True, slots=True)
class Parts:
    """A positive number as (1 + fraction) * 2**exponent, both floats; 1 + fraction is near 1."""

    exponent: Expr
    fraction: Expr


def expand_log(x: Expr) -> Expr:
    """log(x) in arithmetic."""
    build = Builder(x.dtype)
    x = build.let("x", x)
    return build.close(_log(Builder(x.dtype), x, None))


def expand_log1p(x: Expr) -> Expr:
    """log(1 + x) in arithmetic."""
    build = Builder(x.dtype)
    x = build.let("x", x)
    one = build.number(1.0)
    total = build.let("total", Add(x, one))
    of_x = build.let("of_x", Sub(total, one))
    lost = Add(Sub(x, of_x), Sub(one, Sub(total, of_x)))  # exact: D. E. Knuth's sum
    # a total above 0 is no less than half a last place of 1
    return build.close(_log(Builder(x.dtype), total, Div(lost, total), is_normal=True))


def _log(inner: Builder, x: Expr, rest: Expr | None, *, is_normal: bool = False) -> Expr:
    """log(x) + rest, where the rest is less than a last place of x; x is a variable.

    is_normal: an x above 0 is no smaller than normal numbers are.
    """
    width = inner.format.type.bits
    parts = take_apart(inner, x, is_normal=is_normal)
    f, k = parts.fraction, parts.exponent
    square = inner.let("half_square", Mul(Mul(f, inner.number(0.5)), f))
    low: Expr = Fma(k, inner.number(LN2_LOW[width]), tail(inner, f, square))
    if rest is not None:
        low = Add(low, rest)
    value = Fma(k, inner.number(LN2_HIGH[width]), Sub(f, Sub(square, low)))
    infinity, zero = inner.number(math.inf), inner.number(0.0)
    finite = Select(LT(x, infinity), inner.close(value), x)
    special = Select(EQ(x, zero), inner.number(-math.inf), inner.number(math.nan))
    return Select(LT(zero, x), finite, special)


def take_apart(build: Builder, x: Expr, *, is_normal: bool = False) -> Parts:
    """The parts of x > 0. The exponent is read from the bits of x / sqrt(1/2), so to speak.

    What they are for 0, infinity and NaN is of no use, but defined. is_normal: x is no smaller than
    normal numbers are, or of no use.
    """
    form = build.format
    smallest = build.number(form.smallest_normal)
    shift = form.mantissa + 1  # makes every small number a normal one
    normal = x if is_normal else Select(LT(x, smallest), Mul(x, build.number(2.0**shift)), x)
    bits = build.let("bits", Reinterpret(normal, form.bits))
    unit = const(1 << form.mantissa, form.bits)
    above_half = Sub(bits, const(form.bits_of(math.sqrt(0.5)), form.bits))
    k = build.let("k", FloorDiv(above_half, unit))
    m = Reinterpret(Sub(bits, Mul(k, unit)), form.type)
    f = build.let("f", Sub(m, build.number(1.0)))
    exponent: Expr = Cast(k, form.type)
    if not is_normal:
        shifted = Select(LT(x, smallest), build.number(-shift), build.number(0.0))
        exponent = Add(exponent, shifted)
    return Parts(build.let("exponent", exponent), f)


def tail(build: Builder, f: Expr, half_square: Expr) -> Expr:
    """log(1 + f) - f + f*f/2 for f from sqrt(1/2) - 1 to sqrt(2) - 1."""
    if build.format is SINGLE:
        cube = Mul(Mul(f, f), f)
        return build.let("tail", Mul(cube, build.polynomial(f, _TAIL_SINGLE)))
    s = build.let("s", Div(f, Add(f, build.number(2.0))))
    z = build.let("z", Mul(s, s))
    rest = Fma(z, build.polynomial(z, _TAIL_DOUBLE), half_square)
    return build.let("tail", Mul(s, rest))
