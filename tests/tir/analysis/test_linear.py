"""tir/analysis/linear.py: linear forms, and how a fused loop's parts meet again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tilewright.tir.analysis.linear import Linear, combine, expression, interval, linear, rejoin
from tilewright.tir.dtype import INT64
from tilewright.tir.expr import Const, Expr, FloorDiv, FloorMod, Mul, Var
from tilewright.tir.text.printer import print_expr

from ..expressions import VARIABLES, integers, points, value

X, Y, Z = VARIABLES
BOX = dict.fromkeys(VARIABLES, (-50, 50))


def evaluated(form: Linear, at: dict[Var, int]) -> int:
    return form.constant + sum(c * value(atom, at) for atom, c in form.terms)


@given(integers, st.data())
def test_a_linear_form_has_the_value_of_its_expression(expr: Expr, data: st.DataObject) -> None:
    at = data.draw(points(BOX))
    form = linear(expr)
    assert evaluated(form, at) == value(expr, at)
    assert value(expression(form), at) == value(expr, at)
    assert evaluated(rejoin(form), at) == value(expr, at)


@given(integers)
def test_forms_hold_no_zero_no_constant_and_no_sum_as_an_atom(expr: Expr) -> None:
    for atom, coefficient in linear(expr).terms:
        assert coefficient != 0
        assert linear(atom).terms == ((atom, 1),)


def test_two_ways_to_write_a_sum_have_one_form() -> None:
    one = linear(X * 3 + (Y - 2) * 4)
    two = linear((Y * 2 + X) * 2 + X - 8)
    assert (one - two) == Linear((), 0)
    assert dict(one.terms) == {X: 3, Y: 4}
    assert one.constant == -8


def test_forms_add_scale_and_lose_a_term() -> None:
    form = combine([(X, 2), (Y, 1), (X, -2)], 7)
    assert form == Linear(((Y, 1),), 7)
    assert (form + form) == form.scaled(2)
    assert form.scaled(0) == Linear((), 0)
    assert form.coefficient(Y) == 1
    assert form.coefficient(X) == 0
    assert form.without(Y) == Linear((), 7)


def test_a_product_of_variables_is_an_atom() -> None:
    product = Mul(X, Y)
    assert linear(product + product).terms == ((product, 2),)


def test_the_parts_of_a_fused_loop_meet_again() -> None:
    fused = FloorDiv(X, Const(6, INT64)) * 12 + FloorMod(X, Const(6, INT64)) * 2
    assert rejoin(linear(fused)) == linear(X * 2)
    nested = X // 12 * 12 + X // 3 % 4 * 3 + X % 3
    assert rejoin(linear(nested)) == linear(X)
    shifted = (X + 8) // 63 * 63 + ((X + 1) // 7 + 1) % 9 * 7 + (X + 1) % 7
    assert rejoin(linear(shifted)) == linear(X + 8)
    assert rejoin(linear(X // 6 * 5 + X % 6)) == linear(X // 6 * 5 + X % 6)


def test_expressions_are_written_in_order_with_the_constant_last() -> None:
    assert print_expr(expression(Linear(((X, 2), (Y, -1)), -3))) == "x * 2 - y - 3"
    assert print_expr(expression(Linear(((X, -2),), 3))) == "x * (-2) + 3"
    assert print_expr(expression(Linear((), 5))) == "5"


def test_the_interval_of_a_form_comes_from_those_of_its_atoms() -> None:
    form = linear(X * 2 - Y * 3 + 1)
    assert interval(form, {X: (0, 4), Y: (-1, 2)}) == (-5, 12)
    assert interval(form, {X: (None, 4), Y: (-1, None)}) == (None, 12)
