from __future__ import annotations

import pytest

from tilewright.schedule.proof.forms.affine import Affine, variable
from tilewright.schedule.proof.forms.condition import ALWAYS, Cases, Constraint, fixed_values
from tilewright.tir.expr import Var

ROW, COLUMN = Var("i"), Var("j")
RANGES = {ROW: (0, 3), COLUMN: (0, 1)}
BELOW_1 = Constraint(variable(ROW).scaled(-1))
AT_LEAST_3 = Constraint(variable(ROW).plus(-3))
IS_2 = Constraint(variable(ROW).plus(-2), equality=True)
OPPOSITE_IS_2 = Constraint(variable(ROW).scaled(-1).plus(2), equality=True)
AT_LEAST_1 = Constraint(variable(ROW).plus(-1))
COLUMN_AT_LEAST_1 = Constraint(variable(COLUMN).plus(-1))
SUM = Constraint(
    (variable(ROW) + variable(COLUMN)).scaled(-1)
)  # both are 0, which no one of them says
TWICE = Constraint(variable(ROW).scaled(-2))


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (ALWAYS, {}),
        ((), {}),
        (((BELOW_1,),), {ROW: 0}),
        (((AT_LEAST_3, COLUMN_AT_LEAST_1),), {ROW: 3, COLUMN: 1}),
        (((IS_2,),), {ROW: 2}),
        (((OPPOSITE_IS_2,),), {ROW: 2}),
        (((AT_LEAST_1,),), {}),
        (((SUM,), (TWICE,)), {}),
        (((BELOW_1,), (BELOW_1, COLUMN_AT_LEAST_1)), {ROW: 0}),
        (((BELOW_1,), (AT_LEAST_3,)), {}),
        (((BELOW_1,), ()), {}),
    ],
)
def test_a_variable_is_fixed_where_each_case_leaves_it_the_same_value(
    where: Cases, expected: dict[Var, int]
) -> None:
    assert fixed_values(where, RANGES) == expected
    for case in where:
        points = [{ROW: i, COLUMN: j} for i in range(4) for j in range(2)]
        for point in (p for p in points if all(c.holds(p) for c in case)):
            assert expected.items() <= point.items()


def test_what_the_ranges_fix_needs_no_constraint() -> None:
    assert fixed_values(ALWAYS, {ROW: (2, 2), COLUMN: (0, 1)}) == {ROW: 2}


def test_a_form_with_fixed_variables() -> None:
    form = variable(ROW).scaled(3) + variable(COLUMN).plus(5)
    assert form.fixed({ROW: 2}) == variable(COLUMN).plus(11)
    assert form.fixed({}) is form
    assert form.fixed({ROW: 0, COLUMN: 0}) == Affine((), 5)
