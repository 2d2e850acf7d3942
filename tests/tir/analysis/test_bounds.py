"""tir/analysis/bounds.py: the interval contains the value, and is tight where it should be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.tir.analysis.bounds import bounds
from tilewright.tir.analysis.linear import Interval
from tilewright.tir.dtype import INT64
from tilewright.tir.expr import Cast, Const, Expr, FloorDiv, FloorMod, Max, Min, Mul, Var
from tilewright.tir.lowered import Ramp

from ..expressions import boxes, integers, points, value

X, Y = Var("x"), Var("y")


@given(integers, boxes(), st.data())
def test_bounds_contain_the_value(
    expr: Expr, ranges: dict[Var, tuple[int, int]], data: st.DataObject
) -> None:
    at = data.draw(points(ranges))
    low, high = bounds(expr, ranges)
    assert low is None or low <= value(expr, at)
    assert high is None or value(expr, at) <= high


@given(integers, boxes(), st.data())
def test_bounds_with_a_variable_unbounded_contain_the_value(
    expr: Expr, ranges: dict[Var, tuple[int, int]], data: st.DataObject
) -> None:
    at = data.draw(points(ranges))
    half = {var: (low, None) for var, (low, _) in ranges.items()}
    low, high = bounds(expr, half)
    assert low is None or low <= value(expr, at)
    assert high is None or value(expr, at) <= high


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (X * 4 + Y, (0, 39)),
        (X - X, (0, 0)),
        (X * -2 + 1, (-17, 1)),
        ((X * 4 + Y) // 4, (0, 9)),
        (X % 3, (0, 2)),
        ((X + 90) % 100, (90, 99)),
        (Min(X, Y), (0, 3)),
        (Max(X, Y), (0, 9)),
        (Mul(X, Y), (0, 27)),
        (Ramp(X, -1, 4), (-3, 9)),
        (FloorDiv(X, Const(-2, INT64)), (-5, 0)),
        (FloorDiv(X + 3, Const(-3, INT64)), (-4, -1)),
        (FloorDiv(X, Const(-1, INT64)), (None, None)),
        (FloorMod(X, Const(-7, INT64)), (-6, 0)),
        (FloorMod(X + 8, Const(-20, INT64)), (-12, -3)),
        (FloorMod(Const(3, INT64), Const(-7, INT64)), (-4, -4)),
        (Cast(X, INT64), (None, None)),
        (X & 6, (0, 6)),
        (6 & (X - 20), (0, 6)),
        (X & -2, (None, None)),
        ((X * 4 - 3) >> 2, (-1, 8)),
    ],
    ids=str,
)
def test_bounds_are_as_tight_as_the_form_allows(expr: Expr, expected: Interval) -> None:
    assert bounds(expr, {X: (0, 9), Y: (0, 3)}) == expected


def test_nothing_is_known_of_a_variable_without_a_range() -> None:
    assert bounds(X + 1, {}) == (None, None)
    assert bounds(X * 2, {X: (None, 5)}) == (None, 10)
    assert bounds(X * -2, {X: (None, 5)}) == (-10, None)
    assert bounds(Min(X, Const(3, INT64)), {}) == (None, 3)
    assert bounds(X % 8, {}) == (0, 7)
