"""Functions of numbers, element by element: te.exp(A[i]).

Each states its error where it is more than the rounding of the result; one ulp is a unit in the
last place. What a function says of its error holds for the argument as it was rounded.
"""

from __future__ import annotations

import math

from .. import intrinsics
from ..dtype import INT32, TypeKind
from ..errors import IRError
from ..expr import LT, Call, Cast, Expr, Max, Number, Select, compare, magnitude, power
from ..expr import const as exact_const
from ..operand_checks import check_function
from .checks import check_number_type, operands
from .elements import cast

_LN_2 = math.log(2.0)
_FAR = 1e9  # beyond, the inverse of a hyperbolic function is a logarithm, to the last place


def _call(intrinsic: intrinsics.Intrinsic, *arguments: Expr | Number) -> Expr:
    values = operands(intrinsic.name, *arguments)
    check_function(intrinsic.name, values[0].dtype)
    return Call(intrinsic, values)


def exp(x: Expr) -> Expr:
    """e to the power x, within 2 ulp."""
    return _call(intrinsics.EXP, x)


def exp2(x: Expr) -> Expr:
    """2 to the power x, within 2 ulp."""
    return _call(intrinsics.EXP2, x)


def log(x: Expr) -> Expr:
    """The natural logarithm, within 1 ulp."""
    return _call(intrinsics.LOG, x)


def tanh(x: Expr) -> Expr:
    """The hyperbolic tangent, within 6 ulp; in float64 9."""
    return _call(intrinsics.TANH, x)


def erf(x: Expr) -> Expr:
    """The error function, within 7 ulp; in float64 10."""
    return _call(intrinsics.ERF, x)


def gelu(x: Expr) -> Expr:
    """x times the normal distribution function of x: x * (1 + erf(x / sqrt 2)) / 2, and as good to
    a few ulp where that cancels.
    """
    return _call(intrinsics.GELU, x)


def sqrt(x: Expr) -> Expr:
    """The square root."""
    return _call(intrinsics.SQRT, x)


def abs(x: Expr | Number) -> Expr:
    """The magnitude; of the smallest signed integer, which has none, that integer itself."""
    return magnitude(*operands("abs", x))


def round(x: Expr) -> Expr:
    """The nearest integer, ties to even."""
    return _call(intrinsics.ROUND, x)


def floor(x: Expr) -> Expr:
    """The largest integer that is not above x."""
    return _call(intrinsics.FLOOR, x)


def sin(x: Expr) -> Expr:
    """The sine, within 3 ulp for |x| <= 32768; beyond, where its digits would be lost, NaN."""
    return _call(intrinsics.SIN, x)


def cos(x: Expr) -> Expr:
    """The cosine, within 3 ulp for |x| <= 32768; beyond, where its digits would be lost, NaN."""
    return _call(intrinsics.COS, x)


def tan(x: Expr) -> Expr:
    """The tangent, sin(x) / cos(x): within 7 ulp for |x| <= 32768; beyond, NaN."""
    return sin(x) / cos(x)


def atan(x: Expr) -> Expr:
    """The angle between -pi/2 and pi/2 whose tangent is x, within 3 ulp."""
    return _call(intrinsics.ATAN, x)


def asin(x: Expr) -> Expr:
    """The angle between -pi/2 and pi/2 whose sine is x, within 6 ulp; NaN where |x| > 1."""
    (x,) = operands("asin", x)
    return atan(x / sqrt((1.0 - x) * (1.0 + x)))


def acos(x: Expr) -> Expr:
    """The angle between 0 and pi whose cosine is x, within 5 ulp; NaN where |x| > 1."""
    (x,) = operands("acos", x)
    return atan(sqrt((1.0 - x) / (1.0 + x))) * 2.0


def expm1(x: Expr) -> Expr:
    """exp(x) - 1, within 5 ulp also where x is small; in float64 3."""
    return _call(intrinsics.EXPM1, x)


def log1p(x: Expr) -> Expr:
    """log(1 + x), within 2 ulp also where x is small."""
    return _call(intrinsics.LOG1P, x)


def log2(x: Expr) -> Expr:
    """The logarithm to base 2, log(x) / log(2): within 4 ulp, so that log2(8) may not be 3."""
    return log(x) * (1.0 / math.log(2.0))


def log10(x: Expr) -> Expr:
    """The logarithm to base 10, log(x) / log(10): within 4 ulp."""
    return log(x) * (1.0 / math.log(10.0))


def sinh(x: Expr) -> Expr:
    """The hyperbolic sine, (expm1(x) - expm1(-x)) / 2: within 7 ulp; infinite where exp is."""
    return (expm1(x) - expm1(-x)) * 0.5


def cosh(x: Expr) -> Expr:
    """The hyperbolic cosine, (exp(x) + exp(-x)) / 2: within 4 ulp; infinite where exp is."""
    return (exp(x) + exp(-x)) * 0.5


def asinh(x: Expr) -> Expr:
    """The number whose hyperbolic sine is x, within 5 ulp."""
    size = abs(x)
    near = log1p(size + size * size / (sqrt(size * size + 1.0) + 1.0))
    value = Select(compare(LT, size, exact_const(_FAR, size.dtype)), near, log(size) + _LN_2)
    return Select(compare(LT, x, exact_const(0, x.dtype)), -value, value)


def acosh(x: Expr) -> Expr:
    """The number of 0 or more whose hyperbolic cosine is x, within 5 ulp; NaN where x < 1."""
    (x,) = operands("acosh", x)
    above = x - 1.0
    near = log1p(above + sqrt(above * (above + 2.0)))
    value = Select(compare(LT, x, exact_const(_FAR, x.dtype)), near, log(x) + _LN_2)
    return Select(compare(LT, x, exact_const(1, x.dtype)), exact_const(math.nan, x.dtype), value)


def atanh(x: Expr) -> Expr:
    """The number whose hyperbolic tangent is x, within 5 ulp; NaN where |x| > 1."""
    size = abs(x)
    value = log1p(size * 2.0 / (1.0 - size)) * 0.5
    return Select(compare(LT, x, exact_const(0, x.dtype)), -value, value)


def sigmoid(x: Expr) -> Expr:
    """1 / (1 + exp(-x)), within 4 ulp; 0 where exp(-x) is infinite."""
    return 1.0 / (1.0 + exp(-x))


def relu(x: Expr) -> Expr:
    """The larger of x and 0; NaN where x is NaN."""
    (x,) = operands("relu", x)
    check_number_type("relu", x)
    return Max(x, exact_const(0, x.dtype))


def sign(x: Expr) -> Expr:
    """1 for a positive number, -1 for a negative one, else x itself, which is 0 or NaN."""
    (x,) = operands("sign", x)
    check_number_type("sign", x)
    zero, one = exact_const(0, x.dtype), exact_const(1, x.dtype)
    if x.dtype.kind is TypeKind.UINT:
        return Select(compare(LT, zero, x), one, x)
    below = Select(compare(LT, x, zero), exact_const(-1, x.dtype), x)
    return Select(compare(LT, zero, x), one, below)


def square(x: Expr) -> Expr:
    """x * x"""
    (x,) = operands("square", x)
    return x * x


def reciprocal(x: Expr) -> Expr:
    """1 / x"""
    (x,) = operands("reciprocal", x)
    return 1.0 / x


def rsqrt(x: Expr) -> Expr:
    """1 / sqrt(x), within 1.5 ulp."""
    return 1.0 / sqrt(x)


def ceil(x: Expr) -> Expr:
    """The smallest integer that is not below x."""
    return -floor(-x)


def trunc(x: Expr) -> Expr:
    """The integer that is next to x towards 0."""
    (x,) = operands("trunc", x)
    return Select(compare(LT, x, exact_const(0, x.dtype)), ceil(x), floor(x))


def pow(x: Expr | Number, y: Expr | Number) -> Expr:
    """x to the power y."""
    return power(*operands("pow", x, y))


def fmod(x: Expr | Number, y: Expr | Number) -> Expr:
    """What is left of x / y, x - y * trunc(x / y), exactly; it has the sign of x. Of float64 it is
    NaN where |x / y| > 2**96.
    """
    return _call(intrinsics.FMOD, x, y)


def min_any(a: Expr | Number, b: Expr | Number) -> Expr:
    """The smaller of two values; what a NaN gives is not promised."""
    return _call(intrinsics.MIN_ANY, a, b)


def threefry(index: Expr, key: int, word: int = 0) -> Expr:
    """32 random bits of an element, an int32: word 0 or 1 of what Threefry 2x32-20 (Salmon et al.,
    SC 2011) makes of a counter of 64 bits, the bits of the integer `index` and zeros above them,
    under a key of 64 bits. They are the same on every target.

    Raises: IRError for an index that is no integer of 32 or 64 bits, another key or word.
    """
    known = index.dtype.is_integer and index.dtype.bits in (32, 64)
    if not known or not 0 <= key < 1 << 64 or word not in (0, 1):
        raise IRError(
            f"te.threefry: the index is {index.dtype}, the key {key}, the word {word}; expected an "
            "integer of 32 or 64 bits, 0 to 2**64 - 1, and 0 or 1.",
            code="te-threefry",
        )
    above = Cast(index >> 32, INT32) if index.dtype.bits == 64 else exact_const(0, INT32)
    keys = (exact_const(key & (1 << 32) - 1, INT32), exact_const(key >> 32, INT32))
    return Call(intrinsics.THREEFRY[word], (cast(index, INT32), above, *keys))
