"""round_quotient: x / y to the nearest integer, without a division, where y is known before.

N. Brisebarre, J.-M. Muller, S. K. Raina, Accelerating correctly rounded floating-point division
when the divisor is known in advance (IEEE Transactions on Computers 53, 2004): with high the
float that is nearest to 1 / y, and low the one nearest to what that lacks, fma(x, high, x * low)
is x / y correctly rounded for nearly all y and x. Whether it rounds to the same integers for all
x of one y, `exact_reciprocal` (graph/passes/level_quotients.py) decides. Without fused multiply-
add it divides.

x goes to the ends first, so that no infinity is multiplied; what is no number stays so.
"""

from __future__ import annotations

from ....tir.expr import Call, Div, Expr, Mul
from ....tir.intrinsics import MAX_ANY, MIN_ANY, MOST_QUOTIENT, ROUND
from ....tir.lowered import Fma
from .build import Builder


def expand_round_quotient(x: Expr, y: Expr, high: Expr, low: Expr, *, fused: bool = True) -> Expr:
    """round_quotient(x, y, high, low) in arithmetic. Requires: y > 0."""
    build = Builder(x.dtype)
    most = build.let("most", Mul(y, build.number(MOST_QUOTIENT)))
    least = build.let("least", Mul(y, build.number(-MOST_QUOTIENT)))
    x = build.let("x", Call(MAX_ANY, (least, x)))
    x = build.let("x", Call(MIN_ANY, (most, x)))
    quotient = Fma(x, high, Mul(x, low)) if fused else Div(x, y)
    return build.close(Call(ROUND, (quotient,)))
