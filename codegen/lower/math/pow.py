"""pow: |x|**y = 2**(y * log2 |x|), the exponent as a sum of two numbers; then signs and exceptions.

Promises, with or without fused multiply-add: error at most 2.5 ulp where the result lies between
2**-16 and 2**16, at most 10 between 2**-64 and 2**64, elsewhere at most 24 in float32 and 200 in
float64 (the largest errors are those of x near sqrt(2) or its inverse, to a power beyond 100). A
result below the smallest normal number is flushed to 0. Exceptional values are those of IEEE 754:
pow(x, 0) = pow(1, y) = 1 even for NaN, a negative x takes an integral y only, and so on.

Some constant exponents cost a few instructions: 0, 1, 2, 3, -1, and those that one or two square
roots give (0.75 of local response normalisation: at most 2.3 ulp).

Numbers are split into halves (Veltkamp) and sums keep what rounding loses (Dekker), so nothing
relies on a fused multiply-add. The logarithm is that of `log`, its leading terms kept exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ....tir.conditions import all_of, any_of
from ....tir.expr import (
    EQ,
    LT,
    NE,
    Add,
    Call,
    Const,
    Div,
    Expr,
    Max,
    Min,
    Mul,
    Select,
    Sub,
    compare,
    const,
    mul,
)
from ....tir.intrinsics import ABS, FLOOR, SQRT
from ....tir.lowered import Fma, Reinterpret
from .build import SINGLE, Builder
from .exp import scaled_exp, whole_exponent
from .log import tail, take_apart

LOG2_E = 1.4426950408889634  # its nearest float64, and the next bits
LOG2_E_REST = 2.0355273740931033e-17


def expand_pow(x: Expr, y: Expr) -> Expr:
    """x ** y in arithmetic."""
    build = Builder(x.dtype)
    x = build.let("x", x)
    if isinstance(y, Const) and y.value in _SHORT:
        return build.close(_SHORT[float(y.value)](build, x))
    y = build.let("y", y)
    magnitude = build.let("magnitude", Call(ABS, (x,)))
    power = build.let("power", _exp2(build, *_product(build, y, *_log2(build, magnitude))))
    return build.close(_exceptions(build, x, y, magnitude, power))


def _log2(build: Builder, x: Expr) -> tuple[Expr, Expr]:
    """log2 of x > 0, as a rounded value and what it lacks."""
    parts = take_apart(build, x)
    f = parts.fraction
    high, low = build.halves(f, "f")
    square = build.let("square", Mul(Mul(high, build.number(-0.5)), high))  # exact
    square_low = build.let("square_low", Mul(Mul(low, build.number(-0.5)), Add(high, f)))
    half_square = Mul(Mul(f, build.number(0.5)), f)
    u, lost = build.exact_sum(f, square, "u")
    rest = Add(lost, Add(tail(build, f, half_square), square_low))
    t, t_low = build.exact_sum(u, rest, "t")  # log(1 + f)
    t_high, t_rest = build.halves(t, "t")
    log2_e = build.number(LOG2_E)
    log2_e_high = build.half(LOG2_E)
    log2_e_low = build.number((LOG2_E - float(log2_e_high.value)) + LOG2_E_REST)
    product = build.let("product", Mul(t_high, log2_e_high))  # exact
    product_low = Fma(t_high, log2_e_low, Fma(t_rest, log2_e, Mul(t_low, log2_e)))
    w, w_lost = build.exact_sum(parts.exponent, product, "w")
    return build.exact_sum(w, build.let("w_low", Add(w_lost, product_low)), "log2")


def _product(build: Builder, y: Expr, log2: Expr, log2_low: Expr) -> tuple[Expr, Expr]:
    """y * (log2 + log2_low), as an exact leading product and the rest.

    |y| is cut where the power of any x but 1 is 0 or infinite anyway, so nothing overflows.
    """
    limit = 2.0**40 if build.format is SINGLE else 2.0**80
    if isinstance(y, Const):
        y = build.number(max(-limit, min(limit, float(y.value))))
    else:
        y = build.let("y", Max(Min(y, build.number(limit)), build.number(-limit)))
    y_high, y_low = build.halves(y, "y")
    high, low = build.halves(log2, "log2")
    rest = build.let("log2_rest", Add(low, log2_low))
    exponent = build.let("exponent", Mul(high, y_high))  # exact
    return exponent, build.let("exponent_low", Fma(y_high, rest, Mul(y_low, log2)))


def _exp2(build: Builder, exponent: Expr, low: Expr) -> Expr:
    """2 ** (exponent + low), flushed to 0 below the smallest normal number."""
    whole = build.let("whole", Add(exponent, low))
    n = whole_exponent(build, whole)
    fraction = Add(Sub(exponent, n), low)
    r = build.let("r", Mul(fraction, build.number(math.log(2.0))))
    lowest = build.number(1 - build.format.bias)
    return Select(LT(whole, lowest), build.number(0.0), scaled_exp(build, r, n))


@dataclass(frozen=True, slots=True)
class _Exponent:
    """What the exceptions ask of y: truth values, constants where y is one."""

    zero: Expr
    negative: Expr
    integral: Expr
    odd: Expr
    nan: Expr


def _facts(build: Builder, y: Expr) -> _Exponent:
    zero = build.number(0.0)
    floor = _floor(build, y)
    half = mul(y, build.number(0.5))
    return _Exponent(
        compare(EQ, y, zero),
        compare(LT, y, zero),
        compare(EQ, floor, y),
        all_of(compare(EQ, floor, y), compare(NE, _floor(build, half), half)),
        compare(NE, y, y),
    )


def _exceptions(build: Builder, x: Expr, y: Expr, magnitude: Expr, power: Expr) -> Expr:
    """`power`, right for a finite positive magnitude, with signs and exceptional values."""
    facts = _facts(build, y)
    zero, infinity = build.number(0.0), build.number(math.inf)
    at_zero = _select(facts.negative, infinity, zero)
    at_infinity = _select(facts.negative, zero, infinity)
    beyond = Select(EQ(magnitude, infinity), at_infinity, power)
    size = build.let("size", Select(EQ(magnitude, zero), at_zero, beyond))
    minus = LT(Reinterpret(x, build.format.bits), const(0, build.format.bits))
    signed = _select(facts.odd, Select(minus, Mul(size, build.number(-1.0)), size), size)
    finite_minus = all_of(LT(x, zero), LT(magnitude, infinity))
    of_minus = Select(finite_minus, build.number(math.nan), signed)
    real = _select(facts.integral, signed, of_minus)
    any_nan = any_of(NE(x, x), facts.nan)
    known = Select(any_nan, Add(x, y), real)
    return _select(any_of(facts.zero, EQ(x, build.number(1.0))), build.number(1.0), known)


def _select(condition: Expr, on_true: Expr, on_false: Expr) -> Expr:
    if isinstance(condition, Const):
        return on_true if condition.value else on_false
    return Select(condition, on_true, on_false)


def _floor(build: Builder, x: Expr) -> Expr:
    if isinstance(x, Const):
        return build.number(float(np.floor(x.value)))
    return Call(FLOOR, (x,))


def _unsigned(build: Builder, x: Expr) -> Expr:
    """x, but 0 for -0 and infinity for -infinity: their fractional powers have no sign."""
    infinity, minus = build.number(math.inf), build.number(-math.inf)
    return build.let("x", Select(EQ(x, minus), infinity, Add(x, build.number(0.0))))


def _root(build: Builder, x: Expr) -> Expr:
    return build.let("root", Call(SQRT, (_unsigned(build, x),)))


def _one_and_a_half(build: Builder, x: Expr) -> Expr:
    x = _unsigned(build, x)
    return Mul(x, Call(SQRT, (x,)))


def _three_quarters(build: Builder, x: Expr) -> Expr:
    root = _root(build, x)
    return Mul(root, Call(SQRT, (root,)))


_SHORT: dict[float, Callable[[Builder, Expr], Expr]] = {
    -1.0: lambda build, x: Div(build.number(1.0), x),
    -0.5: lambda build, x: Div(build.number(1.0), _root(build, x)),
    0.0: lambda build, x: build.number(1.0),
    0.25: lambda build, x: Call(SQRT, (_root(build, x),)),
    0.5: _root,
    0.75: _three_quarters,
    1.0: lambda build, x: x,
    1.5: _one_and_a_half,
    2.0: lambda build, x: Mul(x, x),
    3.0: lambda build, x: Mul(Mul(x, x), x),
}
