"""gelu: x * Phi(x), Phi the normal distribution function, as max(x, 0) - |x| * Phi(-|x|).

Promises (with fused multiply-add / without):
- in float32, 7.2 / 8 ulp at most of a negative x down to -12.9, 4.2 of a positive one (0.9 and 0.4
  on average where the value is not x / 2 or x); in float64 12 / 14 ulp down to -37.5, and 4;
- below, where Phi(x) is less than the smallest normal number, |x| times the least of all numbers
  is added to that; beyond -14.25 (-38.6) the value is -0, and from 5.6 (8.3) on it is x;
- gelu(inf) = inf, gelu(nan) = nan, the sign of zero is kept, and gelu(-inf) = nan, as it is for
  x * (1 + erf(x / sqrt 2)) / 2.

With a = |x|, Phi(-a) = e**(-a*a / 2) * R(a), where R falls slowly from 1/2. The power is 2**n with
n = -h / (2 ln 2) rounded, h the square rounded, times a quotient for e**(-r / 2), r = a*a + n * 2
ln 2, which has what the rounding of h lost. All is one fraction: a Zen 4 divides in the time of
three multiplications. What the number in the place of 2 ln 2 lacks is part of the coefficients. A
comparison would take the time of one multiplication, so the signs of x meet in a minimum and a
maximum, for which there is time beside them. Without fused multiply-add, h is the square of the
upper half of a, which is exact, and the number in the place of 2 ln 2 is taken in halves.

Coefficients: our own minimax fits (least squares of relative errors, weights moved towards the
largest until these are equal; in float64 with 70 digits), R on 0 .. 13.1 (37.6) with R(0) = 1/2,
the quotient on |r| <= 0.75 (0.694). In float32 errors near 0 count twice, each coefficient of R was
rounded before the next was fitted, and the constant of its denominator was chosen by trial, for
what rounding costs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ....tir.expr import Add, Call, Div, Expr, Mul, Sub
from ....tir.intrinsics import ABS, MAX_ANY, MIN_ANY, ROUND, SCALE
from ....tir.lowered import Fma
from .build import Builder


@dataclass(frozen=True, slots=True)
class Coefficients:
    """What Phi(-a) is made of, for a <= clamp, where it is 0; lowest first.

    Phi(-a) = 2**n * P(a) * (E(r*r) - r * O(r*r)) / (Q(a) * (E(r*r) + r * O(r*r)))
    """

    clamp: float
    numerator: tuple[float, ...]
    denominator: tuple[float, ...]
    even: tuple[float, ...]
    odd: tuple[float, ...]


_GELU = {
    32: Coefficients(
        14.25,
        (
            49.5,
            43.22721481323242,
            18.003259658813477,
            3.972310781478882,
            0.398946076631546,
        ),
        (
            99.0,
            165.4450225830078,
            118.51226806640625,
            46.112850189208984,
            9.957703590393066,
            1.0,
        ),
        (961.7056491411093, 24.03549220200773),
        (240.42641087917892, 1.0),
    ),
    64: Coefficients(
        38.6,
        (
            945949.705296813,
            1557536.451813466,
            1272079.3944979995,
            665565.7203346578,
            244698.60293985408,
            65747.78961393575,
            13055.903053978152,
            1894.1139238694009,
            192.84107736223288,
            12.526578096309402,
            0.3989422804017922,
        ),
        (
            1891899.410593626,
            4624590.233931627,
            5288098.231392934,
            3741300.7019758974,
            1823949.7805166778,
            645137.9521906411,
            169490.3098168693,
            33207.67661569141,
            4779.238992474607,
            484.38089701402413,
            31.39947484072823,
            1.0,
        ),
        (968489.5912241611, 26901.68478784715, 60.03010433022378),
        (242122.39780604027, 1681.2045760028861, 1.0),
    ),
}


def expand_gelu(x: Expr, *, fused: bool = True) -> Expr:
    """gelu(x) in arithmetic, for a target with fused multiply-add or without."""
    build = Builder(x.dtype)
    known = _GELU[x.dtype.bits]
    x = build.let("x", x)
    inside = Call(MIN_ANY, (Call(ABS, (x,)), build.number(known.clamp)))
    a = build.let("a", inside)
    minus = build.let("minus", Mul(a, build.number(-1.0)))
    h, above_square = _square(build, a, minus, fused)
    n = build.let("n", Call(ROUND, (Mul(h, build.number(-0.5 / math.log(2.0))),)))
    r = build.let("r", Sub(_reduced(build, h, n, fused), above_square))
    z = build.let("z", Mul(r, r))
    even = build.let("even", build.polynomial(z, known.even))
    odd = build.let("odd", Mul(r, build.polynomial(z, known.odd)))
    numerator = Mul(build.polynomial(a, known.numerator), Sub(even, odd))
    denominator = Mul(build.polynomial(a, known.denominator), Add(even, odd))
    tail = build.let("tail", Call(SCALE, (Div(numerator, denominator), n)))
    below = Call(MIN_ANY, (x, minus))  # -|x|, but -clamp for an x above that
    above = Call(MAX_ANY, (build.number(-0.0), x))
    return build.close(Fma(below, tail, above))


def _square(build: Builder, a: Expr, minus: Expr, fused: bool) -> tuple[Expr, Expr]:
    """A number near a*a, and how much it lies above. minus: -a."""
    if fused:
        h = build.let("h", Mul(a, a))
        return h, Fma(minus, a, h)
    high, low = build.halves(a, "a")
    return build.let("h", Mul(high, high)), Mul(low, Sub(minus, high))


def _reduced(build: Builder, h: Expr, n: Expr, fused: bool) -> Expr:
    """h + n * 2 ln 2, which is small."""
    step = build.number(2.0 * math.log(2.0))
    if fused:
        return Fma(n, step, h)
    high, low = build.halves(step, "step")
    return Add(Add(h, Mul(n, high)), Mul(n, low))
