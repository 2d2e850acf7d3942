"""Which operation of the ISA tables a vector expression is. The vectoriser asks what exists, the
writer what to write.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...tir.buffer import Load
from ...tir.dtype import INT64, DType
from ...tir.expr import (
    EQ,
    LE,
    LT,
    NE,
    Add,
    BitAnd,
    BitOr,
    BitXor,
    Call,
    Cast,
    Compare,
    Const,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    Max,
    Min,
    Mul,
    Select,
    ShiftLeft,
    ShiftRight,
    Sub,
    Var,
)
from ...tir.intrinsics import ABS
from ...tir.lowered import Broadcast, Fma, Ramp, Reinterpret, Shuffle
from ...tir.visit import walk

_NAMES: dict[type[Expr], str] = {
    Add: "add",
    Sub: "sub",
    Mul: "mul",
    Div: "div",
    BitAnd: "and",
    BitOr: "or",
    BitXor: "xor",
    ShiftLeft: "shift_left_by",
    ShiftRight: "shift_right_by",
    Min: "min",
    Max: "max",
    EQ: "eq",
    NE: "ne",
    LT: "lt",
    LE: "le",
    Fma: "fma",
    Select: "blend",
    Broadcast: "broadcast",
    Ramp: "lane_numbers",
}
_SHIFTS: dict[type[Expr], str] = {
    Mul: "shift_left",
    FloorDiv: "shift_right",
    FloorMod: "and",
    ShiftLeft: "shift_left",
    ShiftRight: "shift_right",
}


def operation(expr: Expr) -> tuple[str, DType]:
    """The name of the operation and the type that it is looked up with. Unknown nodes have the name
    of their class.
    """
    match expr:
        case Call():
            return expr.intrinsic.name, expr.dtype
        case Cast():
            return f"cast_{expr.type.scalar}", expr.value.dtype
        case Reinterpret():
            return f"reinterpret_{expr.type.scalar}", expr.value.dtype
        case Shuffle():
            return shuffle_operation(expr.order), expr.dtype
        case Compare():
            return _NAMES[type(expr)], expr.a.dtype
        case Mul() | Div() | Sub() if negated(expr) is not None:
            return "neg", expr.dtype
        case Mul() | FloorDiv() | FloorMod() if power_of_two(expr.b) is not None:
            return _SHIFTS[type(expr)], expr.dtype
        case ShiftLeft() | ShiftRight() if shift_count(expr.b) is not None:
            return _SHIFTS[type(expr)], expr.dtype
    return _NAMES.get(type(expr), type(expr).__name__), expr.dtype


def shuffle_operation(order: Sequence[int]) -> str:
    """The name of the operation that puts a vector together of these lanes of two."""
    return f"shuffle_{'_'.join(map(str, order))}"


def lanes_operation(count: int) -> str:
    """The name of the operation that takes `count` lanes out of a vector."""
    return f"lanes_{count}"


def negated(expr: Expr) -> Expr | None:
    """The float whose sign `expr` turns: x * -1, x / -1, or -0.0 - x; None for what does not.

    gcc makes one instruction of -(a*b + c), which gives the other zero where the sum is 0; so a
    negation is written as what it does to the bits.
    """
    if not expr.dtype.is_float:
        return None
    match expr:
        case Sub(a, b) if _number(a) == 0 and math.copysign(1.0, _number(a)) < 0:
            return b
        case Mul(a, b) | Div(a, b) if _number(b) == -1:
            return a
        case Mul(a, b) if _number(a) == -1:
            return b
    return None


def is_plus_zero(expr: Expr) -> bool:
    """Whether a float is the zero whose bits are all 0."""
    return expr.dtype.is_float and _number(expr) == 0 and math.copysign(1.0, _number(expr)) > 0


def may_lose_zero(expr: Sub) -> bool:
    """Whether a compiler may turn a - b of floats into -b, which is -0 where b is 0: gcc 12 does
    where it finds that a is 0, and knows that b is not -0.
    """
    known = not any(isinstance(node, Load | Var) for node in walk(expr.a))
    return expr.dtype.is_float and known and _is_never_minus_zero(expr.b)


def _is_never_minus_zero(expr: Expr) -> bool:
    """Whether a float is never -0, as its text says: made of an integer, a magnitude, a choice of
    such.
    """
    match expr:
        case Cast(value):
            return not value.dtype.is_float
        case Call():
            return expr.intrinsic is ABS
        case Const(number):
            return math.copysign(1.0, float(number)) > 0 or number != 0
        case Select(_, a, b):
            return _is_never_minus_zero(a) and _is_never_minus_zero(b)
    return False


def _number(expr: Expr) -> float:
    """The constant in all lanes; NaN where there is none."""
    value = expr.value if isinstance(expr, Broadcast) else expr
    return float(value.value) if isinstance(value, Const) else math.nan


def shift_count(expr: Expr) -> int | None:
    """The count of a shift where it is one number, in one lane or in all, that leaves bits."""
    value = expr.value if isinstance(expr, Broadcast) else expr
    kind = value.dtype
    if isinstance(value, Cast):
        value = value.value
    if not isinstance(value, Const) or not 0 <= value.value < kind.bits:
        return None
    return int(value.value)


def power_of_two(expr: Expr) -> int | None:
    """The exponent where `expr` is an integer power of two, in one lane or in all; else None."""
    value = expr.value if isinstance(expr, Broadcast) else expr
    if not isinstance(value, Const) or not value.type.is_integer or value.value <= 0:
        return None
    number = int(value.value)
    return number.bit_length() - 1 if number & (number - 1) == 0 else None


def is_lane_count(expr: Compare) -> bool:
    """Whether the lanes where a comparison of indices holds are known by a count: base + stride *
    lane < limit. Numbers of other types may wrap around from lane to lane.
    """
    sides = (expr.a, expr.b)
    return (
        isinstance(expr, LT | LE)
        and expr.a.dtype.scalar == INT64
        and all(isinstance(side, Ramp | Broadcast) for side in sides)
        and any(isinstance(side, Ramp) for side in sides)
    )
