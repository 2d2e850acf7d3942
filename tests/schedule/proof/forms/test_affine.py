"""The proof's own arithmetic: forms have the value of the expressions, intervals contain it."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from tilewright.schedule.proof.forms.affine import Affine, Undecided, affine, interval, variable
from tilewright.schedule.proof.forms.condition import (
    Constraint,
    branches,
    condition,
    inside,
    negated,
    outside,
)
from tilewright.schedule.proof.relations.shortcuts import implied, substituted
from tilewright.tir.expr import And, Expr, Max, Min, Not, Or, Select, Var, const, index
from tilewright.tir.te import te

X, Y = Var("x"), Var("y")
RANGES = {X: (0, 11), Y: (2, 6)}
POINTS = [{X: x, Y: y} for x, y in product(range(12), range(2, 7))]


def value(expr: Expr, point: dict[Var, int]) -> int:
    """The value of an expression, by Python."""
    if isinstance(expr, Var):
        return point[expr]
    children = [value(child, point) for child in expr.children() if isinstance(child, Expr)]
    match type(expr).__name__:
        case "Const":
            return int(expr.value)  # type: ignore[attr-defined]
        case "Add":
            return children[0] + children[1]
        case "Sub":
            return children[0] - children[1]
        case "Mul":
            return children[0] * children[1]
        case "FloorDiv":
            return children[0] // children[1]
        case "FloorMod":
            return children[0] % children[1]
        case "Min" | "Max":
            return min(children) if isinstance(expr, Min) else max(children)
        case "Select":
            return children[1] if children[0] else children[2]
        case "LT":
            return int(children[0] < children[1])
        case "LE":
            return int(children[0] <= children[1])
        case "EQ":
            return int(children[0] == children[1])
        case "NE":
            return int(children[0] != children[1])
        case "And":
            return int(all(children))
        case "Or":
            return int(any(children))
    return int(not children[0])


def compared(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    kinds = st.sampled_from([te.eq, te.ne, lambda a, b: a < b, lambda a, b: a <= b])
    return st.builds(lambda kind, a, b: kind(a, b), kinds, inner, inner)


def joined(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.one_of(
        st.builds(And, inner, inner), st.builds(Or, inner, inner), st.builds(Not, inner)
    )


def bigger(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    number = st.integers(1, 13)
    return st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a - b, inner, inner),
        st.builds(lambda a, n: a * (n - 6), inner, number),
        st.builds(lambda a, n: a // n, inner, number),
        st.builds(lambda a, n: a % n, inner, number),
        st.builds(Min, inner, inner),
        st.builds(Max, inner, inner),
        st.builds(Select, compared(inner), inner, inner),
        st.builds(Select, joined(compared(inner)), inner, inner),
    )


expressions = st.recursive(
    st.one_of(st.sampled_from([X, Y]), st.integers(-9, 20).map(index)), bigger, max_leaves=6
)
conditions = st.recursive(compared(expressions), joined, max_leaves=3)


@given(expressions)
def test_a_form_has_the_value_of_its_expression_and_its_interval_contains_it(expr: Expr) -> None:
    form = affine(expr, {}, RANGES)
    low, high = interval(form, RANGES)
    for point in POINTS:
        assert form.value(point) == value(expr, point)
        assert low <= form.value(point) <= high


@given(conditions)
def test_a_condition_holds_where_its_expression_does(expr: Expr) -> None:
    try:
        cases = condition(expr, {}, RANGES)
        opposite = negated(cases, RANGES)
    except Undecided:  # too many cases
        reject()
    for point in POINTS:
        holds = any(all(c.holds(point) for c in case) for case in cases)
        assert holds == bool(value(expr, point))
        assert holds != any(all(c.holds(point) for c in case) for case in opposite)


@given(expressions, st.integers(1, 9))
def test_inside_is_the_opposite_of_outside(expr: Expr, extent: int) -> None:
    form = affine(expr, {}, RANGES)
    within, beyond = inside([form], [extent], RANGES), outside([form], [extent], RANGES)
    for point in POINTS:
        holds = any(all(c.holds(point) for c in case) for case in within)
        assert holds == (0 <= form.value(point) < extent)
        assert holds != any(all(c.holds(point) for c in case) for case in beyond)


@given(expressions)
def test_branches_cover_every_point_once(expr: Expr) -> None:
    form = affine(expr, {}, RANGES)
    chosen = branches((form,))
    for point in POINTS:
        taken = [plain for case, (plain,) in chosen if all(c.holds(point) for c in case)]
        assert [plain.value(point) for plain in taken] == [form.value(point)]


@given(expressions, expressions, expressions)
def test_what_is_implied_holds(given_expr: Expr, wanted_expr: Expr, other: Expr) -> None:
    known = tuple(
        Constraint(plain)
        for e in (given_expr, other)
        for case, (plain,) in branches((affine(e, {}, RANGES),))[:1]
        if not case
    )
    for case, (plain,) in branches((affine(wanted_expr, {}, RANGES),)):
        if not case and implied(known, Constraint(plain), RANGES):
            for point in POINTS:
                if all(c.holds(point) for c in known):
                    assert plain.value(point) >= 0


@given(expressions)
def test_substitution_has_the_value_at_the_substituted_point(expr: Expr) -> None:
    form = affine(expr, {}, RANGES)
    values = {X: variable(Y) + variable(Y), Y: variable(X).plus(3)}
    for case, (plain,) in branches((form,)):
        if not case:
            replaced = substituted(plain, values, RANGES)
            for point in POINTS:
                at = {var: v.value(point) for var, v in values.items()}
                assert replaced.value(point) == plain.value(at)


@pytest.mark.parametrize(("inner", "offset", "outer"), [(2, 1, 3), (3, 0, 2), (4, 2, 5), (2, 5, 4)])
def test_a_quotient_of_a_quotient_is_one(inner: int, offset: int, outer: int) -> None:
    form = affine((X // inner + offset) // outer, {}, RANGES)
    assert all(form.value(p) == (p[X] // inner + offset) // outer for p in POINTS)


def test_the_parts_of_a_fused_index_meet_again() -> None:
    assert affine(X // 4 * 4 + X % 4, {}, RANGES) == variable(X)
    assert affine((X * 48 + Y) // 48, {}, RANGES) == variable(X)
    assert affine((X * 48 + Y * 4) // 12 % 4, {}, RANGES) == affine(Y // 3, {}, RANGES)
    assert interval(affine(X % 5, {}, RANGES), RANGES) == (0, 4)
    assert Affine(((X, 2), (Y, 1))) == Affine(((Y, 1), (X, 2)))


@pytest.mark.parametrize(
    ("expr", "reason"),
    [
        (X * Y, "the index x * y is not affine"),
        (X // Y, "the index x // y is not affine"),
        (te.cast(X * 40, "int8"), 'the index cast(x * 40, "int8") may wrap around in int8'),
        (X * (1 << 61), "the index x * 2305843009213693952 may overflow int64"),
        (Var("z") + 1, "the index z is not affine"),
        (
            te.select(te.placeholder((12,), "int64", name="T")[X] < 3, X, Y),
            "the index T[x] depends on the values of 'T'",
        ),
    ],
)
def test_what_is_not_affine_is_undecided_with_its_reason(expr: Expr, reason: str) -> None:
    with pytest.raises(Undecided) as undecided:
        affine(expr, {}, RANGES)
    assert str(undecided.value) == reason


def test_a_condition_on_data_is_undecided() -> None:
    read = te.placeholder((4,), "float32", name="T")[X]
    with pytest.raises(Undecided, match=r"T\[x\] < 0.5 depends on the values of 'T'"):
        condition(read < const(0.5, "float32"), {}, RANGES)
