"""atan: |x| is brought below tan(pi / 8) by atan x = pi/4 + atan((x - 1) / (x + 1)), or, beyond
tan(3 * pi / 8), by atan x = pi/2 - atan(1 / x); what is left is a polynomial, in float64 a quotient
of two.

Promises: error at most 2.8 ulp in float32 and 2 ulp in float64, with or without fused multiply-add,
however small x is; atan(inf) is pi/2 rounded, atan(nan) is nan. The sign of a zero is not kept.

Reduction and coefficients are those of S. L. Moshier's Cephes (atanf.c, atan.c).
"""

from __future__ import annotations

import math

from ....tir.expr import LT, Add, Call, Div, Expr, Mul, Select, Sub
from ....tir.intrinsics import ABS
from ....tir.lowered import Fma
from .build import SINGLE, Builder

_SMALL, _LARGE = math.tan(math.pi / 8), math.tan(3 * math.pi / 8)
_SINGLE = (-3.33329491539e-1, 1.99777106478e-1, -1.38776856032e-1, 8.05374449538e-2)
_NUMERATOR = (
    -6.485021904942025371773e1,
    -1.228866684490136173410e2,
    -7.500855792314704667340e1,
    -1.615753718733365076637e1,
    -8.750608600031904122785e-1,
)
_DENOMINATOR = (
    1.945506571482613964425e2,
    4.853903996359136964868e2,
    4.328810604912902668951e2,
    1.650270098316988542046e2,
    2.485846490142306297962e1,
    1.0,
)
# pi / 4 and pi / 2 in float64, and what they are less than the exact ones
_LOST_QUARTER, _LOST_HALF = 3.061616997868383e-17, 6.123233995736766e-17


def expand_atan(x: Expr) -> Expr:
    """atan(x) in arithmetic."""
    build = Builder(x.dtype)
    x = build.let("x", x)
    zero, one = build.number(0.0), build.number(1.0)
    size = build.let("size", Call(ABS, (x,)))
    is_large = LT(build.number(_LARGE), size)
    is_small = LT(size, build.number(_SMALL))
    over = Select(is_large, build.number(-1.0), Select(is_small, size, Sub(size, one)))
    under = Select(is_large, size, Select(is_small, one, Add(size, one)))
    t = build.let("t", Div(over, under))
    square = build.let("square", Mul(t, t))
    cube = Mul(t, square)
    quarter, half = build.number(math.pi / 4), build.number(math.pi / 2)
    begin = Select(is_large, half, Select(is_small, zero, quarter))
    if build.format is SINGLE:
        rest: Expr = Fma(cube, build.polynomial(square, _SINGLE), t)
    else:
        lost = (build.number(_LOST_HALF), build.number(_LOST_QUARTER))
        more = Select(is_large, lost[0], Select(is_small, zero, lost[1]))
        numerator = build.polynomial(square, _NUMERATOR)
        denominator = build.polynomial(square, _DENOMINATOR)
        rest = Add(Fma(cube, Div(numerator, denominator), more), t)
    value = build.let("value", Add(begin, rest))
    return build.close(Select(LT(x, zero), Sub(zero, value), value))
