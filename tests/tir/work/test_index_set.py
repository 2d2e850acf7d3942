"""Sets of indices beside the same sets listed element by element."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.tir.expr import Expr, Var
from tilewright.tir.reference.array_expr import evaluate_expr
from tilewright.tir.te import te
from tilewright.tir.work import index_set as sets
from tilewright.tir.work.index_set import IndexSet, index_set, union_size

HUGE = 2_400_000_000
X, Y, Z = (Var(name) for name in "xyz")

numbers = st.integers(-6, 6)
divisors = st.integers(1, 7)


def indices(variables: tuple[Var, ...] = (X, Y, Z)) -> st.SearchStrategy[Expr]:
    """Sums of multiples of variables, their quotients and remainders."""
    atoms = st.sampled_from(variables)
    terms = st.builds(lambda v, n: v * n, atoms, numbers)
    sums = st.builds(lambda a, b, n: a + b + n, terms, terms, numbers)
    parts = st.one_of(sums, st.builds(lambda a, d: a // d, sums, divisors))
    return st.one_of(parts, st.builds(lambda a, d, n: (a % d) * n, parts, divisors, numbers))


def listed(index: Expr, extents: dict[Var, int], size: int) -> list[int]:
    """The values of an index, point by point."""
    values = set()
    for point in itertools.product(*map(range, extents.values())):
        at = {var: np.array(place) for var, place in zip(extents, point, strict=True)}
        values.add(int(evaluate_expr(index, at)))
    return sorted(value for value in values if 0 <= value < size)


@given(indices(), st.tuples(*[st.integers(1, 6)] * 3), st.integers(1, 40))
def test_a_set_holds_the_values_of_its_index_in_order(
    index: Expr, counts: tuple[int, ...], size: int
) -> None:
    extents = dict(zip((X, Y, Z), counts, strict=True))
    assert list(index_set(index, extents, size)) == listed(index, extents, size)


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (X, range(HUGE)),
        (X * 2 + 1, range(1, HUGE, 2)),
        (X - 5, range(HUGE - 5)),
        (HUGE - 1 - X, range(HUGE)),
        (X // 3, range(HUGE // 3)),
        (X % 1000 * 3, range(0, 2998, 3)),
        (X % 1000 + X // 1000, range(HUGE)),  # two terms that move together: everything
        (X * 3 + Y, range(HUGE)),
        (X * 5 + Y, range(HUGE)),  # with gaps, at more points than are listed: everything
    ],
)
def test_a_set_of_billions_is_a_progression(index: Expr, expected: range) -> None:
    assert index_set(index, {X: HUGE, Y: 3}, HUGE) == expected


def test_an_index_without_points_reaches_nothing() -> None:
    assert len(index_set(X + Y, {X: 0, Y: 3}, 10)) == 0


subsets = st.one_of(
    st.builds(range, st.integers(0, 12), st.integers(0, 13), st.integers(1, 5)),
    st.sets(st.integers(0, 11), min_size=1).map(lambda s: np.array(sorted(s), np.int64)),
).map(lambda s: range(*s.indices(12)) if isinstance(s, slice) else s)


def inside(values: IndexSet) -> IndexSet:
    return values[: sum(value < 12 for value in values)]


@given(st.lists(st.tuples(subsets.map(inside), subsets.map(inside)), max_size=4))
def test_the_size_of_a_union_is_that_of_the_marked_elements(
    boxes: list[tuple[IndexSet, IndexSet]],
) -> None:
    marked = {at for box in boxes for at in itertools.product(*(map(int, s) for s in box))}
    assert union_size(boxes, (12, 12)) == len(marked)


def test_the_union_of_boxes_of_billions_is_exact() -> None:
    evens, odds = range(0, HUGE, 2), range(1, HUGE, 2)
    assert union_size([(evens,), (odds,)], (HUGE,)) == HUGE
    assert union_size([(evens,), (range(0, HUGE, 3),)], (HUGE,)) == HUGE // 2 + HUGE // 6
    assert union_size([(range(HUGE - 1),), (range(1, HUGE),)], (HUGE,)) == HUGE
    some = np.array([0, 1, 2, HUGE - 1])
    assert union_size([(evens,), (some,)], (HUGE,)) == HUGE // 2 + 2


def test_progressions_that_seldom_meet_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    shape, steps = (10_000_000,), (1009, 1013, 1019)
    boxes = [(range(0, shape[0], step),) for step in steps]
    assert math.lcm(*steps) > shape[0]
    assert union_size(boxes, shape) == len(set().union(*(box[0] for box in boxes)))
    monkeypatch.setattr(sets, "MOST_LISTED", 100)
    assert union_size(boxes, shape) == sum(len(box[0]) for box in boxes)


def test_data_reaches_as_many_elements_as_it_has_values() -> None:
    n = te.placeholder((40,), "int64", name="N")
    assert index_set(n[X], {X: 40}, 10) == range(10)
    assert index_set(n[X], {X: 4}, 10) == range(4)
    assert index_set(n[X], {X: HUGE}, HUGE + 1) == range(HUGE)
