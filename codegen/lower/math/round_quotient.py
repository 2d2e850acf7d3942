"""round_quotient: x / y to the nearest integer, without a division for each x.

N. Brisebarre, J.-M. Muller, S. K. Raina, Accelerating correctly rounded floating-point division
when the divisor is known in advance (IEEE Transactions on Computers 53, 2004): with high the float
that is nearest to 1 / y, and low the one nearest to what that lacks, fma(x, high, x * low) is x / y
correctly rounded for nearly all x and y. What depends on y alone is the same for all x of a loop,
and is taken out of it. Without fused multiply-add, and in float64, it divides.

x goes to the ends first, so that no infinity is multiplied; what is no number stays so.
"""

from __future__ import annotations

from ....tir.dtype import FLOAT32
from ....tir.expr import Call, Div, Expr, Mul, Sub
from ....tir.intrinsics import ABS, MAX_ANY, MIN_ANY, MOST_QUOTIENT, ROUND
from ....tir.lowered import Fma
from .build import Builder


def expand_round_quotient(x: Expr, y: Expr, *, fused: bool = True) -> Expr:
    """round_quotient(x, y) in arithmetic. Requires: |y| is from LEAST_STEP to 1 / LEAST_STEP."""
    build = Builder(x.dtype)
    y = build.let("y", y)
    most = build.let("most", Mul(Call(ABS, (y,)), build.number(MOST_QUOTIENT)))
    least = build.let("least", Sub(build.number(0.0), most))
    quotient: Expr
    if fused and x.dtype == FLOAT32:
        one = build.number(1.0)
        high = build.let("high", Div(one, y))
        negative = build.let("negative", Sub(build.number(0.0), high))
        low = build.let("low", Div(Fma(negative, y, one), y))
        x = build.let("x", Call(MIN_ANY, (most, Call(MAX_ANY, (least, x)))))
        quotient = Fma(x, high, Mul(x, low))
    else:
        quotient = Div(Call(MIN_ANY, (most, Call(MAX_ANY, (least, x)))), y)
    return build.close(Call(ROUND, (quotient,)))
