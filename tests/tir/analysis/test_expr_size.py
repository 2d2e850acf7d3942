"""Heights and sizes of expressions, also of those that no recursion reaches the end of."""

from __future__ import annotations

from tilewright.tir.analysis.expr_size import height, heights, occurrences, size
from tilewright.tir.expr import Expr, Var
from tilewright.tir.te import te

X = Var("x", te.const(0, "float32").dtype)


def doubled(times: int) -> Expr:
    value: Expr = X
    for _ in range(times):
        value = value + value
    return value


def test_a_height_is_that_of_the_longest_way_down() -> None:
    assert height(X) == 1
    assert height(X * 2.0 + X) == 3
    total = (X * 2.0 + X) * (X + 1.0)
    assert (height(total), heights(total)[id(X)]) == (4, 1)


def test_a_call_that_becomes_arithmetic_counts_as_several_levels() -> None:
    assert height(te.exp(X)) == 9
    assert height(te.sqrt(X)) == 2


def test_a_size_counts_what_stands_in_several_places_in_each() -> None:
    assert size(X * 2.0 + X) == 5
    assert size(doubled(100)) == 2**101 - 1
    assert occurrences(doubled(100), X) == 2**100


def test_heights_of_thousands_are_found_without_recursion() -> None:
    value: Expr = X
    for _ in range(5000):
        value = te.maximum(te.sqrt(value), 1.0)
    assert height(value) == 10_001
    assert value.dtype == X.dtype
