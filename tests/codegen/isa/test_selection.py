"""Which operation of the tables an expression is."""

from __future__ import annotations

import pytest

from tilewright.codegen.isa.selection import (
    is_lane_count,
    may_lose_zero,
    operation,
    power_of_two,
    shift_count,
)
from tilewright.tir.dtype import FLOAT32, FLOAT64, INT32, INT64
from tilewright.tir.expr import (
    LT,
    BitXor,
    Call,
    Cast,
    Compare,
    Div,
    Expr,
    Mul,
    Select,
    ShiftLeft,
    ShiftRight,
    Sub,
    Var,
    const,
    index,
)
from tilewright.tir.intrinsics import ABS, SQRT
from tilewright.tir.lowered import Broadcast, Fma, Ramp

X = Var("x", FLOAT32.with_lanes(8))
N = Var("n", INT32.with_lanes(8))
EIGHT = Broadcast(const(8, INT32), 8)


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (Fma(X, X, X), ("fma", X.dtype)),
        (Mul(N, EIGHT), ("shift_left", N.dtype)),
        (Mul(EIGHT, N), ("mul", N.dtype)),
        (Mul(X, X), ("mul", X.dtype)),
        (Mul(X, Broadcast(const(-1.0, FLOAT32), 8)), ("neg", X.dtype)),
        (Mul(const(-1.0, FLOAT32), Var("y", FLOAT32)), ("neg", FLOAT32)),
        (Div(X, Broadcast(const(-1.0, FLOAT32), 8)), ("neg", X.dtype)),
        (Sub(Broadcast(const(-0.0, FLOAT32), 8), X), ("neg", X.dtype)),
        (Sub(Broadcast(const(0.0, FLOAT32), 8), X), ("sub", X.dtype)),
        (Mul(N, Broadcast(const(-1, INT32), 8)), ("mul", N.dtype)),
        (BitXor(N, EIGHT), ("xor", N.dtype)),
        (ShiftRight(N, EIGHT), ("shift_right", N.dtype)),
        (ShiftLeft(EIGHT, N), ("shift_left_by", N.dtype)),
        (Cast(N, X.dtype), ("cast_float32", N.dtype)),
        (LT(X, X), ("lt", X.dtype)),
    ],
)
def test_the_name_and_the_type_of_an_operation(expr: Expr, expected: tuple[str, object]) -> None:
    assert operation(expr) == expected


@pytest.mark.parametrize(("value", "exponent"), [(1, 0), (8, 3), (12, None), (0, None), (-8, None)])
def test_powers_of_two(value: int, exponent: int | None) -> None:
    assert power_of_two(index(value)) == exponent
    assert power_of_two(Broadcast(const(value, INT32), 4)) == exponent


@pytest.mark.parametrize(("value", "count"), [(0, 0), (31, 31), (32, None), (-1, None)])
def test_the_count_of_a_shift_is_known_where_it_leaves_bits(value: int, count: int | None) -> None:
    assert shift_count(const(value, INT32)) == count
    assert shift_count(Broadcast(const(value, INT32), 4)) == count
    assert shift_count(Cast(const(value, INT64), INT32)) == count
    assert shift_count(N) is None


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (LT(Ramp(index(3), 1, 8), Broadcast(index(5), 8)), True),
        (LT(Broadcast(index(5), 8), Broadcast(index(5), 8)), False),
        (LT(N, EIGHT), False),
    ],
)
def test_a_lane_count_compares_a_ramp(expr: Compare, expected: bool) -> None:
    assert is_lane_count(expr) == expected


ONE_X, ONE_N = Var("x", FLOAT32), Var("n", INT32)
ZERO, MINUS_ONE = const(0.0, FLOAT32), const(-1.0, FLOAT32)


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (Sub(ZERO, Cast(ONE_N, FLOAT32)), True),
        (Sub(Cast(const(0, INT32), FLOAT32), Cast(ONE_N, FLOAT32)), True),
        (Sub(ZERO, Call(ABS, (ONE_X,))), True),
        (Sub(ZERO, Select(LT(ONE_X, ZERO), Cast(ONE_N, FLOAT32), MINUS_ONE)), True),
        (Sub(ZERO, Select(LT(ONE_X, ZERO), ONE_X, MINUS_ONE)), False),
        (Sub(ONE_X, Cast(ONE_N, FLOAT32)), False),  # no compiler knows that it is 0
        (Sub(ZERO, ONE_X), False),
        (Sub(ZERO, Cast(Var("d", FLOAT64), FLOAT32)), False),
        (Sub(ZERO, Call(SQRT, (ONE_X,))), False),  # of -0 it is -0
        (Sub(const(0, INT32), Cast(ONE_X, INT32)), False),
    ],
)
def test_a_zero_may_be_lost_where_a_constant_loses_what_is_never_minus_zero(
    expr: Sub, expected: bool
) -> None:
    assert may_lose_zero(expr) == expected
