"""schedule/proof/lowered/lanes.py: an expression in one lane, with what names stand for."""

from __future__ import annotations

from tilewright.schedule.proof.lowered.lanes import in_lane, size_in_lane
from tilewright.tir.expr import EQ, Add, Let, Var, const
from tilewright.tir.text.printer import print_expr


def test_a_name_within_an_expression_is_what_it_stands_for() -> None:
    """Also one that has been met before, as in a condition that is a part of a later one."""
    a, b, x = Var("a"), Var("b"), Var("x")
    one, two = const(1, a.dtype), const(2, a.dtype)
    inner = Let(a, Add(x, one), Let(b, Add(a, two), EQ(b, a)))
    expected = print_expr(EQ(Add(Add(x, one), two), Add(x, one)))
    assert print_expr(in_lane(inner, {})) == expected
    assert print_expr(in_lane(inner, {a: Add(x, one)})) == expected


def test_a_size_counts_each_use_of_a_name() -> None:
    a, b, x = Var("a"), Var("b"), Var("x")
    one = const(1, a.dtype)
    inner = Let(a, Add(x, one), Let(b, Add(a, a), EQ(b, b)))
    assert size_in_lane(inner, {}) == 1 + 2 * (1 + 2 * 3)
    assert size_in_lane(inner, {x: Add(one, one)}) == 1 + 2 * (1 + 2 * 5)
    assert size_in_lane(EQ(a, x), {a: Add(x, one)}) == 1 + 3 + 1
