"""tir/analysis/sums.py: a sum is simplified as a whole, to what its parts would become."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tilewright.tir.analysis.linear import Ranges, total
from tilewright.tir.analysis.linear import linear as form_of
from tilewright.tir.analysis.simplify import simplify
from tilewright.tir.analysis.sums import is_data, simplify_sum
from tilewright.tir.buffer import Buffer
from tilewright.tir.dtype import FLOAT32, INT64
from tilewright.tir.expr import Add, Cast, Expr, Mul, Sub, Var, index
from tilewright.tir.text.printer import print_expr

from ..expressions import VARIABLES, integers, points, value

X, Y, Z = VARIABLES
BOX = dict.fromkeys(VARIABLES, (-9, 9))
A = Buffer("A", FLOAT32, (64,))


def simplified(expr: Add | Sub | Mul, ranges: Ranges) -> Expr:
    return simplify_sum(expr, ranges, lambda part: simplify(part, ranges))


@given(integers, integers, st.sampled_from((Add, Sub, Mul)), points(BOX))
def test_a_sum_keeps_its_value_and_is_found_again_as_it_is_written(
    a: Expr, b: Expr, kind: type[Add | Sub | Mul], at: dict[Var, int]
) -> None:
    once = simplified(kind(a, b), BOX)
    assert value(once, at) == value(kind(a, b), at)
    if isinstance(once, Add | Sub | Mul):
        assert simplified(once, BOX) is once


def test_terms_stand_in_the_order_of_their_first_use_the_constant_last() -> None:
    expr = Add(Sub(Add(Mul(X, index(4)), index(3)), Mul(Y, index(2))), X)
    assert print_expr(simplified(expr, {})) == "x * 5 - y * 2 + 3"


def test_a_term_that_went_comes_back_at_the_end() -> None:
    expr = Add(Sub(Add(X, Y), X), X)
    assert print_expr(simplified(expr, {})) == "y + x"


def test_a_part_that_has_one_value_is_that_number() -> None:
    bounded = {total(form_of(Add(X, Y))): (3, 3)}
    assert print_expr(simplified(Mul(Add(X, Y), Z), bounded)) == "z * 3"


def test_a_product_of_two_sums_is_a_term_with_its_parts_simplified() -> None:
    expr = Add(Mul(Add(X, X), Add(Y, index(0))), index(1))
    assert print_expr(simplified(expr, {})) == "x * 2 * y + 1"


def test_the_parts_of_a_fused_loop_meet_again() -> None:
    expr = Add(Mul(X // 8, index(8)), X % 8)
    assert simplified(expr, {X: (0, 63)}) is X


def test_what_is_loaded_or_converted_is_data_wherever_it_stands() -> None:
    assert is_data(Add(X, Cast(A[Y], INT64)))
    assert not is_data(Add(X // 3, Mul(Y, index(2))))
