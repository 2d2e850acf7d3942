"""Conditions made of others leave out what is true, and come apart into the same ones."""

from __future__ import annotations

from tilewright.tir.conditions import all_of, any_of, conjuncts
from tilewright.tir.expr import FALSE, TRUE, Var
from tilewright.tir.text.printer import print_expr

X, J = Var("i"), Var("j")


def test_conjunctions_leave_out_what_is_true() -> None:
    a, b = X < 3, J < 4
    assert all_of() == TRUE
    assert all_of(TRUE, a, TRUE) is a
    assert all_of(a, a) is a
    assert conjuncts(all_of(a, b, J < 2)) == (a, b, J < 2)
    assert conjuncts(TRUE) == ()
    assert any_of() == FALSE
    assert any_of(FALSE, a) is a
    assert print_expr(any_of(a, b)) == "i < 3 or j < 4"
