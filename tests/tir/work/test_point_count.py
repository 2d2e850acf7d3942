"""Points that satisfy a condition beside the same points one by one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.tir.expr import Expr, Var
from tilewright.tir.reference.array_expr import evaluate_expr
from tilewright.tir.stmt import IterKind, IterVar, iter_var
from tilewright.tir.te import te
from tilewright.tir.work import point_count
from tilewright.tir.work.point_count import count_points

X, Y, Z = (Var(name) for name in "xyz")
sums = st.builds(
    lambda a, b, c, n: X * a + Y * b + Z * c + n,
    *[st.integers(-3, 3)] * 3,
    st.integers(-12, 12),
)
parts = st.one_of(
    st.builds(lambda a, b: a < b, sums, sums),
    st.builds(lambda a, b: a <= b, sums, sums),
    st.builds(lambda a, b: te.eq(a % 3, b % 2), sums, sums),
)
conditions = st.lists(parts, min_size=1, max_size=3).map(lambda found: te.all_of(*found))


def axes(*extents: int) -> list[IterVar]:
    pairs = zip((X, Y, Z), extents, strict=False)
    return [iter_var(var, extent, IterKind.SPATIAL) for var, extent in pairs]


@given(conditions, st.tuples(*[st.integers(1, 6)] * 3))
def test_the_count_is_that_of_the_points_one_by_one(
    condition: Expr, extents: tuple[int, ...]
) -> None:
    points = itertools.product(*map(range, extents))
    held = sum(
        bool(evaluate_expr(condition, dict(zip((X, Y, Z), map(np.array, at), strict=True))))
        for at in points
    )
    assert count_points(condition, axes(*extents)) == held


def test_a_triangle_of_billions_of_points_is_counted_row_by_row() -> None:
    assert count_points(X <= Y, axes(100_000, 100_000)) == 100_000 * 100_001 // 2
    assert count_points(te.all_of(X < 7, Y >= X * 2), axes(3_000_000_000, 10)) == 30
    assert count_points(X * 2 < 1_000_001, axes(3_000_000_000)) == 500_001


def test_beyond_the_budget_all_points_count(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = te.eq((X + Y) % 2, 1)
    assert count_points(odd, axes(10, 10)) == 50
    monkeypatch.setattr(point_count, "MOST_POINTS", 99)
    assert count_points(odd, axes(10, 10)) == 100
