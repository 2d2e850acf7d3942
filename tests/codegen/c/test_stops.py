"""codegen/c/stops.py: the number of iterations of loops that end where a call says, and which one
runs alone.
"""

from __future__ import annotations

import pytest

from tilewright.codegen.c.stops import alone, stopped
from tilewright.tir.analysis.simplify import simplify
from tilewright.tir.analysis.specialise import at_most
from tilewright.tir.dim import Dim
from tilewright.tir.expr import Expr, Var
from tilewright.tir.parsing.parser import parse_stmt
from tilewright.tir.stmt import For
from tilewright.tir.text.printer import print_expr
from tilewright.tir.visit import free_vars, substitute

n = Dim("n", low=1, high=60)
o = Var("o")


def loop(condition: str, orelse: str = "") -> For:
    text = f"for i in range(8):\n    if {condition}:\n        pass\n{orelse}"
    found = parse_stmt(text, {"n": n, "o": o})
    assert isinstance(found, For)
    return found


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("i * 16 < n", "(n + 15) // 16"),
        ("i * 8 <= n", "n // 8 + 1"),
        ("i * 8 + 3 < n", "(n + 4) // 8"),
        ("i < n - 50", "max(min(n - 50, 8), 0)"),
        ("o * 32 + i * 4 < n", "max(min(o * (-8) + (n + 3) // 4, 8), 0)"),
    ],
)
def test_the_count_is_where_the_test_first_fails(condition: str, count: str) -> None:
    found, rest = stopped(loop(condition), {o: (0, 1)})
    assert print_expr(found) == count
    assert print_expr(rest.var) == "i"
    assert str(type(rest.body).__name__) == "Seq"


@pytest.mark.parametrize("condition", ["i * 16 < n", "i * 8 <= n", "i * 8 + 3 < n", "i < n - 50"])
def test_the_count_is_right_for_every_size(condition: str) -> None:
    for size in range(1, 61):
        here = Dim("n", low=size, high=size)
        found, _ = stopped(_at(condition, here), {})
        number = simplify(at_most(found))
        runs = [i for i in range(8) if eval(condition, {"i": i, "n": size})]
        assert print_expr(number) == str(len(runs))


def _at(condition: str, size: Dim) -> For:
    found = parse_stmt(f"for i in range(8):\n    if {condition}:\n        pass", {"n": size})
    assert isinstance(found, For)
    return found


@pytest.mark.parametrize(
    ("condition", "orelse"),
    [("i * 16 < 40", ""), ("n < i", ""), ("o < n", ""), ("i < n", "    else:\n        pass")],
)
def test_other_loops_keep_their_extent_and_their_test(condition: str, orelse: str) -> None:
    whole = loop(condition, orelse)
    found, rest = stopped(whole, {o: (0, 1)})
    assert print_expr(found) == "8"
    assert rest is whole


@pytest.mark.parametrize(
    ("upper", "lower", "value", "test"),
    [
        ("i * 8 < n", "n <= i * 8 + 7", "n // 8", "i * 8 < n"),
        ("i * 8 < n", "n < i * 8 + 6", "(n + 2) // 8", "i * 8 < n"),
        ("i * 4 < n", "n <= i * 4 + 3", "n // 4", "i < 8 and i * 4 < n"),
    ],
)
def test_one_iteration_alone_runs(upper: str, lower: str, value: str, test: str) -> None:
    found = alone(nested(upper, lower), {})
    assert found is not None
    assert (print_expr(found.value), print_expr(found.test)) == (value, test)


@pytest.mark.parametrize(
    ("upper", "lower"),
    [
        ("i * 8 < n", "n <= i * 8 + 9"),  # two where n is one more than a multiple of 8
        ("i * 8 < n", "i * 8 <= n"),
        ("n <= i * 8 + 7", "i * 8 < n"),  # what ends a loop stands outside
        ("i * 8 < n", "o <= i * 8 + 7"),
    ],
)
def test_where_several_may_run_none_runs_alone(upper: str, lower: str) -> None:
    assert alone(nested(upper, lower), {o: (0, 1)}) is None


@pytest.mark.parametrize("step", [4, 8])
def test_the_one_that_runs_is_right_for_every_size(step: int) -> None:
    for size in range(1, 61):
        here = Dim("n", low=size, high=size)
        found = alone(nested(f"i * {step} < n", f"n <= i * {step} + {step - 1}", here), {})
        assert found is not None
        at = simplify(at_most(found.value))
        runs = [i for i in range(8) if i * step < size <= i * step + step - 1]
        condition = simplify(at_most(substitute(found.test, {i_of(found.test): at})))
        assert ([int(print_expr(at))] if print_expr(condition) == "True" else []) == runs


def i_of(test: Expr) -> Var:
    return next(v for v in free_vars(test) if v.name == "i")


def nested(upper: str, lower: str, size: Dim = n) -> For:
    text = f"for i in range(8):\n    if {upper}:\n        if {lower}:\n            pass\n"
    found = parse_stmt(text, {"n": size, "o": o})
    assert isinstance(found, For)
    return found
