"""exp2: 2**x = 2**n * 2**r with n = round(x), so that r is exact, and a polynomial for 2**r.

Promises, in float32 (with fused multiply-add / without):
- error at most 0.9 / 1.2 ulp, of results below the smallest normal number as well: they are
  rounded once, and not flushed to 0 as those of exp are;
- integral powers are exact; exp2(-inf) = 0, exp2(inf) = inf, exp2(nan) = nan.
In float64: at most 0.9 / 1.1 ulp.

Of an infinite x, x - n is no number: then r is 1/2, and n makes the result 0 or infinite, as it
makes it NaN where x is. A Zen 4 adds, compares, rounds and scales vectors in other units than it
multiplies them, and a softmax keeps those busier: so that is one operation less than to clamp x.
Where no instruction scales, x is clamped to what two powers of two bring about, and NaN stays NaN.
Coefficients: our own minimax fits (of relative error; float32 on [-1/2, 1/2], float64 on
[-1/2, 1]), each coefficient rounded before the next is fitted.
"""

from __future__ import annotations

from ....tir.expr import Call, Expr, Sub
from ....tir.intrinsics import MAX_ANY, MIN_ANY, ROUND, SCALE
from .build import Builder

_COEFFICIENTS = {
    32: (
        1.0,
        0.6931471824645996,
        0.24022647738456726,
        0.05550359934568405,
        0.009618505835533142,
        0.0013390806270763278,
        0.00015326471475418657,
    ),
    64: (
        1.0,
        0.6931471805599454,
        0.24022650695910075,
        0.055504108664816726,
        0.009618129107629023,
        0.001333355814719651,
        0.0001540353038856946,
        1.5252733299094255e-05,
        1.3215492399642451e-06,
        1.0178226618088549e-07,
        7.052588761558795e-09,
        4.4359322622196157e-10,
        2.8915182455520996e-11,
    ),
}


def expand_exp2(x: Expr, *, scales: bool = True) -> Expr:
    """exp2(x) in arithmetic. scales: whether the target scales by a power of two at once."""
    build = Builder(x.dtype)
    coefficients = _COEFFICIENTS[build.format.type.bits]
    if scales:
        x = build.let("x", x)
        n = build.let("n", Call(ROUND, (x,)))
        r = build.let("r", Call(MIN_ANY, (Sub(x, n), build.number(0.5))))
        return build.close(Call(SCALE, (build.polynomial(r, coefficients), n)))
    most, least = (build.number(2 * n) for n in (build.format.bias, 1 - build.format.bias))
    x = build.let("x", Call(MAX_ANY, (least, Call(MIN_ANY, (most, x)))))
    n = build.let("n", Call(ROUND, (x,)))
    r = build.let("r", Sub(x, n))
    power = build.let("power", Call(MAX_ANY, (Call(MIN_ANY, (n, most)), least)))  # never NaN
    return build.close(Call(SCALE, (build.polynomial(r, coefficients), power)))
