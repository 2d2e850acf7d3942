"""tanh and erf: odd functions that saturate, as x * P(x*x) / Q(x*x) with x clamped.

Promises, in float32 (with fused multiply-add / without): tanh at most 3.6 / 4.0 ulp, erf at most
3.9 / 4.4 ulp; in float64: tanh at most 8 ulp, erf at most 9 ulp. Beyond the clamp the value is 1 or
-1 exactly; the sign of zero and NaN are kept. One division, no table.

Coefficients: our own minimax rational fits (Remez, relative error) on 0 .. clamp, both polynomials
scaled by one number that was chosen, with the clamp, so that rounding the coefficients costs least
and the value at the clamp is 1 however it is rounded.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....tir.expr import Div, Expr, Max, Min, Mul
from .build import Builder


@dataclass(frozen=True, slots=True)
class Rational:
    """x * P(x*x) / Q(x*x) for |x| <= clamp; coefficients lowest first."""

    clamp: float
    numerator: tuple[float, ...]
    denominator: tuple[float, ...]


_TANH = {
    32: Rational(
        8.174686431884766,
        (
            1.0517348051071167,
            0.14093782007694244,
            0.003701021196320653,
            2.2096068278187886e-05,
            1.4673126713660167e-08,
        ),
        (
            1.0517348051071167,
            0.49151602387428284,
            0.027308551594614983,
            0.0003496443387120962,
            8.425485020779888e-07,
        ),
    ),
    64: Rational(
        18.260153384461486,
        (
            1.7535131086748066,
            0.26904506629820774,
            0.010907790075999662,
            0.00018088453921136983,
            1.4537811210263887e-06,
            6.072028271567594e-09,
            1.3314349081089335e-11,
            1.4669048568228226e-14,
            7.21700749718823e-18,
            1.2086737040958078e-21,
            2.9084700522657347e-26,
        ),
        (
            1.7535131086748066,
            0.8535494358564766,
            0.061622520871517664,
            0.0015491741678115211,
            1.7646954789855408e-05,
            1.0177559229039515e-07,
            3.086102949424346e-10,
            4.841380435269799e-13,
            3.640798306547014e-16,
            1.0993706040465563e-19,
            8.53702630973768e-24,
        ),
    ),
}

_ERF = {
    32: Rational(
        3.7015037536621094,
        (
            2.124840259552002,
            0.3474510908126831,
            0.09799710661172867,
            0.00664629228413105,
            0.000532733800355345,
            4.0365221138927154e-06,
        ),
        (
            1.8830907344818115,
            0.9356173872947693,
            0.21041157841682434,
            0.02729904279112816,
            0.002092431066557765,
            7.333417306654155e-05,
        ),
    ),
    64: Rational(
        5.723574524841614,
        (
            2.062341530513418,
            0.3834708788998168,
            0.11763045831257198,
            0.01157274680137403,
            0.0014755352145788816,
            9.244776389687028e-05,
            6.5102045310764155e-06,
            2.652063247979608e-07,
            1.0895166615643833e-08,
            2.5174146251343957e-10,
            5.024101398486532e-12,
            6.225234716960631e-15,
            -3.4448261931167044e-16,
            -3.293519218895674e-19,
        ),
        (
            1.8277025938204416,
            0.9490764159481986,
            0.2378358253439713,
            0.03814377509429479,
            0.004374139640371779,
            0.000379107362341199,
            2.554792616036189e-05,
            1.3524656223218126e-06,
            5.5847586920809516e-08,
            1.7424392465684714e-09,
            3.7672252169088175e-11,
            4.249009019465357e-13,
            -2.9721951614039643e-15,
            -1.6894373375841014e-17,
        ),
    ),
}


def expand_tanh(x: Expr) -> Expr:
    """tanh(x) in arithmetic."""
    return _expand(x, _TANH[x.dtype.bits])


def expand_erf(x: Expr) -> Expr:
    """erf(x) in arithmetic."""
    return _expand(x, _ERF[x.dtype.bits])


def _expand(x: Expr, rational: Rational) -> Expr:
    build = Builder(x.dtype)
    inside = Max(Min(x, build.number(rational.clamp)), build.number(-rational.clamp))
    x = build.let("x", inside)
    square = build.let("square", Mul(x, x))
    numerator = Mul(x, build.polynomial(square, rational.numerator))
    return build.close(Div(numerator, build.polynomial(square, rational.denominator)))
