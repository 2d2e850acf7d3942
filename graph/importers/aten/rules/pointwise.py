"""Rules of functions of each element."""

from __future__ import annotations

import math

from ml_dtypes import finfo

from ....ops import angles, arithmetic, functions, hyperbolic, logic
from ....ops.base import Operator
from ....types import numpy_type
from ...atan2 import atan2
from ..promotion import Number, as_float
from ..rule import Rule
from ..writer import AtenValue, AtenWriter, Operand


def _float(w: AtenWriter, x: AtenValue) -> AtenValue:
    return w.cast(x, as_float(x.dtype))


def of_floats(op: Operator) -> Rule:
    """A function of real numbers: of integers it is one of float32."""

    def rule(w: AtenWriter, self: AtenValue) -> AtenValue:
        return w.emit(op, _float(w, self))

    return rule


def of_numbers(op: Operator) -> Rule:
    """A function that keeps the element type."""

    def rule(w: AtenWriter, self: AtenValue) -> AtenValue:
        return w.emit(op, self)

    return rule


def _rounding(op: Operator) -> Rule:
    """A function that leaves integers as they are."""

    def rule(w: AtenWriter, self: AtenValue) -> AtenValue:
        return w.emit(op, self) if self.type.is_float else self

    return rule


def _pair(op: Operator, *, swapped: bool = False) -> Rule:
    """An operator of two operands, which are brought to one type."""

    def rule(w: AtenWriter, self: Operand, other: Operand) -> AtenValue:
        a, b = w.promoted(self, other)
        return w.emit(op, b, a) if swapped else w.emit(op, a, b)

    return rule


def _add(w: AtenWriter, self: Operand, other: Operand, alpha: Number = 1) -> AtenValue:
    return _sum(w, arithmetic.Add(), self, other, alpha)


def _sub(w: AtenWriter, self: Operand, other: Operand, alpha: Number = 1) -> AtenValue:
    return _sum(w, arithmetic.Sub(), self, other, alpha)


def _rsub(w: AtenWriter, self: Operand, other: Operand, alpha: Number = 1) -> AtenValue:
    return _sum(w, arithmetic.Sub(), other, self, alpha)


def _sum(w: AtenWriter, op: Operator, a: Operand, b: Operand, alpha: Number) -> AtenValue:
    left, right = w.promoted(a, b)
    if left.dtype == "bool":
        return w.emit(logic.Or(), left, right)
    if alpha != 1:
        right = w.emit(arithmetic.Mul(), right, w.full(alpha, right.dtype))
    return w.emit(op, left, right)


def _mul(w: AtenWriter, self: Operand, other: Operand) -> AtenValue:
    a, b = w.promoted(self, other)
    return w.emit(logic.And() if a.dtype == "bool" else arithmetic.Mul(), a, b)


def _div(
    w: AtenWriter, self: Operand, other: Operand, rounding_mode: str | None = None
) -> AtenValue:
    a, b = w.promoted(self, other)
    if rounding_mode is None:
        return w.emit(arithmetic.Div(), _float(w, a), _float(w, b))
    if rounding_mode == "floor":
        return _floor_divide(w, a, b)
    quotient = w.emit(arithmetic.Div(), a, b)  # of integers, truncated
    return _trunc(w, quotient)


def _floor_divide(w: AtenWriter, self: Operand, other: Operand) -> AtenValue:
    """As Python does: 1.0 // 0.1 is 9, since what is left is exact."""
    a, b = w.promoted(self, other)
    if not a.type.is_float:
        whole = w.emit(arithmetic.Sub(), a, w.spell("Mod", a, b))
        return w.emit(arithmetic.Div(), whole, b)
    left, differ = _left_over(w, a, b)
    quotient = w.emit(arithmetic.Div(), w.emit(arithmetic.Sub(), a, left), b)
    below = w.emit(arithmetic.Sub(), quotient, w.full(1, a.dtype))
    quotient = w.emit(functions.Round(), w.emit(logic.Where(), differ, below, quotient))
    endless = w.emit(arithmetic.Div(), a, b)
    is_zero = w.emit(logic.Equal(), b, w.full(0, b.dtype))
    return w.emit(logic.Where(), is_zero, endless, quotient)


def _left_over(w: AtenWriter, a: AtenValue, b: AtenValue) -> tuple[AtenValue, AtenValue]:
    """What fmod leaves of floats, exactly, and whether it has another sign than the divisor."""
    left, zero = w.spell("Mod", a, b, fmod=1), w.full(0, a.dtype)
    signs = (w.emit(logic.Less(), one, zero) for one in (left, b))
    return left, w.emit(logic.And(), w.spell("Xor", *signs), _ne(w, left, zero))


def _trunc(w: AtenWriter, self: AtenValue) -> AtenValue:
    if not self.type.is_float:
        return self
    low = w.emit(functions.Floor(), self)
    negative = w.emit(logic.Less(), self, w.full(0, self.dtype))
    return w.emit(logic.Where(), negative, w.emit(functions.Ceil(), self), low)


def _remainder(w: AtenWriter, self: Operand, other: Operand) -> AtenValue:
    """With the sign of the divisor."""
    a, b = w.promoted(self, other)
    if not a.type.is_float:
        return w.spell("Mod", a, b)
    left, differ = _left_over(w, a, b)
    return w.emit(logic.Where(), differ, w.emit(arithmetic.Add(), left, b), left)


def _fmod(w: AtenWriter, self: Operand, other: Operand) -> AtenValue:
    """With the sign of the dividend."""
    a, b = w.promoted(self, other)
    return w.spell("Mod", a, b, fmod=1)


def _pow(w: AtenWriter, self: Operand, exponent: Operand) -> AtenValue:
    return w.spell("Pow", *w.promoted(self, exponent))


def _neg(w: AtenWriter, self: AtenValue) -> AtenValue:
    return w.spell("Neg", self)


def _rsqrt(w: AtenWriter, self: AtenValue) -> AtenValue:
    return _reciprocal(w, w.emit(functions.Sqrt(), _float(w, self)))


def _reciprocal(w: AtenWriter, self: AtenValue) -> AtenValue:
    x = _float(w, self)
    return w.emit(arithmetic.Div(), w.full(1, x.dtype), x)


def _square(w: AtenWriter, self: AtenValue) -> AtenValue:
    return w.emit(arithmetic.Mul(), self, self)


def _log_over(base: float) -> Rule:
    def rule(w: AtenWriter, self: AtenValue) -> AtenValue:
        x = w.emit(functions.Log(), _float(w, self))
        return w.emit(arithmetic.Mul(), x, w.full(1 / math.log(base), x.dtype))

    return rule


def _exp2(w: AtenWriter, self: AtenValue) -> AtenValue:
    x = _float(w, self)
    return w.emit(arithmetic.Pow(), w.full(2, x.dtype), x)


def clamp(
    w: AtenWriter, self: AtenValue, min: Operand | None = None, max: Operand | None = None
) -> AtenValue:
    given = [one for one in (min, max) if one is not None]
    x, *bounds = w.promoted(self, *given)
    low = bounds.pop(0) if min is not None else None
    high = bounds.pop(0) if max is not None else None
    if all(bound is None or not bound.rank for bound in (low, high)):
        return w.spell("Clip", x, low, high)
    x = x if low is None else w.emit(arithmetic.Max(), x, low)
    return x if high is None else w.emit(arithmetic.Min(), x, high)


def _clamp_min(w: AtenWriter, self: AtenValue, min: Operand) -> AtenValue:
    return clamp(w, self, min)


def _clamp_max(w: AtenWriter, self: AtenValue, max: Operand) -> AtenValue:
    return clamp(w, self, None, max)


def _logical(op: Operator) -> Rule:
    def rule(w: AtenWriter, self: AtenValue, other: AtenValue) -> AtenValue:
        return w.emit(op, _truth(w, self), _truth(w, other))

    return rule


def _truth(w: AtenWriter, x: AtenValue) -> AtenValue:
    return w.cast(x, "bool")


def _logical_not(w: AtenWriter, self: AtenValue) -> AtenValue:
    return w.emit(logic.Not(), _truth(w, self))


def _logical_xor(w: AtenWriter, self: AtenValue, other: AtenValue) -> AtenValue:
    return w.spell("Xor", _truth(w, self), _truth(w, other))


def _ne(w: AtenWriter, self: Operand, other: Operand) -> AtenValue:
    return w.emit(logic.Not(), w.emit(logic.Equal(), *w.promoted(self, other)))


def _bits(of_truth: str, of_integers: str) -> Rule:
    """An operator of bits, which of truth values is a logical one."""

    def rule(w: AtenWriter, self: Operand, other: Operand) -> AtenValue:
        a, b = w.promoted(self, other)
        return w.spell(of_truth if a.dtype == "bool" else of_integers, a, b)

    return rule


def _bitwise_not(w: AtenWriter, self: AtenValue) -> AtenValue:
    return w.spell("Not" if self.dtype == "bool" else "BitwiseNot", self)


def _where(w: AtenWriter, condition: AtenValue, self: Operand, other: Operand) -> AtenValue:
    return w.emit(logic.Where(), _truth(w, condition), *w.promoted(self, other))


def _masked_fill(w: AtenWriter, self: AtenValue, mask: AtenValue, value: Operand) -> AtenValue:
    return w.emit(logic.Where(), mask, w.operand(value, self.dtype), self)


def _isnan(w: AtenWriter, self: AtenValue) -> AtenValue:
    return w.emit(logic.IsNaN(), _float(w, self))


def _isinf(w: AtenWriter, self: AtenValue) -> AtenValue:
    return w.emit(logic.IsInf(), _float(w, self))


def _isfinite(w: AtenWriter, self: AtenValue) -> AtenValue:
    return w.emit(logic.Not(), w.emit(logic.Or(), _isnan(w, self), _isinf(w, self)))


def _nan_to_num(
    w: AtenWriter,
    self: AtenValue,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
) -> AtenValue:
    if not self.type.is_float:
        return self
    most = float(finfo(numpy_type(self.dtype)).max)  # type: ignore[no-untyped-call]
    x = w.emit(logic.Where(), w.emit(logic.IsNaN(), self), w.full(nan or 0.0, self.dtype), self)
    for positive, value in ((True, posinf), (False, neginf)):
        found = w.emit(logic.IsInf(positive, not positive), x)
        bound = value if value is not None else most if positive else -most
        x = w.emit(logic.Where(), found, w.full(bound, self.dtype), x)
    return x


def _sign(w: AtenWriter, self: AtenValue) -> AtenValue:
    """0 of what is no number."""
    if not self.type.is_float:
        return self if self.dtype == "bool" else w.emit(functions.Sign(), self)
    zero, is_none = w.full(0, self.dtype), w.emit(logic.IsNaN(), self)
    return w.emit(logic.Where(), is_none, zero, w.emit(functions.Sign(), self))


def _atan2(w: AtenWriter, self: AtenValue, other: AtenValue) -> AtenValue:
    y, x = (_float(w, one) for one in w.promoted(self, other))
    return atan2(w, y, x)


def _lerp(w: AtenWriter, self: AtenValue, end: AtenValue, weight: Operand) -> AtenValue:
    a, b = w.promoted(self, end)
    share = w.operand(weight, a.dtype)
    return w.emit(
        arithmetic.Add(), a, w.emit(arithmetic.Mul(), share, w.emit(arithmetic.Sub(), b, a))
    )


def _addcmul(
    w: AtenWriter, self: AtenValue, tensor1: AtenValue, tensor2: AtenValue, value: Number = 1
) -> AtenValue:
    return _sum(w, arithmetic.Add(), self, _mul(w, tensor1, tensor2), value)


def _addcdiv(
    w: AtenWriter, self: AtenValue, tensor1: AtenValue, tensor2: AtenValue, value: Number = 1
) -> AtenValue:
    return _sum(w, arithmetic.Add(), self, _div(w, tensor1, tensor2), value)


def _logit(w: AtenWriter, self: AtenValue, eps: float | None = None) -> AtenValue:
    x = _float(w, self)
    if eps is not None:
        x = clamp(w, x, eps, 1 - eps)
    rest = w.emit(arithmetic.Sub(), w.full(1, x.dtype), x)
    return w.emit(functions.Log(), w.emit(arithmetic.Div(), x, rest))


def _fill(w: AtenWriter, self: AtenValue, value: Operand) -> AtenValue:
    return w.filled(self.shape, value, self.dtype)


def _copy(w: AtenWriter, self: AtenValue, src: AtenValue) -> AtenValue:
    return w.expand(w.cast(src, self.dtype), self.shape)


RULES: dict[str, Rule] = {
    "abs": of_numbers(functions.Abs()),
    "acos": of_floats(angles.Acos()),
    "acosh": of_floats(hyperbolic.Acosh()),
    "add.Tensor": _add,
    "add.Scalar": _add,
    "addcdiv": _addcdiv,
    "addcmul": _addcmul,
    "asin": of_floats(angles.Asin()),
    "asinh": of_floats(hyperbolic.Asinh()),
    "atan": of_floats(angles.Atan()),
    "atan2": _atan2,
    "atanh": of_floats(hyperbolic.Atanh()),
    "bitwise_and.Scalar": _bits("And", "BitwiseAnd"),
    "bitwise_and.Tensor": _bits("And", "BitwiseAnd"),
    "__and__.Scalar": _bits("And", "BitwiseAnd"),
    "__and__.Tensor": _bits("And", "BitwiseAnd"),
    "bitwise_not": _bitwise_not,
    "bitwise_or.Scalar": _bits("Or", "BitwiseOr"),
    "bitwise_or.Tensor": _bits("Or", "BitwiseOr"),
    "__or__.Scalar": _bits("Or", "BitwiseOr"),
    "__or__.Tensor": _bits("Or", "BitwiseOr"),
    "bitwise_xor.Scalar": _bits("Xor", "BitwiseXor"),
    "bitwise_xor.Tensor": _bits("Xor", "BitwiseXor"),
    "__xor__.Tensor": _bits("Xor", "BitwiseXor"),
    "ceil": _rounding(functions.Ceil()),
    "clamp": clamp,
    "clamp.Tensor": clamp,
    "clamp_max": _clamp_max,
    "clamp_min": _clamp_min,
    "copy": _copy,
    "cos": of_floats(angles.Cos()),
    "cosh": of_floats(hyperbolic.Cosh()),
    "div.Scalar": _div,
    "div.Scalar_mode": _div,
    "div.Tensor": _div,
    "div.Tensor_mode": _div,
    "eq.Scalar": _pair(logic.Equal()),
    "eq.Tensor": _pair(logic.Equal()),
    "erf": of_floats(functions.Erf()),
    "exp": of_floats(functions.Exp()),
    "exp2": _exp2,
    "expm1": of_floats(functions.Expm1()),
    "fill.Scalar": _fill,
    "floor": _rounding(functions.Floor()),
    "floor_divide": _floor_divide,
    "floor_divide.Scalar": _floor_divide,
    "fmod.Scalar": _fmod,
    "fmod.Tensor": _fmod,
    "ge.Scalar": _pair(logic.LessOrEqual(), swapped=True),
    "ge.Tensor": _pair(logic.LessOrEqual(), swapped=True),
    "gt.Scalar": _pair(logic.Less(), swapped=True),
    "gt.Tensor": _pair(logic.Less(), swapped=True),
    "isfinite": _isfinite,
    "isinf": _isinf,
    "isnan": _isnan,
    "le.Scalar": _pair(logic.LessOrEqual()),
    "le.Tensor": _pair(logic.LessOrEqual()),
    "lerp.Scalar": _lerp,
    "lerp.Tensor": _lerp,
    "log": of_floats(functions.Log()),
    "log10": _log_over(10),
    "log1p": of_floats(functions.Log1p()),
    "log2": _log_over(2),
    "logical_and": _logical(logic.And()),
    "logical_not": _logical_not,
    "logical_or": _logical(logic.Or()),
    "logical_xor": _logical_xor,
    "logit": _logit,
    "lt.Scalar": _pair(logic.Less()),
    "lt.Tensor": _pair(logic.Less()),
    "masked_fill.Scalar": _masked_fill,
    "masked_fill.Tensor": _masked_fill,
    "max.other": _pair(arithmetic.Max()),
    "maximum": _pair(arithmetic.Max()),
    "min.other": _pair(arithmetic.Min()),
    "minimum": _pair(arithmetic.Min()),
    "mul.Scalar": _mul,
    "mul.Tensor": _mul,
    "nan_to_num": _nan_to_num,
    "ne.Scalar": _ne,
    "ne.Tensor": _ne,
    "neg": _neg,
    "pow.Scalar": _pow,
    "pow.Tensor_Scalar": _pow,
    "pow.Tensor_Tensor": _pow,
    "reciprocal": _reciprocal,
    "remainder.Scalar": _remainder,
    "remainder.Tensor": _remainder,
    "round": _rounding(functions.Round()),
    "rsqrt": _rsqrt,
    "rsub.Scalar": _rsub,
    "rsub.Tensor": _rsub,
    "sgn": _sign,
    "sign": _sign,
    "sin": of_floats(angles.Sin()),
    "sinh": of_floats(hyperbolic.Sinh()),
    "sqrt": of_floats(functions.Sqrt()),
    "square": _square,
    "sub.Scalar": _sub,
    "sub.Tensor": _sub,
    "tan": of_floats(angles.Tan()),
    "tanh": of_floats(functions.Tanh()),
    "trunc": _trunc,
    "where.Scalar": _where,
    "where.ScalarOther": _where,
    "where.ScalarSelf": _where,
    "where.self": _where,
}
