"""expm1: e**x - 1 = 2**n * p + (2**n - 1) with p = e**r - 1, n and r as in `exp`.

Promises: error at most 4.2 ulp in float32 and 2.2 ulp in float64, with or without fused
multiply-add, however small x is; expm1(-inf) = -1, expm1(inf) = inf, expm1(nan) = nan. The sign of
a zero is not kept.

The polynomial is that of `exp`, whose first two coefficients are 1: what is left of it after the
first keeps the digits of p.
"""

from __future__ import annotations

import math

from ....tir.expr import LT, Call, Expr, Mul, Select, Sub
from ....tir.intrinsics import SCALE
from ....tir.lowered import Fma
from .build import Builder
from .exp import COEFFICIENTS, LN2_HIGH, LN2_LOW, whole_exponent

_LOWEST = {32: -30.0, 64: -60.0}  # below, e**x is no part of a last place of -1


def expand_expm1(x: Expr) -> Expr:
    """exp(x) - 1 in arithmetic."""
    build = Builder(x.dtype)
    width = build.format.type.bits
    x = build.let("x", x)
    inner = Builder(x.dtype)
    n = whole_exponent(inner, Mul(x, inner.number(1.0 / math.log(2.0))))
    high = inner.let("r_high", Fma(n, inner.number(-LN2_HIGH[width]), x))
    r = inner.let("r", Fma(n, inner.number(-LN2_LOW[width]), high))
    _, _, *above = COEFFICIENTS[width]
    p = Fma(Mul(r, r), inner.polynomial(r, above), r)
    scale = inner.let("scale", Call(SCALE, (inner.number(1.0), n)))
    value = inner.close(Fma(scale, p, Sub(scale, inner.number(1.0))))
    return build.close(Select(LT(x, build.number(_LOWEST[width])), build.number(-1.0), value))
