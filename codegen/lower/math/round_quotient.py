"""round_quotient: x / y to the nearest integer, without a division for each x.

N. Brisebarre, J.-M. Muller, S. K. Raina, Accelerating correctly rounded floating-point division
when the divisor is known in advance (IEEE Transactions on Computers 53, 2004): with high the float
that is nearest to 1 / y, and low the one nearest to what that lacks, fma(x, high, x * low) is x / y
correctly rounded for nearly all x and y. What depends on y alone is the same for all x of a loop,
and is taken out of it. Without fused multiply-add, and in float64, it divides.

x goes to the ends first, so that no infinity is multiplied; what is no number stays so.
"""

from __future__ import annotations

import math

from ....tir.dtype import FLOAT32
from ....tir.expr import LE, Call, Div, Expr, Mul, Select, Sub
from ....tir.intrinsics import ABS, LEAST_STEP, MAX_ANY, MIN_ANY, MOST_QUOTIENT, ROUND
from ....tir.lowered import Fma
from .build import Builder


def expand_round_quotient(x: Expr, y: Expr, *, fused: bool = True) -> Expr:
    """round_quotient(x, y) in arithmetic."""
    build = Builder(x.dtype)
    nan = build.number(math.nan)
    y = build.let("y", y)
    size = build.let("size", Call(ABS, (y,)))
    within = Select(LE(size, build.number(1 / LEAST_STEP)), y, nan)
    y = build.let("y", Select(LE(build.number(LEAST_STEP), size), within, nan))
    most = build.let("most", Mul(size, build.number(MOST_QUOTIENT)))
    least = build.let("least", Sub(build.number(0.0), most))
    x = build.let("x", Call(MIN_ANY, (most, Call(MAX_ANY, (least, x)))))
    quotient: Expr = Div(x, y)
    if fused and x.dtype == FLOAT32:
        one = build.number(1.0)
        high = build.let("high", Div(one, y))
        negative = build.let("negative", Sub(build.number(0.0), high))
        low = build.let("low", Div(Fma(negative, y, one), y))
        quotient = Fma(x, high, Mul(x, low))
    return build.close(Call(ROUND, (quotient,)))
