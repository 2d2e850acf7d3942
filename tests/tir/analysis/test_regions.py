"""tir/analysis/regions.py: the box that accesses touch contains them; separate boxes are told
apart.
"""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.tir.analysis.regions import Digit, Span, digit_of, disjoint, region, span
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.dtype import INT64
from tilewright.tir.expr import Const, Expr, Min, Mul, Var, index
from tilewright.tir.text.printer import print_expr

from ..expressions import VARIABLES, integers, value

X, Y, Z = VARIABLES
STILL, MOVING = {X: (0, 5)}, {Y: (0, 3), Z: (0, 2)}


DATA = Buffer("N", INT64, (6,))


def shown(item: Span) -> str:
    return f"{print_expr(item.low)} + {item.extent}"


@pytest.mark.parametrize(
    ("indices", "expected"),
    [
        ([X * 4 + Y], "x * 4 + 4"),
        ([X * 2 + Y, X * 2 + Y + 3], "x * 2 + 7"),
        ([X + Y * 2 + Z - 1], "x - 1 + 9"),
        ([Y], "0 + 4"),
        ([X], "x + 1"),
        ([X * 4 + Y, Y], "0 + 100"),
        ([Min(X, Y)], "0 + 100"),
        ([Mul(X, Y)], "0 + 100"),
        ([Y * 40], "0 + 100"),
        ([X // 2 + Y], "x // 2 + 4"),
        ([Min(Load(DATA, (X,)), index(9)) + Y], "0 + 100"),  # data may be anywhere
    ],
    ids=lambda item: item if isinstance(item, str) else "",
)
def test_the_span_is_a_still_part_and_an_extent(indices: list[Expr], expected: str) -> None:
    assert shown(span(indices, MOVING, STILL, 100)) == expected


@given(st.lists(integers, min_size=1, max_size=3), st.data())
def test_the_span_contains_every_index_inside_the_dimension(
    indices: list[Expr], data: st.DataObject
) -> None:
    found = span(indices, MOVING, STILL, 40)
    at = {v: data.draw(st.integers(*r)) for v, r in {**STILL, **MOVING}.items()}
    low = value(found.low, at)
    for item in indices:
        position = value(item, at)
        if 0 <= position < 40:
            assert low <= position < low + found.extent


def test_what_holds_at_an_access_shortens_the_span() -> None:
    (tail,) = region([(X * 4 + Y,)], MOVING, {X: (5, 5)}, (100,), [X * 4 + Y < 22])
    assert shown(tail) == "20 + 2"
    (short,) = region([(X * 4 + Y,)], MOVING, STILL, (100,), [Y < 2])
    assert shown(short) == "x * 4 + 2"
    (other,) = region([(X * 4 + Y + Z,)], MOVING, STILL, (100,), [Y < 2])
    assert shown(other) == "x * 4 + 6"


def test_a_region_has_one_span_for_each_dimension() -> None:
    found = region([(X, Y), (X, Y + 1)], MOVING, STILL, (6, 8))
    assert [shown(item) for item in found] == ["x + 1", "0 + 5"]


LOOPS = [(X, 6), (Y, 4)]


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([(X, 1), (Y, 1)], True),
        ([(X * 4 + Y, 1)], True),
        ([(X * 4 + Y, 2)], False),
        ([(X * 3 + Y, 1)], False),
        ([(X * 4, 4), (Y * 2, 2)], True),
        ([(X * 4, 5), (Y, 1)], False),
        ([(X, 1)], False),
        ([(X + Y, 1), (Y + X, 1)], False),
        ([(X + Y, 1), (Y, 1)], True),
        ([(X // 3, 1), (X % 3, 1), (Y, 1)], True),
        ([(X // 3, 1), (X % 3, 2), (Y, 1)], False),
        ([(X // 3, 1), (X % 2, 1), (Y, 1)], False),
        ([(X // 4, 1), (X // 2 % 2, 1), (X % 2 * 4 + Y, 1)], True),
        ([(Min(X, Y), 1), (X, 1), (Y, 1)], True),
        ([(X * -1, 1), (Y, 1)], False),
        ([(Z, 1), (X, 1), (Y, 1)], True),
    ],
)
def test_boxes_are_told_apart_by_their_digits(
    spans: list[tuple[Expr, int]], expected: bool
) -> None:
    assert disjoint([Span(low, extent) for low, extent in spans], LOOPS) is expected


forms = st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 3)).map(
    lambda c: Mul(X, Const(c[0], INT64)) + Mul(Y, Const(c[1], INT64)) + c[2]
)
digits = st.builds(lambda v, w, m: v // w % m, st.sampled_from((X, Y)), *(st.integers(1, 4),) * 2)


@given(st.lists(st.tuples(st.one_of(forms, digits), st.integers(1, 4)), min_size=1, max_size=3))
def test_boxes_that_are_called_disjoint_share_no_element(spans: list[tuple[Expr, int]]) -> None:
    if not disjoint([Span(low, extent) for low, extent in spans], LOOPS):
        return
    seen: set[tuple[int, ...]] = set()
    for x, y in itertools.product(range(6), range(4)):
        lows = [value(low, {X: x, Y: y}) for low, _ in spans]
        ranges = (range(low, low + extent) for low, (_, extent) in zip(lows, spans, strict=True))
        cells = set(itertools.product(*ranges))
        assert not cells & seen
        seen |= cells


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (X, (1, None)),
        (X // 4, (4, None)),
        (X % 4, (1, 4)),
        (X // 4 % 3, (4, 3)),
        (X // 4 // 2, (8, None)),
        (X % 8 // 2, (2, 4)),
        (X % 8 % 4, (1, 4)),
        (X % 8 // 3, None),
        (X + 1, None),
        (index(3), None),
    ],
)
def test_a_digit_is_a_quotient_and_a_remainder(
    expr: Expr, expected: tuple[int, int | None] | None
) -> None:
    found = digit_of(expr)
    assert found == (None if expected is None else Digit(X, *expected))


def test_a_loop_of_one_iteration_needs_no_digit() -> None:
    assert disjoint([Span(X, 1)], [(X, 6), (Var("once"), 1)])
