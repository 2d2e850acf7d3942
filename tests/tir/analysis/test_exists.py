"""tir/analysis/exists.py: what is left of conditions that need hold in some iteration of loops."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.tir.analysis.exists import TRIED, in_some_iteration
from tilewright.tir.conditions import all_of
from tilewright.tir.expr import EQ, FALSE, Expr, Var, compare, index
from tilewright.tir.stmt import NOTHING, For, ForKind
from tilewright.tir.text.printer import print_expr

from ..expressions import value

X, K, L, M = (Var(name) for name in "iklm")
LOOPS = [For(var, 4, ForKind.SERIAL, NOTHING) for var in (K, L, M)]


def text(conditions: list[Expr], loops: list[For] = LOOPS) -> str | None:
    found = in_some_iteration(conditions, loops)
    return None if found is None else print_expr(all_of(*found))


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([X < 3], "i < 3"),
        ([X + K < 5, K < 3], "i < 5"),
        ([compare(EQ, K * 4 + L, index(9)), K < 3], "True"),  # the digits of 9
        ([compare(EQ, K * 4 + L, index(9)), X + K < 3], "i < 1"),
        ([compare(EQ, K * 3 + L * 2, index(11))], "True"),  # no digits: tried
        ([compare(EQ, K * 3 + L * 3, index(11))], "False"),
        ([K < L, L < M], "True"),
        ([K < L, L < M, M < 2, X < 3], "False"),
        ([compare(EQ, (K + L) // 2, index(2)), L % 2 < 1], "True"),
        ([K < L, L < X], None),
    ],
    ids=lambda item: "" if item is None or isinstance(item, str) else print_expr(all_of(*item)),
)
def test_what_remains(conditions: list[Expr], expected: str | None) -> None:
    assert text(conditions) == expected


def test_what_would_take_too_many_iterations_is_left_open() -> None:
    many = [For(var, TRIED, ForKind.SERIAL, NOTHING) for var in (K, L)]
    odd = compare(EQ, K * 2 + L * 2, index(2 * TRIED + 1))
    assert text([odd], many) is None
    assert text([compare(EQ, K, index(TRIED))], many) == "False"


coefficients = st.tuples(*(st.integers(-4, 4),) * 4, st.integers(-6, 12))
conditions = st.lists(
    st.tuples(coefficients, st.booleans()).map(
        lambda drawn: (
            compare(EQ, _form(drawn[0]), index(drawn[0][4]))
            if drawn[1]
            else _form(drawn[0]) < drawn[0][4]
        )
    ),
    max_size=3,
)


def _form(factors: tuple[int, ...]) -> Expr:
    return X * factors[0] + K * factors[1] + L * factors[2] + M * factors[3]


@given(conditions)
def test_what_remains_holds_exactly_where_some_iteration_does(wanted: list[Expr]) -> None:
    found = in_some_iteration(wanted, LOOPS)
    if found is None:
        return
    for i in range(4):
        met = any(
            value(all_of(*wanted), {X: i, K: k, L: last, M: m})
            for k, last, m in itertools.product(range(4), repeat=3)
        )
        assert bool(value(all_of(*found), {X: i})) is met


def test_a_condition_that_never_holds_is_false() -> None:
    assert in_some_iteration([FALSE], LOOPS) == [FALSE]
