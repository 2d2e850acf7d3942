"""tanh and erf: odd functions that saturate, as x * P(x*x) / Q(x*x) with x clamped.

Promises, in float32 (with fused multiply-add / without): tanh at most 5.1 / 5.9 ulp, erf at most
5.6 / 6.3 ulp (0.8 and 0.9 on average), and never beyond 1; in float64: tanh at most 9 ulp, erf at
most 10 ulp. Beyond the clamp the value is 1 or -1 exactly; the sign of zero and NaN are kept. One
division, no table.

Coefficients: our own minimax rational fits (Remez, relative error) on 0 .. clamp. Both polynomials
of one are scaled by a number that was chosen, with the clamp, by trial on every float32 from 3 (for
erf 1.2) to the clamp: rounding costs least there, and the value at the clamp is 1 however the
multiply-adds are rounded.
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
        8.033683776855469,
        (
            1.1070207357406616,
            0.1483464241027832,
            0.003895570756867528,
            2.3257580323843285e-05,
            1.544444039325299e-08,
        ),
        (
            1.1070207357406616,
            0.5173532366752625,
            0.028744066134095192,
            0.0003680239024106413,
            8.868382792570628e-07,
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
        3.6758620738983154,
        (
            1.710681438446045,
            0.27858617901802063,
            0.07878800481557846,
            0.005312859546393156,
            0.00042998974095098674,
            3.2850130082806572e-06,
        ),
        (
            1.516052007675171,
            0.7522411942481995,
            0.16896629333496094,
            0.021901411935687065,
            0.0016789335059002042,
            5.945999873802066e-05,
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
