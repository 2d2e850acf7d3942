"""How addresses move from lane to lane, against counting them out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.codegen.isa.selection import power_of_two
from tilewright.codegen.lanes import access, address, linear_in, narrow, settle
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.dtype import FLOAT32, INT32, INT64
from tilewright.tir.expr import (
    Add,
    Cast,
    Const,
    Expr,
    FloorDiv,
    FloorMod,
    Max,
    Min,
    Mul,
    Var,
    const,
    index,
)
from tilewright.tir.lowered import Broadcast, Ramp
from tilewright.tir.visit import substitute, walk

ROW, LANE = Var("i"), Var("lane")
LANES = 8


def evaluate(expr: Expr, lane: int, i: int) -> int:
    """The value of an integer expression; of one lane where it is a vector."""
    match expr:
        case Const():
            return int(expr.value)
        case Var():
            return {ROW: i, LANE: lane}[expr]
        case Ramp():
            return evaluate(expr.base, lane, i) + expr.stride * lane
        case Add():
            return evaluate(expr.a, lane, i) + evaluate(expr.b, lane, i)
        case Mul():
            return evaluate(expr.a, lane, i) * evaluate(expr.b, lane, i)
        case FloorDiv():
            return evaluate(expr.a, lane, i) // evaluate(expr.b, lane, i)
        case FloorMod():
            return evaluate(expr.a, lane, i) % evaluate(expr.b, lane, i)
    children = [evaluate(c, lane, i) for c in expr.children() if isinstance(c, Expr)]
    return children[0] - children[1] if type(expr).__name__ == "Sub" else children[0]


def sums() -> st.SearchStrategy[Expr]:
    """i*a + lane*b + c, below quotients and remainders."""
    linear = st.builds(
        lambda a, b, c: Add(Add(Mul(ROW, index(a)), Mul(LANE, index(b))), index(c)),
        st.integers(0, 24),
        st.integers(0, 4),
        st.integers(0, 24),
    )
    divided = st.builds(
        lambda kind, e, n: kind(e, index(n)),
        st.sampled_from([FloorDiv, FloorMod]),
        linear,
        st.sampled_from([2, 3, 4, 7, 8, 16, 24, 55]),
    )
    return st.one_of(linear, divided, st.builds(Add, divided, linear))


VALUE = Var("value")


def lanes_of(expr: Expr, vectors: dict[Var, Expr]) -> Expr | None:
    return narrow(expr, LANE, LANES, {}, vectors)


def test_a_clamped_value_is_narrowed_after_the_clamp_unless_it_was_widened() -> None:
    clamp = Max(Min(VALUE, index(49)), index(0))
    long = Load(Buffer("N", INT64, (64,)), (Ramp(index(0), 1, LANES),))
    short = Load(Buffer("M", INT32, (64,)), (Ramp(index(0), 1, LANES),))
    wide = Broadcast(index(49), LANES), Broadcast(index(0), LANES)
    assert lanes_of(clamp, {VALUE: long}) == Cast(
        Max(Min(long, wide[0]), wide[1]), INT32.with_lanes(LANES)
    )
    ends = (Broadcast(const(number, INT32), LANES) for number in (49, 0))
    widened = Cast(short, INT64.with_lanes(LANES))
    assert lanes_of(clamp, {VALUE: widened}) == Max(Min(short, next(ends)), next(ends))


def test_a_clamp_that_int32_cannot_hold_is_not_narrowed() -> None:
    long = Load(Buffer("N", INT64, (64,)), (Ramp(index(0), 1, LANES),))
    assert lanes_of(Max(Min(VALUE, index((1 << 31) - 1)), index(0)), {VALUE: long}) is not None
    assert lanes_of(Max(Min(VALUE, index(1 << 31)), index(0)), {VALUE: long}) is None
    mixed = Max(Min(VALUE, FloorDiv(LANE, index(3))), index(0))  # its operand is no loaded value
    assert lanes_of(mixed, {VALUE: long}) is None


@given(sums())
def test_settled_quotients_have_the_same_value_in_every_lane(expr: Expr) -> None:
    settled = settle(expr, LANE, LANES)
    for i in range(5):
        for lane in range(LANES):
            assert evaluate(settled, lane, i) == evaluate(expr, lane, i)


def test_a_quotient_of_exactly_all_lanes_is_settled() -> None:
    row = Add(Mul(ROW, index(LANES)), LANE)
    assert settle(FloorDiv(row, index(LANES)), LANE, LANES) == FloorDiv(
        Mul(ROW, index(LANES)), index(LANES)
    )


def test_a_quotient_of_a_quotient_that_the_lane_changes_is_left_alone() -> None:
    twice = FloorDiv(Add(FloorDiv(LANE, index(2)), ROW), index(3))
    assert settle(twice, LANE, LANES) == twice


@given(sums(), sums())
def test_an_address_is_base_and_stride_or_any_offset(row: Expr, column: Expr) -> None:
    buffer = Buffer("A", FLOAT32, (1000, 100))
    found = address(buffer, (row, column), LANE, LANES, {ROW: (0, 4)})
    for i in range(5):
        for lane in range(LANES):
            exact = evaluate(row, lane, i) * 100 + evaluate(column, lane, i)
            assert evaluate(found.offset, lane, i) == exact
            if found.stride is not None:
                assert evaluate(found.base, 0, i) + found.stride * lane == exact


@given(sums())
def test_narrow_has_the_value_of_each_lane(expr: Expr) -> None:
    vector = narrow(expr, LANE, LANES, {ROW: (0, 4)})
    assert vector is not None
    assert str(vector.dtype) == f"int32x{LANES}"
    for i in range(5):
        for lane in range(LANES):
            assert evaluate(vector, lane, i) == evaluate(expr, lane, i)


@pytest.mark.parametrize("divisor", [3, 5, 6, 7, 9, 24, 55, 100, 641, 1000])
@pytest.mark.parametrize("kind", [FloorDiv, FloorMod])
def test_a_quotient_by_a_number_is_a_product_and_a_shift(
    kind: type[FloorDiv | FloorMod], divisor: int
) -> None:
    rows = 4096 // LANES
    place = Add(Mul(ROW, index(LANES)), LANE)
    found = narrow(kind(place, index(divisor)), LANE, LANES, {ROW: (0, rows - 1)})
    assert found is not None
    divided = [node.b for node in walk(found) if isinstance(node, FloorDiv | FloorMod)]
    assert [power_of_two(number) is not None for number in divided] == [True]
    for i in range(rows):
        for lane in range(LANES):
            exact = i * LANES + lane
            expected = exact // divisor if kind is FloorDiv else exact % divisor
            assert evaluate(found, lane, i) == expected


@pytest.mark.parametrize(
    ("low", "high", "divisor"),
    [(-1, 100, 3), (0, 1 << 30, 7), (0, 69990, 40000), (0, 100, 8)],
    ids=str,
)
def test_other_quotients_stay_quotients(low: int, high: int, divisor: int) -> None:
    found = narrow(FloorDiv(Add(ROW, LANE), index(divisor)), LANE, LANES, {ROW: (low, high)})
    assert isinstance(found, FloorDiv)
    assert found.b == Broadcast(const(divisor, INT32), LANES)


def test_rows_and_columns_of_a_matrix() -> None:
    buffer = Buffer("A", FLOAT32, (10, 100))
    along = access(buffer, (ROW, Ramp(index(16), 1, LANES)), {ROW: (0, 9)})
    across = access(buffer, (Ramp(index(0), 1, LANES), ROW), {ROW: (0, 99)})
    assert (along.stride, across.stride) == (1, 100)
    assert linear_in(substitute(along.offset, {along.lane: LANE}), LANE) == (along.base, 1)
