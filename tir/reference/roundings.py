"""The value of an expression on whole arrays in float64, and how far the roundings of its own types
may take it, to first order.

Errors are counted in units of UNIT, the roundoff of float32; None stands for an exact value. Each
operation adds the roundoff of its own type times its result, and hands on the errors of its
operands times its derivative. A comparison whose operands lie within their errors of each other may
come out either way, and with it a select, a floor or a conversion to an integer: the difference of
both outcomes counts. Elementary functions count as their expansions promise (codegen/lower/math).

Not followed: what does whole-number arithmetic beyond +, -, * on rounded values, and indices that
depend on them. `evaluate_rounded` then raises NotFollowed.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass

import numpy as np

from ..buffer import Buffer, Load
from ..dtype import FLOAT64, DType, TypeKind
from ..expr import (
    Add,
    And,
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Div,
    Expr,
    Let,
    Max,
    Min,
    Mul,
    Not,
    Or,
    Select,
    Sub,
    Var,
)
from ..lowered import Reinterpret
from ..visit import loads
from .arithmetic import convert_array
from .array_expr import ARITHMETIC, ArrayEvaluator, View

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]

UNIT = 2.0**-24
FLIP = 1 / UNIT  # the error, in units, of what may be 1 off
_NEAR = 16 * UNIT  # of two errors: so close may a comparison come out either way

# of each float type: bits of the significand; exponents of the least number, of the least normal
# one and of the first power of two that is beyond the largest
_FORMATS = {
    (TypeKind.FLOAT, 16): (11, -24, -14, 16),
    (TypeKind.FLOAT, 32): (24, -149, -126, 128),
    (TypeKind.FLOAT, 64): (53, -1074, -1022, 1024),
    (TypeKind.BFLOAT, 16): (8, -133, -126, 128),
    (TypeKind.FLOAT8_E4M3FN, 8): (4, -9, -6, 9),
    (TypeKind.FLOAT8_E5M2, 8): (3, -16, -14, 16),
    (TypeKind.FLOAT8_E4M3FNUZ, 8): (4, -10, -7, 8),
    (TypeKind.FLOAT8_E5M2FNUZ, 8): (3, -17, -15, 16),
    (TypeKind.FLOAT4_E2M1FN, 4): (2, -1, 0, 3),
}

_EXACT_CALLS = frozenset({"abs", "max_any", "min_any", "floor", "round"})
# ulp that the expansion of a function may be off in float32 and in float64
_PROMISED = {
    "exp": (2, 2),
    "exp2": (2, 2),
    "log": (1, 1),
    "tanh": (6, 9),
    "erf": (7, 10),
    "gelu": (8, 14),
    "sin": (3, 3),
    "cos": (3, 3),
    "atan": (3, 3),
    "expm1": (5, 3),
    "log1p": (2, 2),
}


class NotFollowed(Exception):
    """An expression holds an operation whose error has no rule here."""


@dataclass(frozen=True, slots=True, eq=False)
class Rounded:
    """A value, and the error that it may have: None where it has none."""

    value: Array
    error: Array | None = None


def precision(dtype: DType) -> int:
    """Bits of the significand of a float type."""
    return _FORMATS[dtype.kind, dtype.bits][0]


def is_exact(source: DType, target: DType) -> bool:
    """Whether a float type holds each number of another type that is within its range."""
    if not source.is_float:
        return source.is_bool or source.bits <= precision(target)
    (bits, least, *_), (most, last, *_) = (_FORMATS[t.kind, t.bits] for t in (source, target))
    return bits <= most and least >= last


def rounds_nothing(expr: Expr, inexact: Container[Buffer]) -> bool:
    """Whether the value of an expression has no error, as that of a copy: told without computing
    it.

    inexact: the buffers whose elements have errors.
    """
    match expr:
        case Load():
            exact = expr.buffer not in inexact
        case Cast():
            exact = not expr.type.is_float or is_exact(expr.value.dtype, expr.type)
        case Reinterpret():
            exact = True
        case Binary():
            exact = expr.dtype.is_integer or isinstance(expr, Min | Max)
        case Call():
            exact = expr.intrinsic.name in _EXACT_CALLS
        case Const() | Var() | Compare() | And() | Or() | Not() | Select():
            exact = True
        case _:
            exact = False
    children = (child for child in expr.children() if isinstance(child, Expr))
    return exact and all(rounds_nothing(child, inexact) for child in children)


def roundoff(value: Array, dtype: DType, ulps: float | Array = 0.5) -> Array:
    """The error of a result of a float type that is so many of its last places off, in units: none
    of an infinite one, and any of one that is finite but beyond the type.
    """
    bits, least, _, beyond = _FORMATS[dtype.kind, dtype.bits]
    share = np.multiply(ulps, 2.0 ** (1 - bits) / UNIT)
    largest = 2.0 ** (beyond - 1) * (2 - 2.0**-bits)  # from there on it is rounded to infinity
    size = np.abs(value)
    own = np.add(np.multiply(size, share), 2.0 ** (least - 1) / UNIT)
    if np.max(size, initial=0.0) < largest:  # false where it is NaN
        return own
    outside = np.logical_and(np.greater(size, largest), np.isfinite(size))
    return np.where(outside, np.inf, np.where(np.isinf(size), 0.0, own))


def least_normal(dtype: DType) -> float:
    """The least normal number of a float type."""
    return float(2.0 ** _FORMATS[dtype.kind, dtype.bits][2])


class RoundedEvaluator(ArrayEvaluator):
    """Evaluates expressions in float64 beside their errors.

    errors: of the elements of buffers, in units; those that are not there are exact. view_error: a
    view of the errors that a load meets, as `view` is one of its values.
    """

    def __init__(
        self,
        values: Mapping[Var, Array],
        buffers: Mapping[Buffer, Array],
        errors: Mapping[Buffer, Array],
        *,
        view: View | None = None,
        view_error: View | None = None,
    ) -> None:
        super().__init__(values, buffers, working=FLOAT64, view=view)
        self._errors = errors
        self._view_error = view_error
        self._of_variables: dict[Var, Array] = {}

    def rounded(self, expr: Expr) -> Rounded:
        """The value of `expr` and its error. Raises: NotFollowed."""
        with np.errstate(all="ignore"):
            return self._follow(expr)

    def _follow(self, expr: Expr) -> Rounded:
        match expr:
            case Const():
                return Rounded(self._visit(expr))
            case Var():
                return Rounded(self._visit(expr), self._of_variables.get(expr))
            case Load():
                return self._follow_load(expr)
            case Binary():
                return self._follow_binary(expr)
            case Compare():
                return self._follow_compare(expr)
            case And() | Or() | Not():
                parts = [self._follow(part) for part in expr.children() if isinstance(part, Expr)]
                return Rounded(self._visit(expr), _largest(*(part.error for part in parts)))
            case Select():
                return self._follow_select(expr)
            case Cast():
                return self._follow_cast(expr)
            case Reinterpret():
                given = self._follow(expr.value)
                if given.error is not None:
                    raise NotFollowed("reinterpret")
                return Rounded(self._visit(expr))
            case Call():
                return self._follow_call(expr)
            case Let():
                return self._follow_let(expr)
            case _:
                raise NotFollowed(type(expr).__name__)

    def _follow_load(self, load: Load) -> Rounded:
        if any(inner.buffer in self._errors for index in load.indices for inner in loads(index)):
            raise NotFollowed("an index")
        value = self._visit(load)
        if load.buffer not in self._errors:
            return Rounded(value)
        if self._view_error is not None and (seen := self._view_error(load)) is not None:
            return Rounded(value, seen)
        buffers, view = self._buffers, self._view
        self._buffers = {**buffers, load.buffer: self._errors[load.buffer]}
        self._view = lambda inner: None if view is None or inner is load else view(inner)
        error = self._visit(load)
        self._buffers, self._view = buffers, view
        return Rounded(value, error)

    def _follow_binary(self, expr: Binary) -> Rounded:
        a, b = self._follow(expr.a), self._follow(expr.b)
        value = ARITHMETIC[type(expr)](a.value, b.value)
        dtype = expr.dtype
        if dtype.is_integer and a.error is None and b.error is None:
            return Rounded(value)
        match expr:
            case Add() | Sub():
                error = _sum(a.error, b.error)
            case Mul():
                error = _sum(_times(a.error, b.value), _times(b.error, a.value))
            case Min() | Max():
                return Rounded(value, _largest(a.error, b.error))
            case Div() if dtype.is_float:
                error = _sum(a.error, _times(b.error, value))
                error = None if error is None else np.divide(error, np.abs(b.value))
            case _:
                raise NotFollowed(type(expr).__name__)
        return Rounded(value, _sum(error, roundoff(value, dtype) if dtype.is_float else None))

    def _follow_compare(self, expr: Compare) -> Rounded:
        a, b = self._follow(expr.a), self._follow(expr.b)
        value = ARITHMETIC[type(expr)](a.value, b.value)
        error = _sum(a.error, b.error)
        if error is None:
            return Rounded(value)
        apart = np.abs(np.subtract(a.value, b.value, dtype=np.float64))
        return Rounded(value, np.where(np.less_equal(apart, np.multiply(error, _NEAR)), FLIP, 0.0))

    def _follow_select(self, select: Select) -> Rounded:
        condition = self._follow(select.condition)
        chosen = condition.value
        if condition.error is None and np.all(chosen):
            return self._follow(select.on_true)
        if condition.error is None and not np.any(chosen):
            return self._follow(select.on_false)
        either = np.zeros((), bool) if condition.error is None else np.greater(condition.error, 0)
        a = self._follow_where(np.logical_or(chosen, either), select.on_true)
        b = self._follow_where(np.logical_or(np.logical_not(chosen), either), select.on_false)
        value = np.where(chosen, a.value, b.value)
        error = None
        if a.error is not None or b.error is not None:
            zero = np.zeros(())
            of_a, of_b = (zero if one.error is None else one.error for one in (a, b))
            error = np.where(chosen, of_a, of_b)
        if condition.error is not None:
            apart = np.abs(np.subtract(a.value, b.value, dtype=np.float64))
            apart = np.where(np.equal(a.value, b.value), 0.0, apart)
            error = _sum(error, np.where(either, apart / UNIT, 0.0))
        return Rounded(value, error)

    def _follow_where(self, condition: Array, expr: Expr) -> Rounded:
        outer = self._active
        self._active = condition if outer is None else np.logical_and(outer, condition)
        result = self._follow(expr)
        self._active = outer
        return result

    def _follow_cast(self, cast: Cast) -> Rounded:
        source, target = cast.value.dtype, cast.type
        given = self._follow(cast.value)
        value = convert_array(np.asarray(given.value), self._type(target))
        if target.is_float:
            own = None if is_exact(source, target) else roundoff(value, target)
            return Rounded(value, _sum(given.error, own))
        if given.error is not None and source.is_float:
            return Rounded(value, _jump(given.value, given.error))
        return Rounded(value, given.error)

    def _follow_let(self, let: Let) -> Rounded:
        given = self._follow(let.value)
        self._values[let.var] = given.value
        if given.error is not None:
            self._of_variables[let.var] = given.error
        result = self._follow(let.body)
        del self._values[let.var]
        self._of_variables.pop(let.var, None)
        return result

    def _follow_call(self, call: Call) -> Rounded:
        given = [self._follow(argument) for argument in call.arguments]
        value = call.intrinsic.meaning(*(one.value for one in given))
        a, error = given[0].value, given[0].error
        name, dtype = call.intrinsic.name, call.dtype
        if name == "abs":
            return Rounded(value, error)
        if name in ("max_any", "min_any"):
            return Rounded(value, _largest(error, given[1].error))
        if name in ("floor", "round"):
            shift = 0.5 if name == "round" else 0.0
            return Rounded(value, None if error is None else _jump(np.add(a, shift), error))
        if name == "scale":
            if given[1].error is not None:
                raise NotFollowed(name)
            scaled = None if error is None else call.intrinsic.meaning(error, given[1].value)
            return Rounded(value, scaled)
        if name == "sqrt":
            slope = None if error is None else _root_error(value, error)
            return Rounded(value, _sum(slope, roundoff(value, dtype)))
        if name == "pow":
            return Rounded(value, self._power_error(value, given[0], given[1], dtype))
        if name == "round_quotient":
            return Rounded(value, _quotient_error(given[0], given[1], dtype))
        if name == "fmod" and all(one.error is None for one in given):
            return Rounded(value)
        if name not in _SLOPES:
            raise NotFollowed(name)
        slope = None if error is None else np.multiply(_SLOPES[name](a, value), error)
        ulps = _PROMISED[name][dtype.bits == 64]
        own = np.add(roundoff(value, dtype, ulps), least_normal(dtype) / UNIT)
        return Rounded(value, _sum(slope, own))

    def _power_error(self, value: Array, base: Rounded, exponent: Rounded, dtype: DType) -> Array:
        size = np.abs(np.log2(np.maximum(np.abs(value), 1e-300)))
        far = 200.0 if dtype.bits == 64 else 24.0
        ulps = np.where(size <= 16, 2.5, np.where(size <= 64, 10.0, far))
        own = np.add(roundoff(value, dtype, ulps), least_normal(dtype) / UNIT)
        width = np.maximum(np.abs(base.value), 1e-300)
        of_base = _times(base.error, np.divide(np.multiply(value, exponent.value), width))
        of_exponent = _times(exponent.error, np.multiply(value, np.log(width)))
        total = _sum(own, _sum(of_base, of_exponent))
        assert total is not None
        return total


def _sum(a: Array | None, b: Array | None) -> Array | None:
    if a is None or b is None:
        return b if a is None else a
    return np.add(a, b)


def _times(error: Array | None, factor: Array) -> Array | None:
    return None if error is None else np.multiply(error, np.abs(factor))


def _largest(*errors: Array | None) -> Array | None:
    found: Array | None = None
    for error in errors:
        if error is not None:
            found = error if found is None else np.maximum(found, error)
    return found


def _jump(value: Array, error: Array) -> Array:
    """The error of a step function that jumps by one at the integers."""
    apart = np.abs(np.subtract(value, np.rint(value)))
    return np.where(np.less_equal(apart, np.multiply(error, _NEAR)), np.add(error, FLIP), 0.0)


def _quotient_error(x: Rounded, y: Rounded, dtype: DType) -> Array:
    """Of a quotient by an exact number, rounded to the nearest integer."""
    if y.error is not None:
        raise NotFollowed("round_quotient")
    quotient = np.divide(x.value, y.value)
    given = None if x.error is None else np.divide(x.error, np.abs(y.value))
    off = roundoff(quotient, dtype)
    return _jump(np.add(quotient, 0.5), off if given is None else np.add(given, off))


def _root_error(value: Array, error: Array) -> Array:
    """By the slope of the square root, and near 0 by the root of the error itself."""
    slope = np.divide(error, np.maximum(np.multiply(value, 2.0), 1e-300))
    return np.minimum(slope, np.sqrt(np.divide(error, UNIT)))


def _gelu_slope(a: Array, value: Array) -> Array:
    """At most 1.13; of a negative x at most the tail of the normal distribution and its density."""
    tail = np.multiply(np.exp(np.multiply(np.multiply(a, a), -0.5)), 0.5 + 0.4 * np.abs(a))
    return np.where(np.less(a, 0), np.minimum(tail, 1.13), 1.13)


_SLOPES: dict[str, Callable[[Array, Array], Array]] = {
    "exp": lambda a, value: value,
    "exp2": lambda a, value: np.multiply(value, np.log(2.0)),
    "log": lambda a, value: np.divide(1.0, np.abs(a)),
    "tanh": lambda a, value: np.subtract(1.0, np.multiply(value, value)),
    "erf": lambda a, value: np.multiply(np.exp(-np.multiply(a, a)), 1.13),
    "gelu": _gelu_slope,
    "sin": lambda a, value: np.ones_like(value),
    "cos": lambda a, value: np.ones_like(value),
    "atan": lambda a, value: np.divide(1.0, np.add(np.multiply(a, a), 1.0)),
    "expm1": lambda a, value: np.add(value, 1.0),
    "log1p": lambda a, value: np.divide(1.0, np.abs(np.add(a, 1.0))),
}
