"""Conditions of indices, in disjunctive form: a tuple of cases, each a tuple of constraints that
hold together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ....tir.buffer import Load
from ....tir.dim import Dim, Extent
from ....tir.expr import EQ, LE, LT, NE, And, Const, Expr, Not, Or, Var
from ....tir.text.printer import print_expr
from ....tir.visit import loads, walk
from .affine import (
    Affine,
    Ranges,
    Undecided,
    affine,
    first_branching,
    interval,
    replace_branching,
    test_of,
    variable,
)
from .data import bounded


@dataclass(frozen=True, slots=True)
class Constraint:
    """form >= 0, or form == 0."""

    form: Affine
    equality: bool = False

    def holds(self, point: Mapping[Var, int]) -> bool:
        """Whether the constraint holds at a point."""
        value = self.form.value(point)
        return value == 0 if self.equality else value >= 0


Case = tuple[Constraint, ...]
Cases = tuple[Case, ...]
ALWAYS: Cases = ((),)
NEVER: Cases = ()
MOST_CASES = 256


def both(*conditions: Cases) -> Cases:
    """All of `conditions` hold. Raises: Undecided when there are too many cases."""
    result = ALWAYS
    for condition in conditions:
        if condition == ALWAYS:
            continue
        result = tuple(_merged(a, b) for a in result for b in condition)
        if len(result) > MOST_CASES:
            raise Undecided(f"a condition has more than {MOST_CASES} cases")
    return result


def _merged(a: Case, b: Case) -> Case:
    return (*a, *(c for c in b if c not in a)) if a else b


def fixed_values(where: Cases, ranges: Ranges) -> dict[Var, int]:
    """The variables to which the ranges and the constraints on each alone leave one value, the same
    in all cases, and that value.
    """
    found = [_fixed_in(case, ranges) for case in where]
    common = set.intersection(*(set(one.items()) for one in found)) if found else set()
    return dict(common)


def _fixed_in(case: Case, ranges: Ranges) -> dict[Var, int]:
    low: dict[Var, int] = {}
    high: dict[Var, int] = {}
    for constraint in case:
        constant = constraint.form.constant
        match constraint.form.terms:
            case ((Var() as var, 1 | -1 as sign),) if var in ranges:
                if sign == 1 or constraint.equality:
                    low[var] = max(low.get(var, ranges[var][0]), -sign * constant)
                if sign == -1 or constraint.equality:
                    high[var] = min(high.get(var, ranges[var][1]), -sign * constant)
    bounds = {
        var: (low.get(var, least), high.get(var, most)) for var, (least, most) in ranges.items()
    }
    return {var: least for var, (least, most) in bounds.items() if least == most}


def at_least(form: Affine, ranges: Ranges) -> Cases:
    """form >= 0"""
    low, high = interval(form, ranges)
    if low >= 0 or high < 0:
        return ALWAYS if low >= 0 else NEVER
    return expanded(form, equality=False)


def zero(form: Affine, ranges: Ranges) -> Cases:
    """form == 0"""
    low, high = interval(form, ranges)
    if low > 0 or high < 0:
        return NEVER
    return ALWAYS if low == high == 0 else expanded(form, equality=True)


def expanded(form: Affine, *, equality: bool) -> Cases:
    """The constraint on a form, once for each way of its choices."""
    return tuple((*case, Constraint(plain, equality)) for case, (plain,) in branches((form,)))


def branches(forms: tuple[Affine, ...]) -> tuple[tuple[Case, tuple[Affine, ...]], ...]:
    """The forms without minima, maxima and choices, once for each way that these may go, with the
    case in which they do.
    """
    choice = next((e for f in forms if (e := first_branching(f)) is not None), None)
    if choice is None:
        return (((), forms),)
    test = test_of(choice)
    found: list[tuple[Case, tuple[Affine, ...]]] = []
    for form, margin in ((choice.a, test), (choice.b, test.scaled(-1).plus(-1))):
        chosen = tuple(replace_branching(f, choice, form) for f in forms)
        found += [((Constraint(margin), *case), plain) for case, plain in branches(chosen)]
    return tuple(found)


def not_zero(form: Affine, ranges: Ranges) -> Cases:
    """form != 0"""
    return at_least(form.plus(-1), ranges) + at_least(form.scaled(-1).plus(-1), ranges)


def negated(condition: Cases, ranges: Ranges) -> Cases:
    """The condition does not hold."""
    return both(*(_some_fails(case, ranges) for case in condition))


def _some_fails(case: Iterable[Constraint], ranges: Ranges) -> Cases:
    failures: Cases = NEVER
    for constraint in case:
        form = constraint.form
        failures += (
            not_zero(form, ranges)
            if constraint.equality
            else at_least(form.scaled(-1).plus(-1), ranges)
        )
    return ALWAYS if () in failures else failures


def limit(extent: Extent) -> Affine:
    """An extent as a form."""
    return variable(extent) if isinstance(extent, Dim) else Affine((), extent)


def outside(forms: Iterable[Affine], extents: Iterable[Extent], ranges: Ranges) -> Cases:
    """Some form lies outside of 0 .. extent-1."""
    found: Cases = NEVER
    for form, extent in zip(forms, extents, strict=True):
        found += at_least(form.scaled(-1).plus(-1), ranges) + at_least(form - limit(extent), ranges)
    return found


def inside(forms: Iterable[Affine], extents: Iterable[Extent], ranges: Ranges) -> Cases:
    """Each form lies in 0 .. extent-1."""
    pairs = tuple(zip(forms, extents, strict=True))
    low = (at_least(form, ranges) for form, _ in pairs)
    high = (at_least(limit(extent) - form.plus(1), ranges) for form, extent in pairs)
    return both(*low, *high)


def _known(expr: LT | LE, env: Mapping[Var, Affine], ranges: Ranges) -> bool | None:
    """Whether a comparison of data holds, or not, whatever the data are; None where they decide."""
    a, b = bounded(expr.a, env, ranges), bounded(expr.b, env, ranges)
    slack = 1 if isinstance(expr, LT) else 0
    if a[1] + slack <= b[0]:
        return True
    return False if a[0] + slack > b[1] else None


def differ(a: Iterable[Affine], b: Iterable[Affine], ranges: Ranges) -> Cases:
    """Some form of `a` differs from its partner in `b`."""
    found: Cases = NEVER
    for left, right in zip(a, b, strict=True):
        found += not_zero(left - right, ranges)
    return found


def condition(expr: Expr, env: Mapping[Var, Affine], ranges: Ranges) -> Cases:
    """The cases in which a boolean expression of indices holds. Raises: Undecided when it depends
    on data.
    """
    match expr:
        case Const():
            return ALWAYS if expr.value else NEVER
        case And(a, b):
            return both(condition(a, env, ranges), condition(b, env, ranges))
        case Or(a, b):
            found = condition(a, env, ranges) + condition(b, env, ranges)
            return ALWAYS if () in found else found
        case Not(a):
            return negated(condition(a, env, ranges), ranges)
        case LT() | LE() if expr.a.dtype.is_integer and loads(expr):
            holds = _known(expr, env, ranges)
            if holds is not None:
                return ALWAYS if holds else NEVER
        case LT(a, b) | LE(a, b) | EQ(a, b) | NE(a, b) if a.dtype.is_integer:
            left, right = affine(a, env, ranges), affine(b, env, ranges)
            match expr:
                case LT():
                    return at_least((right - left).plus(-1), ranges)
                case LE():
                    return at_least(right - left, ranges)
                case EQ():
                    return zero(left - right, ranges)
            return not_zero(left - right, ranges)
    read = next((n for n in walk(expr) if isinstance(n, Load)), None)
    where = (
        f"depends on the values of '{read.buffer.name}'" if read is not None else "is not affine"
    )
    raise Undecided(f"the condition {print_expr(expr)} {where}")
