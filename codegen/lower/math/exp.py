"""exp: e**x = 2**n * e**r with n = round(x / ln 2), and a polynomial for e**r.

Promises, in float32 (with fused multiply-add / without):
- error at most 1.2 / 1.5 ulp; 1.6 / 1.9 where the result exceeds 2**127.5, since n stops at 127
  there and r grows up to ln 2 (2**128 is no number);
- a result below the smallest normal number is flushed to 0; exp(-inf) = 0, exp(inf) = inf,
  exp(nan) = nan, exp(0) = 1.
In float64: at most 1.5 / 1.8 ulp. Every exponent given to `scale` is one of a normal number.

Coefficients: our own minimax fits (Remez) on [-ln 2 / 2, ln 2], the part above ln 2 / 2 weighted
less, each coefficient rounded before the next is fitted. ln 2 is split after Cody and Waite: n
times its high part is exact.
"""

from __future__ import annotations

import math

from ....tir.expr import LT, Call, Expr, Mul, Select
from ....tir.intrinsics import MIN_ANY, ROUND, SCALE
from ....tir.lowered import Fma
from .build import Builder

LN2_HIGH = {32: 0.693359375, 64: 6.93147180369123816490e-01}
LN2_LOW = {32: -2.12194440e-4, 64: 1.90821492927058770002e-10}

COEFFICIENTS = {
    32: (
        1.0,
        1.0,
        0.5000021457672119,
        0.1666685938835144,
        0.041622355580329895,
        0.008336581289768219,
        0.001611029147170484,
    ),
    64: (
        1.0,
        1.0,
        0.5000000000000001,
        0.16666666666665853,
        0.04166666666664764,
        0.008333333333768792,
        0.0013888888892250664,
        0.00019841269029711002,
        2.480158978709817e-05,
        2.755794877544676e-06,
        2.7549918386913484e-07,
        2.4896696432896315e-08,
        2.4258046745379914e-09,
    ),
}


def expand_exp(x: Expr) -> Expr:
    """exp(x) in arithmetic."""
    build = Builder(x.dtype)
    width = build.format.type.bits
    x = build.let("x", x)
    inner = Builder(x.dtype)
    n = whole_exponent(inner, Mul(x, inner.number(1.0 / math.log(2.0))))
    high = inner.let("r_high", Fma(n, inner.number(-LN2_HIGH[width]), x))
    r = inner.let("r", Fma(n, inner.number(-LN2_LOW[width]), high))
    value = inner.close(scaled_exp(inner, r, n))
    lowest = inner.number(math.log(inner.format.smallest_normal))
    return build.close(Select(LT(x, lowest), build.number(0.0), value))


def whole_exponent(build: Builder, exponent: Expr) -> Expr:
    """The integral power of two nearest to `exponent`, at most the largest that is a number."""
    rounded = Call(ROUND, (exponent,))
    return build.let("n", Call(MIN_ANY, (rounded, build.number(build.format.bias))))


def scaled_exp(build: Builder, r: Expr, n: Expr) -> Expr:
    """e**r * 2**n for r from -ln 2 / 2 to ln 2; above, it grows with r."""
    coefficients = COEFFICIENTS[build.format.type.bits]
    return Call(SCALE, (build.polynomial(r, coefficients), n))
