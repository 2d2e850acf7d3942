"""Expressions: typed immutable trees, and what each of them means.

Meaning, which the interpreter executes and every back end must keep:
- Integers are two's complement and wrap around. FloorDiv and FloorMod round towards minus infinity.
- Floats are IEEE, evaluated as written, but for two freedoms: a declared reduction may be
  re-associated, and a*b+c may be fused into Fma (decided in the IR by one pass, never by a C
  compiler).
- Min and Max propagate NaN.
- Select evaluates only the branch that is taken: a Load in the other branch does not happen.
- A Load with a mask reads only the lanes that are on; the others have the value `other`.
- Ramp, Broadcast, Fma, Reinterpret and vector types appear in lowered code only; Reduce only at the
  top of a te.compute.

Constructors never simplify. The operators fold two constants and the neutral elements of integers,
nothing else.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from .dtype import BOOL, INT64, DType
from .dtype import dtype as as_dtype
from .errors import IRError
from .intrinsics import Intrinsic
from .node import Node
from .number import check_number, index_number

Number = int | float | bool


class Expr(Node):
    """A value: one number of type `dtype`, or a vector of them."""

    __slots__ = ()

    @property
    def dtype(self) -> DType:
        """The type of the value."""
        raise TypeError(type(self).__name__)

    def __bool__(self) -> bool:
        raise IRError(
            f"expression: '{type(self).__name__}' has no truth value while a program is being "
            "built.",
            code="expr-bool",
            hints=(
                "use te.select(cond, a, b), te.all_of(...) or te.any_of(...); te.eq(a, b) "
                "builds an equality.",
            ),
        )

    def __add__(self, other: Expr | Number) -> Expr:
        return add(self, convert(other, self))

    def __radd__(self, other: Number) -> Expr:
        return add(convert(other, self), self)

    def __sub__(self, other: Expr | Number) -> Expr:
        return sub(self, convert(other, self))

    def __rsub__(self, other: Number) -> Expr:
        return sub(convert(other, self), self)

    def __mul__(self, other: Expr | Number) -> Expr:
        return mul(self, convert(other, self))

    def __rmul__(self, other: Number) -> Expr:
        return mul(convert(other, self), self)

    def __truediv__(self, other: Expr | Number) -> Expr:
        return div(self, convert(other, self))

    def __rtruediv__(self, other: Number) -> Expr:
        return div(convert(other, self), self)

    def __floordiv__(self, other: Expr | Number) -> Expr:
        return floordiv(self, convert(other, self))

    def __rfloordiv__(self, other: Number) -> Expr:
        return floordiv(convert(other, self), self)

    def __mod__(self, other: Expr | Number) -> Expr:
        return floormod(self, convert(other, self))

    def __rmod__(self, other: Number) -> Expr:
        return floormod(convert(other, self), self)

    def __neg__(self) -> Expr:
        return (
            sub(const(0, self.dtype), self)
            if self.dtype.is_integer
            else mul(self, const(-1.0, self.dtype))
        )

    def __lt__(self, other: Expr | Number) -> Expr:
        return compare(LT, self, convert(other, self))

    def __le__(self, other: Expr | Number) -> Expr:
        return compare(LE, self, convert(other, self))

    def __gt__(self, other: Expr | Number) -> Expr:
        return compare(LT, convert(other, self), self)

    def __ge__(self, other: Expr | Number) -> Expr:
        return compare(LE, convert(other, self), self)


@dataclass(frozen=True, slots=True, eq=False)
class Var(Expr):
    """A named value bound by a loop, a block or a Let. Two Vars are equal only when they are one
    object.
    """

    name: str
    type: DType = INT64

    @property
    def dtype(self) -> DType:
        return self.type

    def __hash__(self) -> int:
        return id(self) >> 4

    def __eq__(self, other: object) -> bool:
        return self is other

    def map_children(self, visit: Callable[[Node], Node]) -> Self:
        return self

    def children(self) -> tuple[Node, ...]:
        return ()


@dataclass(frozen=True, slots=True, eq=False)
class Const(Expr):
    """A number. Equal when type and bits are equal: 1, 1.0 and True differ, NaN equals NaN, 0.0 and
    -0.0 differ.
    """

    value: Number
    type: DType

    @property
    def dtype(self) -> DType:
        return self.type

    def _bits(self) -> object:
        return struct.pack("d", self.value) if self.type.is_float else self.value

    def __hash__(self) -> int:
        return hash((self.type, self._bits()))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Const) and self.type == other.type and self._bits() == other._bits()
        )


@dataclass(frozen=True, slots=True, eq=False)
class Binary(Expr):
    """Base of the arithmetic operators: both operands and the result have one type."""

    a: Expr
    b: Expr

    @property
    def dtype(self) -> DType:
        return self.a.dtype


@dataclass(frozen=True, slots=True, eq=False)
class Add(Binary):
    """a + b"""


@dataclass(frozen=True, slots=True, eq=False)
class Sub(Binary):
    """a - b"""


@dataclass(frozen=True, slots=True, eq=False)
class Mul(Binary):
    """a * b"""


@dataclass(frozen=True, slots=True, eq=False)
class Div(Binary):
    """a / b of floats"""


@dataclass(frozen=True, slots=True, eq=False)
class FloorDiv(Binary):
    """The integer quotient of a / b, rounded towards minus infinity."""


@dataclass(frozen=True, slots=True, eq=False)
class FloorMod(Binary):
    """a - b * FloorDiv(a, b): it has the sign of b."""


@dataclass(frozen=True, slots=True, eq=False)
class Min(Binary):
    """The smaller operand; NaN when either is NaN."""


@dataclass(frozen=True, slots=True, eq=False)
class Max(Binary):
    """The larger operand; NaN when either is NaN."""


@dataclass(frozen=True, slots=True, eq=False)
class Compare(Expr):
    """Base of the comparisons of two values of one type; the result is bool."""

    a: Expr
    b: Expr

    @property
    def dtype(self) -> DType:
        return BOOL.with_lanes(self.a.dtype.lanes)


@dataclass(frozen=True, slots=True, eq=False)
class EQ(Compare):
    """a == b"""


@dataclass(frozen=True, slots=True, eq=False)
class NE(Compare):
    """a != b"""


@dataclass(frozen=True, slots=True, eq=False)
class LT(Compare):
    """a < b"""


@dataclass(frozen=True, slots=True, eq=False)
class LE(Compare):
    """a <= b"""


@dataclass(frozen=True, slots=True, eq=False)
class And(Expr):
    """Both truth values hold; b is evaluated only when a holds."""

    a: Expr
    b: Expr

    @property
    def dtype(self) -> DType:
        return self.a.dtype


@dataclass(frozen=True, slots=True, eq=False)
class Or(Expr):
    """One of the truth values holds; b is evaluated only when a does not hold."""

    a: Expr
    b: Expr

    @property
    def dtype(self) -> DType:
        return self.a.dtype


@dataclass(frozen=True, slots=True, eq=False)
class Not(Expr):
    """The truth value does not hold."""

    a: Expr

    @property
    def dtype(self) -> DType:
        return self.a.dtype


@dataclass(frozen=True, slots=True, eq=False)
class Select(Expr):
    """`on_true` where `condition` holds, else `on_false`; only the branch taken is evaluated."""

    condition: Expr
    on_true: Expr
    on_false: Expr

    @property
    def dtype(self) -> DType:
        return self.on_true.dtype


@dataclass(frozen=True, slots=True, eq=False)
class Cast(Expr):
    """`value` converted to `type`: to an integer by truncation towards zero, to bool by comparison
    with 0.
    """

    value: Expr
    type: DType

    @property
    def dtype(self) -> DType:
        return self.type


@dataclass(frozen=True, slots=True, eq=False)
class Call(Expr):
    """A declared intrinsic applied to arguments of its type."""

    intrinsic: Intrinsic
    arguments: tuple[Expr, ...]

    @property
    def dtype(self) -> DType:
        return self.arguments[0].dtype


@dataclass(frozen=True, slots=True, eq=False)
class Let(Expr):
    """`body` with `var` standing for `value`, which is evaluated once."""

    var: Var
    value: Expr
    body: Expr

    @property
    def dtype(self) -> DType:
        return self.body.dtype


def const(value: Number, type: DType | str) -> Const:
    """The number `value` as `type`, rounded or wrapped to it."""
    kind = as_dtype(type)
    if kind.is_bool:
        return Const(bool(value), kind)
    if kind.is_float:
        with np.errstate(over="ignore"):
            return Const(float(kind.numpy.type(value)), kind)
    wrapped = int(value) % (1 << kind.bits)
    signed = kind.kind.value == "int" and wrapped >= 1 << (kind.bits - 1)
    return Const(wrapped - (1 << kind.bits) if signed else wrapped, kind)


def convert(value: Expr | Number, like: Expr) -> Expr:
    """`value` as an expression of the type of `like`: Python numbers adapt, expressions must
    agree. Raises: IRError, IRTypeError for a number that does not fit.
    """
    if isinstance(value, Expr):
        return value
    check_number(value, like.dtype)
    return const(value, like.dtype)


def as_index(index: Expr | int, name: str) -> Expr:
    """`index` as an int64 expression."""
    if not isinstance(index, Expr):
        return const(index_number(index, name), INT64)
    if not index.dtype.is_integer:
        raise IRError(
            f"load: an index of '{name}' has type {index.dtype}; expected an integer.",
            code="load-index-type",
            hints=("te.cast(index, 'int64') converts it.",),
        )
    return index if index.dtype == INT64 else Cast(index, INT64)


def check_same(operation: str, a: Expr, b: Expr) -> None:
    """Raise IRError unless both operands have one type."""
    if a.dtype != b.dtype:
        raise IRError(
            f"{operation}: the operands have types {a.dtype} and {b.dtype}; expected one type.",
            code="expr-types",
            hints=(f"te.cast(x, '{a.dtype}') converts one of them.",),
        )


def _check_numbers(operation: str, a: Expr, b: Expr) -> None:
    """Raise IRError unless both operands are numbers of one type."""
    check_same(operation, a, b)
    if a.dtype.is_bool:
        raise IRError(
            f"{operation}: the operands have type bool; expected numbers.",
            code="expr-bool-operand",
            hints=(
                "te.all_of and te.any_of combine truth values; te.cast(x, 'int32') makes 0 and 1.",
            ),
        )


def is_const(expr: Expr, value: Number) -> bool:
    """Whether `expr` is the integer or boolean constant `value`."""
    return isinstance(expr, Const) and not expr.type.is_float and expr.value == value


def add(a: Expr, b: Expr) -> Expr:
    """a + b"""
    _check_numbers("add", a, b)
    if isinstance(a, Const) and isinstance(b, Const):
        return const(a.value + b.value, a.type)
    if is_const(a, 0):
        return b
    return a if is_const(b, 0) else Add(a, b)


def sub(a: Expr, b: Expr) -> Expr:
    """a - b"""
    _check_numbers("subtract", a, b)
    if isinstance(a, Const) and isinstance(b, Const):
        return const(a.value - b.value, a.type)
    return a if is_const(b, 0) else Sub(a, b)


def mul(a: Expr, b: Expr) -> Expr:
    """a * b"""
    _check_numbers("multiply", a, b)
    if isinstance(a, Const) and isinstance(b, Const):
        return const(a.value * b.value, a.type)
    if is_const(a, 1):
        return b
    if is_const(b, 1):
        return a
    return const(0, a.dtype) if is_const(a, 0) or is_const(b, 0) else Mul(a, b)


def div(a: Expr, b: Expr) -> Expr:
    """a / b of floats."""
    check_same("divide", a, b)
    if not a.dtype.is_float:
        raise IRError(
            f"divide: '/' is for floats, got {a.dtype}.",
            code="expr-divide",
            hints=("use // for integers.",),
        )
    return Div(a, b)


def floordiv(a: Expr, b: Expr) -> Expr:
    """The integer quotient, rounded towards minus infinity."""
    check_same("floor division", a, b)
    _check_divisor("floor division", a, b)
    if isinstance(a, Const) and isinstance(b, Const):
        return const(a.value // b.value, a.type)
    return a if is_const(b, 1) else FloorDiv(a, b)


def floormod(a: Expr, b: Expr) -> Expr:
    """The remainder that belongs to `floordiv`."""
    check_same("modulo", a, b)
    _check_divisor("modulo", a, b)
    if isinstance(a, Const) and isinstance(b, Const):
        return const(a.value % b.value, a.type)
    return const(0, a.dtype) if is_const(b, 1) else FloorMod(a, b)


def _check_divisor(operation: str, a: Expr, b: Expr) -> None:
    if not a.dtype.is_integer:
        raise IRError(f"{operation}: expected integers, got {a.dtype}.", code="expr-floor")
    if is_const(b, 0):
        raise IRError(f"{operation}: the divisor is 0.", code="expr-zero")


def compare(kind: type[Compare], a: Expr, b: Expr) -> Expr:
    """The comparison `kind` of two values of one type; constants fold."""
    check_same("compare", a, b)
    if isinstance(a, Const) and isinstance(b, Const):
        return const(_COMPARE[kind](a.value, b.value), BOOL)
    return kind(a, b)


_COMPARE: dict[type[Compare], Callable[[Number, Number], bool]] = {
    EQ: lambda a, b: a == b,
    NE: lambda a, b: a != b,
    LT: lambda a, b: a < b,
    LE: lambda a, b: a <= b,
}

TRUE = Const(True, BOOL)
FALSE = Const(False, BOOL)


def index(value: int) -> Const:
    """`value` as an int64 constant, the type of loop variables and indices."""
    return Const(value, INT64)
