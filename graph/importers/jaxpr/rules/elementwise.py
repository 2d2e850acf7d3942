"""Rules of functions of each element."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np

from .....tir.dtype import dtype as as_dtype
from ....ops import activation, angles, arithmetic, bits, functions, hyperbolic, logic
from ....ops.base import Operator, lowest
from ....types import numpy_type
from ...atan2 import atan2
from ...onnx.node import NotSupported
from ..rule import Rule
from ..writer import JaxValue, JaxWriter

# M. Giles, Approximating the erfinv function (2011): polynomials in w - 2.5 where
# w = -log(1 - x**2) is below 5, and in sqrt(w) - 3 above; the highest power first
_NEAR = (
    2.81022636e-08,
    3.43273939e-07,
    -3.5233877e-06,
    -4.39150654e-06,
    0.00021858087,
    -0.00125372503,
    -0.00417768164,
    0.246640727,
    1.50140941,
)
_FAR = (
    -0.000200214257,
    0.000100950558,
    0.00134934322,
    -0.00367342844,
    0.00573950773,
    -0.0076224613,
    0.00943887047,
    1.00167406,
    2.83297682,
)


def of_one(op: Operator) -> Rule:
    """A function of one operand."""
    return lambda w, x: w.emit(op, x)


def _of_two(op: Operator) -> Rule:
    """A function of two operands of one type."""
    return lambda w, x, y: w.emit(op, x, y)


def _spelled(operator: str) -> Rule:
    """An operator of ONNX's own."""
    return lambda w, *operands: w.spell(operator, *operands)


def _mul(w: JaxWriter, x: JaxValue, y: JaxValue, out_dtype: str | None = None) -> JaxValue:
    kind = out_dtype or x.dtype
    return w.emit(arithmetic.Mul(), w.cast(x, kind), w.cast(y, kind))


def _rsqrt(w: JaxWriter, x: JaxValue) -> JaxValue:
    return w.emit(arithmetic.Div(), w.full(1, x.dtype), w.emit(functions.Sqrt(), x))


def _cbrt(w: JaxWriter, x: JaxValue) -> JaxValue:
    """The root of the magnitude, which keeps the sign."""
    root = w.emit(arithmetic.Pow(), w.emit(functions.Abs(), x), w.full(1 / 3, x.dtype))
    return w.emit(arithmetic.Mul(), w.emit(functions.Sign(), x), root)


def _square(w: JaxWriter, x: JaxValue) -> JaxValue:
    return w.emit(arithmetic.Mul(), x, x)


def _integer_pow(w: JaxWriter, x: JaxValue, y: int) -> JaxValue:
    """By squares, as JAX multiplies."""
    if y == 0:
        return w.filled(x.shape, 1, x.dtype)
    power, found, left = x, list[JaxValue](), abs(y)
    while left:
        if left & 1:
            found.append(power)
        left >>= 1
        if left:
            power = _square(w, power)
    made = reduce(lambda a, b: w.emit(arithmetic.Mul(), a, b), found)
    return made if y > 0 else w.emit(arithmetic.Div(), w.full(1, x.dtype), made)


def _exp2(w: JaxWriter, x: JaxValue) -> JaxValue:
    return w.emit(arithmetic.Pow(), w.full(2, x.dtype), x)


def _round(w: JaxWriter, x: JaxValue, rounding_method: str) -> JaxValue:
    if rounding_method == "TO_NEAREST_EVEN":
        return w.emit(functions.Round(), x)
    # ties away from zero: by the fraction, which is exact
    size = w.emit(functions.Abs(), x)
    low = w.emit(functions.Floor(), size)
    part = w.emit(arithmetic.Sub(), size, low)
    up = w.emit(logic.LessOrEqual(), w.full(0.5, x.dtype), part)
    more = w.emit(arithmetic.Add(), low, w.full(1, x.dtype))
    whole = w.emit(logic.Where(), up, more, low)
    return w.emit(arithmetic.Mul(), w.emit(functions.Sign(), x), whole)


def _is_finite(w: JaxWriter, x: JaxValue) -> JaxValue:
    endless = w.emit(logic.IsInf(), x)
    return w.emit(logic.Not(), w.emit(logic.Or(), w.emit(logic.IsNaN(), x), endless))


def _erf_inv(w: JaxWriter, x: JaxValue) -> JaxValue:
    if x.dtype == "float64":
        raise NotSupported("it is of float64; known is float32")
    far = w.emit(functions.Log1p(), w.spell("Neg", _square(w, x)))
    far = w.spell("Neg", far)
    is_near = w.emit(logic.Less(), far, w.full(5, x.dtype))
    near = w.emit(arithmetic.Sub(), far, w.full(2.5, x.dtype))
    root = w.emit(arithmetic.Sub(), w.emit(functions.Sqrt(), far), w.full(3, x.dtype))
    made = (_polynomial(w, near, _NEAR), _polynomial(w, root, _FAR))
    scaled = w.emit(arithmetic.Mul(), w.emit(logic.Where(), is_near, *made), x)
    ends = w.emit(logic.Equal(), w.emit(functions.Abs(), x), w.full(1, x.dtype))
    endless = w.emit(arithmetic.Mul(), x, w.full(math.inf, x.dtype))
    return w.emit(logic.Where(), ends, endless, scaled)


def _polynomial(w: JaxWriter, x: JaxValue, coefficients: tuple[float, ...]) -> JaxValue:
    first, *rest = (w.full(one, x.dtype) for one in coefficients)
    for one in rest:
        first = w.emit(arithmetic.Add(), one, w.emit(arithmetic.Mul(), first, x))
    return first


def _rem(w: JaxWriter, x: JaxValue, y: JaxValue) -> JaxValue:
    """With the sign of the dividend."""
    return w.spell("Mod", x, y, fmod=1)


def _of_truth(of_truth: Operator | str, of_numbers: Operator | str) -> Rule:
    """An operator of truth values, which of numbers is another one."""

    def rule(w: JaxWriter, *operands: JaxValue) -> JaxValue:
        op = of_truth if operands[0].dtype == "bool" else of_numbers
        return w.spell(op, *operands) if isinstance(op, str) else w.emit(op, *operands)

    return rule


def _max(w: JaxWriter, x: JaxValue, y: JaxValue) -> JaxValue:
    """Beside what is least nothing changes; beside 0 it is what networks call Relu."""
    if x.dtype == "bool":
        return w.emit(logic.Or(), x, y)
    for one, other in ((x, y), (y, x)):
        known = w.known(other)
        if known is None or known.size != 1 or other.rank > one.rank:
            continue
        number = known.reshape(-1)[0].item()
        if number == lowest(x.dtype):
            return one
        if number == 0 and x.type.is_float:
            return w.emit(activation.Relu(), one)
    return w.emit(arithmetic.Max(), x, y)


def _ne(w: JaxWriter, x: JaxValue, y: JaxValue) -> JaxValue:
    return w.emit(logic.Not(), w.emit(logic.Equal(), x, y))


def _ge(w: JaxWriter, x: JaxValue, y: JaxValue) -> JaxValue:
    return w.emit(logic.LessOrEqual(), *_ordered(w, y, x))


def _gt(w: JaxWriter, x: JaxValue, y: JaxValue) -> JaxValue:
    return w.emit(logic.Less(), *_ordered(w, y, x))


def _le(w: JaxWriter, x: JaxValue, y: JaxValue) -> JaxValue:
    return w.emit(logic.LessOrEqual(), *_ordered(w, x, y))


def _lt(w: JaxWriter, x: JaxValue, y: JaxValue) -> JaxValue:
    return w.emit(logic.Less(), *_ordered(w, x, y))


def _ordered(w: JaxWriter, x: JaxValue, y: JaxValue) -> tuple[JaxValue, JaxValue]:
    """Truth values as numbers: false comes first."""
    return (w.cast(x, "uint8"), w.cast(y, "uint8")) if x.dtype == "bool" else (x, y)


def _in_total_order(op: Operator) -> Rule:
    """A comparison in which -0 is less than 0, and NaN more than all, or less where it has a
    sign: of bits as integers, where those of negative numbers count backwards.
    """

    def place(w: JaxWriter, x: JaxValue) -> JaxValue:
        if not x.type.is_float:
            return w.cast(x, "uint8") if x.dtype == "bool" else x
        x = x if x.dtype == "float64" else w.cast(x, "float32")
        width = as_dtype(x.dtype).bits
        kind, most = f"int{width}", (1 << width - 1) - 1
        word = w.emit(bits.BitCast(x.dtype, kind), x)
        backwards = w.emit(bits.BitwiseXor(), word, w.full(most, kind))
        negative = w.emit(logic.Less(), word, w.full(0, kind))
        return w.emit(logic.Where(), negative, backwards, word)

    return lambda w, x, y: w.emit(op, place(w, x), place(w, y))


def _shifted(*, right: bool, signed: bool | None = None) -> Rule:
    """The bits moved; where `signed` says it, as those of an integer with or without sign."""

    def rule(w: JaxWriter, x: JaxValue, y: JaxValue) -> JaxValue:
        width = as_dtype(x.dtype).bits
        kinds = {None: x.dtype, True: f"int{width}", False: f"uint{width}"}
        operands = (w.cast(one, kinds[signed]) for one in (x, y))
        return w.cast(w.emit(bits.BitShift(right), *operands), x.dtype)

    return rule


def _select(w: JaxWriter, which: JaxValue, *cases: JaxValue) -> JaxValue:
    """Truth values choose the first case where they are false; numbers choose by their place."""
    if which.dtype == "bool":
        return w.emit(logic.Where(), which, cases[1], cases[0])
    made = cases[0]
    for number, case in enumerate(cases[1:], 1):
        is_this = w.emit(logic.LessOrEqual(), w.full(number, which.dtype), which)
        made = w.emit(logic.Where(), is_this, case, made)
    return made


def _clamp(w: JaxWriter, low: JaxValue, x: JaxValue, high: JaxValue) -> JaxValue:
    if not low.rank and not high.rank:
        return w.spell("Clip", x, low, high)
    return w.emit(arithmetic.Min(), w.emit(arithmetic.Max(), x, low), high)


def _convert(w: JaxWriter, x: JaxValue, new_dtype: str) -> JaxValue:
    return w.cast(x, new_dtype)


def _bits_of(w: JaxWriter, x: JaxValue, new_dtype: str) -> JaxValue:
    """The bits of numbers as numbers of another type of as many bits."""
    if x.dtype == new_dtype:
        return x
    widths = {as_dtype(x.dtype).bits, as_dtype(new_dtype).bits}
    is_float = x.type.is_float or as_dtype(new_dtype).is_float
    if len(widths) > 1 or (is_float and widths not in ({32}, {64})):
        raise NotSupported(
            f"it gives the bits of {x.dtype} as {new_dtype}; known are integers of one width, and "
            "floats of 32 and 64 bits"
        )
    return w.emit(bits.BitCast(x.dtype, new_dtype), x) if is_float else w.cast(x, new_dtype)


def _reduce_precision(
    w: JaxWriter, x: JaxValue, exponent_bits: int, mantissa_bits: int
) -> JaxValue:
    """Rounded to a type of fewer bits; known are those that exist."""
    kinds = {(5, 10): "float16", (8, 7): "bfloat16", (8, 23): "float32", (11, 52): "float64"}
    kind = kinds.get((exponent_bits, mantissa_bits))
    if kind is None:
        raise NotSupported(f"it keeps {exponent_bits} and {mantissa_bits} bits, as no type does")
    if as_dtype(kind).bits >= as_dtype(x.dtype).bits:
        return x
    return w.cast(w.cast(x, kind), x.dtype)


def _population_count(w: JaxWriter, x: JaxValue) -> JaxValue:
    """Bits that are set, counted in pairs, then in groups of twice as many."""
    width = as_dtype(x.dtype).bits
    count = w.cast(x, f"uint{width}")

    def masked(value: JaxValue, group: int) -> JaxValue:
        pattern = sum(((1 << group) - 1) << at for at in range(0, width, 2 * group))
        table = np.asarray(pattern, numpy_type(count.dtype))
        return w.emit(bits.BitwiseAnd(), value, w.constant(table))

    for step in range(width.bit_length() - 1):
        group = 1 << step
        shift = w.full(group, count.dtype)
        above = masked(w.emit(bits.BitShift(right=True), count, shift), group)
        count = w.emit(arithmetic.Add(), masked(count, group), above)
    return w.cast(count, x.dtype)


RULES: dict[str, Rule] = {
    "abs": of_one(functions.Abs()),
    "acos": of_one(angles.Acos()),
    "acosh": of_one(hyperbolic.Acosh()),
    "add": _of_truth(logic.Or(), arithmetic.Add()),
    "add_any": _of_two(arithmetic.Add()),
    "and": _of_truth(logic.And(), bits.BitwiseAnd()),
    "asin": of_one(angles.Asin()),
    "asinh": of_one(hyperbolic.Asinh()),
    "atan": of_one(angles.Atan()),
    "atan2": atan2,
    "atanh": of_one(hyperbolic.Atanh()),
    "bitcast_convert_type": _bits_of,
    "cbrt": _cbrt,
    "ceil": of_one(functions.Ceil()),
    "clamp": _clamp,
    "convert_element_type": _convert,
    "cos": of_one(angles.Cos()),
    "cosh": of_one(hyperbolic.Cosh()),
    "div": _of_two(arithmetic.Div()),
    "eq": _of_two(logic.Equal()),
    "eq_to": _in_total_order(logic.Equal()),
    "erf": of_one(functions.Erf()),
    "erf_inv": _erf_inv,
    "erfc": of_one(functions.Erfc()),
    "exp": of_one(functions.Exp()),
    "exp2": _exp2,
    "expm1": of_one(functions.Expm1()),
    "floor": of_one(functions.Floor()),
    "ge": _ge,
    "gt": _gt,
    "integer_pow": _integer_pow,
    "is_finite": _is_finite,
    "le": _le,
    "le_to": _in_total_order(logic.LessOrEqual()),
    "log": of_one(functions.Log()),
    "log1p": of_one(functions.Log1p()),
    "logistic": of_one(activation.Sigmoid()),
    "lt": _lt,
    "lt_to": _in_total_order(logic.Less()),
    "max": _max,
    "min": _of_truth(logic.And(), arithmetic.Min()),
    "mul": _mul,
    "ne": _ne,
    "neg": _spelled("Neg"),
    "not": _of_truth(logic.Not(), bits.BitwiseNot()),
    "or": _of_truth(logic.Or(), bits.BitwiseOr()),
    "population_count": _population_count,
    "pow": _spelled("Pow"),
    "reduce_precision": _reduce_precision,
    "rem": _rem,
    "round": _round,
    "rsqrt": _rsqrt,
    "select_n": _select,
    "shift_left": _shifted(right=False),
    "shift_right_arithmetic": _shifted(right=True, signed=True),
    "shift_right_logical": _shifted(right=True, signed=False),
    "sign": of_one(functions.Sign()),
    "sin": of_one(angles.Sin()),
    "sinh": of_one(hyperbolic.Sinh()),
    "sqrt": of_one(functions.Sqrt()),
    "square": _square,
    "sub": _of_two(arithmetic.Sub()),
    "tan": of_one(angles.Tan()),
    "tanh": of_one(functions.Tanh()),
    "xor": _of_truth("Xor", "BitwiseXor"),
}
