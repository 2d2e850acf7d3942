"""Expressions: typed immutable trees, and what each of them means.

Meaning, which the interpreter executes and every back end must keep:
- Integers are two's complement and wrap around. FloorDiv and FloorMod round towards minus infinity.
- A shift count below 0, or of the type's width and more, shifts every bit out: what remains is 0,
  or, where ShiftRight shifts a negative number, -1.
- Floats are IEEE, evaluated as written, but for two freedoms: a declared reduction may be
  re-associated, and a*b+c may be fused into Fma (decided in the IR by one pass, never by a C
  compiler).
- Min and Max propagate NaN; which NaN it is, here and elsewhere, is not said. Of two equal operands
  they give the second, in a definition possibly the other zero: lowering decides
  (codegen/lower/arithmetic/legalise.py), and from then on every bit but those of a NaN is
  determined.
- Select evaluates only the branch that is taken: a Load in the other branch does not happen.
- A Load with a mask reads only the lanes that are on; the others have the value `other`.
- Ramp, Broadcast, Fma and vector types appear in lowered code only; Reduce only at the
  top of a te.compute.

Constructors never simplify. The operators fold two constants and the neutral elements of integers,
nothing else.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, cast

from .dtype import BOOL, FLOAT32, INT64, DType, TypeKind
from .dtype import dtype as as_dtype
from .intrinsics import ABS, POW, Intrinsic
from .node import Leaf, Node
from .number import check_number, nearest
from .numpy_calls import apply_ufunc
from .operand_checks import (
    check_bits,
    check_computable,
    check_divisor,
    check_floats,
    check_function,
    check_integers,
    check_numbers,
    check_same,
    check_shift_count,
    truth_value_error,
)

Number = int | float | bool
_Operator = Callable[["Expr", "Expr | Number"], "Expr"]


def _both_ways(build: Callable[[Expr, Expr], Expr]) -> tuple[_Operator, _Operator]:
    """The operator and its reflection; Python numbers take the type that is computed in."""

    def forward(self: Expr, other: Expr | Number) -> Expr:
        own = computed(self)
        return build(own, computed(convert(other, own)))

    def reflected(self: Expr, other: Expr | Number) -> Expr:
        own = computed(self)
        return build(computed(convert(other, own)), own)

    return forward, reflected


class Expr(Node):
    """A value: one number of type `dtype`, or a vector of them."""

    __slots__ = ("_dtype", "_is_data")  # the second by tir/analysis/sums.py
    _dtype: DType

    @property
    def dtype(self) -> DType:
        """The type of the value; found once, and kept."""
        try:
            return self._dtype
        except AttributeError:
            object.__setattr__(self, "_dtype", self._find_dtype())
            return self._dtype

    def _find_dtype(self) -> DType:
        raise TypeError(type(self).__name__)

    def __bool__(self) -> bool:
        raise truth_value_error(type(self).__name__)

    __add__, __radd__ = _both_ways(lambda a, b: add(a, b))
    __sub__, __rsub__ = _both_ways(lambda a, b: sub(a, b))
    __mul__, __rmul__ = _both_ways(lambda a, b: mul(a, b))
    __truediv__, __rtruediv__ = _both_ways(lambda a, b: div(a, b))
    __floordiv__, __rfloordiv__ = _both_ways(lambda a, b: floordiv(a, b))
    __mod__, __rmod__ = _both_ways(lambda a, b: floormod(a, b))
    __pow__, __rpow__ = _both_ways(lambda a, b: power(a, b))
    __and__, __rand__ = _both_ways(lambda a, b: bitwise("&", a, b))
    __or__, __ror__ = _both_ways(lambda a, b: bitwise("|", a, b))
    __xor__, __rxor__ = _both_ways(lambda a, b: bitwise("^", a, b))
    __lshift__, __rlshift__ = _both_ways(lambda a, b: shift(ShiftLeft, a, b))
    __rshift__, __rrshift__ = _both_ways(lambda a, b: shift(ShiftRight, a, b))
    __lt__, __gt__ = _both_ways(lambda a, b: compare(LT, a, b))
    __le__, __ge__ = _both_ways(lambda a, b: compare(LE, a, b))

    def __neg__(self) -> Expr:
        own = computed(self)
        kind = own.dtype
        return sub(const(0, kind), own) if kind.is_integer else mul(own, const(-1.0, kind))

    def __invert__(self) -> Expr:
        return Not(self) if self.dtype.is_bool else bitwise("^", self, const(-1, self.dtype))

    def __abs__(self) -> Expr:
        return magnitude(computed(self))

    def __array_ufunc__(self, ufunc: object, method: str, *args: Expr, **options: object) -> object:
        return apply_ufunc(ufunc, method, args, options, lambda f, x: Call(f, (computed(x),)))


@dataclass(frozen=True, slots=True, eq=False)
class Var(Leaf, Expr):
    """A named value bound by a loop, a block or a Let. Two Vars are equal only when they are one
    object.
    """

    name: str
    type: DType = INT64

    @property
    def dtype(self) -> DType:
        return self.type

    __hash__ = object.__hash__
    __eq__ = object.__eq__


@dataclass(frozen=True, slots=True, eq=False)
class Const(Leaf, Expr):
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
        if not hasattr(self, "_hash"):
            object.__setattr__(self, "_hash", hash((self.type, self._bits())))
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, Const):
            return self is other
        return self.type == other.type and self._bits() == other._bits()


@dataclass(frozen=True, slots=True, eq=False)
class Pair(Expr):
    """Base of what has two operands, and, where nothing else is said, their type."""

    a: Expr
    b: Expr

    def _find_dtype(self) -> DType:
        return self.a.dtype

    def map_children(self, visit: Callable[[Node], Node]) -> Self:
        a, b = visit(self.a), visit(self.b)
        same = a is self.a and b is self.b
        return self if same else type(self)(cast(Expr, a), cast(Expr, b))

    def children(self) -> tuple[Node, ...]:
        return self.a, self.b


@dataclass(frozen=True, slots=True, eq=False)
class Binary(Pair):
    """Base of the arithmetic operators: both operands and the result have one type."""


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
class BitAnd(Binary):
    """The bits that both integers have."""


@dataclass(frozen=True, slots=True, eq=False)
class BitOr(Binary):
    """The bits that one of the integers has."""


@dataclass(frozen=True, slots=True, eq=False)
class BitXor(Binary):
    """The bits in which two integers differ."""


@dataclass(frozen=True, slots=True, eq=False)
class ShiftLeft(Binary):
    """a * 2**b, wrapped around; see the module for counts beyond the width."""


@dataclass(frozen=True, slots=True, eq=False)
class ShiftRight(Binary):
    """The floor of a / 2**b; see the module for counts beyond the width."""


@dataclass(frozen=True, slots=True, eq=False)
class Compare(Pair):
    """Base of the comparisons of two values of one type; the result is bool."""

    def _find_dtype(self) -> DType:
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
class And(Pair):
    """Both truth values hold; b is evaluated only when a holds."""


@dataclass(frozen=True, slots=True, eq=False)
class Or(Pair):
    """One of the truth values holds; b is evaluated only when a does not hold."""


@dataclass(frozen=True, slots=True, eq=False)
class Not(Expr):
    """The truth value does not hold."""

    a: Expr

    def _find_dtype(self) -> DType:
        return self.a.dtype


@dataclass(frozen=True, slots=True, eq=False)
class Select(Expr):
    """`on_true` where `condition` holds, else `on_false`; only the branch taken is evaluated."""

    condition: Expr
    on_true: Expr
    on_false: Expr

    def _find_dtype(self) -> DType:
        return self.on_true.dtype


@dataclass(frozen=True, slots=True, eq=False)
class Cast(Expr):
    """`value` converted to `type`.

    To a float: the nearest one, of two the even one; NaN stays a NaN, which one is not promised.
    Beyond the largest number that is infinity, in a type without infinities NaN, in float4_e2m1fn,
    which has neither, the largest number, and NaN becomes a zero. float16, bfloat16, float8 and
    float4 are converted by way of float32, which holds all their values.
    To an integer: of a float the part before the point, the nearest end of the type where that lies
    outside, 0 for NaN; of an integer its low bits. To bool: whether it differs from 0, as NaN does.
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

    def _find_dtype(self) -> DType:
        return self.arguments[0].dtype


@dataclass(frozen=True, slots=True, eq=False)
class Let(Expr):
    """`body` with `var` standing for `value`, which is evaluated once."""

    var: Var
    value: Expr
    body: Expr

    def _find_dtype(self) -> DType:
        return self.body.dtype


def const(value: Number, type: DType | str) -> Const:
    """The number `value` as `type`, rounded or wrapped to it."""
    kind = as_dtype(type)
    return Const(nearest(value, kind), kind)


def convert(value: Expr | Number, like: Expr) -> Expr:
    """`value` as an expression of the type of `like`: Python numbers adapt, expressions must
    agree. Raises: IRError, IRTypeError for a number that does not fit.
    """
    if isinstance(value, Expr):
        return value
    check_number(value, like.dtype)
    return const(value, like.dtype)


def computed(value: Expr) -> Expr:
    """`value` as it is computed with: floats of 16 bits as float32."""
    return Cast(value, FLOAT32) if value.dtype.is_half else value


def is_const(expr: Expr, value: Number) -> bool:
    """Whether `expr` is the integer or boolean constant `value`."""
    return isinstance(expr, Const) and expr.value == value and not expr.type.is_float


def add(a: Expr, b: Expr) -> Expr:
    """a + b"""
    check_numbers("add", a.dtype, b.dtype)
    if isinstance(a, Const) and isinstance(b, Const):
        return const(a.value + b.value, a.type)
    if is_const(a, 0):
        return b
    return a if is_const(b, 0) else Add(a, b)


def sub(a: Expr, b: Expr) -> Expr:
    """a - b"""
    check_numbers("subtract", a.dtype, b.dtype)
    if isinstance(a, Const) and isinstance(b, Const):
        return const(a.value - b.value, a.type)
    return a if is_const(b, 0) else Sub(a, b)


def mul(a: Expr, b: Expr) -> Expr:
    """a * b"""
    check_numbers("multiply", a.dtype, b.dtype)
    if isinstance(a, Const) and isinstance(b, Const):
        return const(a.value * b.value, a.type)
    if is_const(a, 1):
        return b
    if is_const(b, 1):
        return a
    return const(0, a.dtype) if is_const(a, 0) or is_const(b, 0) else Mul(a, b)


def div(a: Expr, b: Expr) -> Expr:
    """a / b of floats."""
    check_floats("divide", a.dtype, b.dtype)
    return Div(a, b)


def floordiv(a: Expr, b: Expr) -> Expr:
    """The integer quotient, rounded towards minus infinity."""
    check_integers("floor division", a.dtype, b.dtype)
    check_divisor("floor division", is_const(b, 0))
    if isinstance(a, Const) and isinstance(b, Const):
        return const(a.value // b.value, a.type)
    return a if is_const(b, 1) else FloorDiv(a, b)


def floormod(a: Expr, b: Expr) -> Expr:
    """The remainder that belongs to `floordiv`."""
    check_integers("modulo", a.dtype, b.dtype)
    check_divisor("modulo", is_const(b, 0))
    if isinstance(a, Const) and isinstance(b, Const):
        return const(a.value % b.value, a.type)
    return const(0, a.dtype) if is_const(b, 1) else FloorMod(a, b)


_Build = Callable[[Expr, Expr], Expr]
_BITWISE: dict[str, tuple[_Build, _Build, Callable[[int, int], int]]] = {
    "&": (BitAnd, And, operator.and_),
    "|": (BitOr, Or, operator.or_),
    "^": (BitXor, NE, operator.xor),
}


def bitwise(symbol: str, a: Expr, b: Expr) -> Expr:
    """&, | or ^ of the bits of integers; of truth values And, Or or NE. Constants fold."""
    integers, truths, fold = _BITWISE[symbol]
    if a.dtype.is_bool and b.dtype.is_bool:
        return truths(a, b)
    check_bits(symbol, a.dtype, b.dtype)
    if isinstance(a, Const) and isinstance(b, Const):
        return const(fold(int(a.value), int(b.value)), a.type)
    return integers(a, b)


def shift(kind: type[ShiftLeft | ShiftRight], a: Expr, b: Expr) -> Expr:
    """a << b or a >> b. Raises: IRError for a constant count outside 0 .. bits-1."""
    check_bits("shift", a.dtype, b.dtype)
    count = int(b.value) if isinstance(b, Const) else None
    check_shift_count(count, a.dtype)
    if isinstance(a, Const) and count is not None:
        value = int(a.value)
        return const(value << count if kind is ShiftLeft else value >> count, a.type)
    return a if count == 0 else kind(a, b)


def power(a: Expr, b: Expr) -> Expr:
    """a to the power b, of floats."""
    check_same("pow", a.dtype, b.dtype)
    check_function("pow", a.dtype)
    return Call(POW, (a, b))


def magnitude(a: Expr) -> Expr:
    """|a|; of the smallest signed integer, which has none, that integer itself."""
    check_numbers("abs", a.dtype, a.dtype)
    if a.dtype.is_float:
        return Call(ABS, (a,))
    return a if a.dtype.kind is TypeKind.UINT else Max(a, sub(const(0, a.dtype), a))


def compare(kind: type[Compare], a: Expr, b: Expr) -> Expr:
    """The comparison `kind` of two values of one type; constants fold."""
    check_same("compare", a.dtype, b.dtype)
    check_computable("compare", a.dtype)
    if isinstance(a, Const) and isinstance(b, Const):
        return const(_COMPARE[kind](a.value, b.value), BOOL)
    return kind(a, b)


_Holds = Callable[[Number, Number], bool]
_COMPARE: dict[type[Compare], _Holds] = {EQ: operator.eq, NE: operator.ne, LT: operator.lt}
_COMPARE[LE] = operator.le

TRUE = Const(True, BOOL)
FALSE = Const(False, BOOL)


def index(value: int) -> Const:
    """`value` as an int64 constant, the type of loop variables and indices."""
    return Const(value, INT64)
