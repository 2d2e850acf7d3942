"""Two tests of a size that exclude each other: a whole tile, and what is left of one.

A whole tile of `step` rows runs where step*x + step - 1 < n, what is left of one where
n <= step*y + step - 1. Together they say step*(y - x) > 0, so y is at least x + 1 and no row of one
is a row of the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from ....tir.dim import Dim
from ....tir.expr import Var
from ..forms.affine import Affine, Term, interval
from ..forms.condition import Case
from ..forms.nest import Statement


def exclude_each_other(
    one: Case,
    two: Case,
    a: Statement,
    b: Statement,
    same: int,
    equal: Sequence[tuple[Affine, Affine]],
) -> bool:
    """Whether a test of a dim in a case of `a` and one in a case of `b` cannot both hold.

    The two runs agree on the `same` outermost loops, and the forms `equal` are equal.
    """
    pairs = [
        (upper, lower)
        for lower in _tests(two, -1)
        for upper in _tests(one, 1)
        if _sizes(upper) == _sizes(lower.scaled(-1))
    ]
    pairs += [
        (upper, lower)
        for upper in _tests(one, -1)
        for lower in _tests(two, 1)
        if _sizes(upper) == _sizes(lower.scaled(-1))
    ]
    if not pairs:
        return False
    apart = {var: Var(var.name) for var in b.variables[same:] if var in a.variables}
    ranges: dict[Var, tuple[int, int]] = {**b.ranges, **a.ranges}
    ranges |= {new: b.ranges[var] for var, new in apart.items()}
    known = [(left, _renamed(right, apart)) for left, right in equal]
    links = [left - right for left, right in known if right is not None]
    for mine, other in pairs:
        theirs = _renamed(other, apart)
        if theirs is None:
            continue
        both = _tightened(mine + theirs)
        linked = (both + link for link in _cancelling(both, links))
        if any(interval(form, ranges)[1] < 0 for form in (both, *linked)):
            return True
    return False


def _tests(case: Case, sign: int) -> list[Affine]:
    """The forms that a case has of at least 0 and in which dims have factors of this sign."""
    return [
        c.form
        for c in case
        if not c.equality
        and any(isinstance(atom, Dim) and factor * sign > 0 for atom, factor in c.form.terms)
    ]


def _sizes(form: Affine) -> frozenset[Term]:
    """The terms of dims."""
    return frozenset(term for term in form.terms if isinstance(term[0], Dim))


def _cancelling(form: Affine, links: Iterable[Affine]) -> Iterator[Affine]:
    """The links, which are 0, and what they are times -1, that cancel all terms of a form."""
    for link in links:
        factors = dict(link.terms)
        for sign in (1, -1):
            if all(factors.get(atom) == -sign * factor for atom, factor in form.terms):
                yield link.scaled(sign)


def _renamed(form: Affine, names: dict[Var, Var]) -> Affine | None:
    """The form of other variables; None where it has more than variables."""
    if not all(isinstance(atom, Var) for atom, _ in form.terms):
        return None
    terms = ((names.get(atom, atom), c) for atom, c in form.terms if isinstance(atom, Var))
    return Affine(tuple(terms), form.constant)


def _tightened(form: Affine) -> Affine:
    """A form that is at least 0, less what whole numbers leave of its constant."""
    step = math.gcd(*(c for _, c in form.terms)) or 1
    return Affine(form.terms, form.constant // step * step)
