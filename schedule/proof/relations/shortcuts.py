"""What plain arithmetic shows without isl: the common cases of the proof, each a small theorem.

Every function here answers "shown" or "do not know"; isl is asked in the second case. Tests hold
the two against each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ....tir.expr import Var
from ....tir.stmt import For
from ..forms.affine import Affine, Branching, Quotient, Ranges, interval, quotient, variable
from ..forms.condition import Case, Cases, Constraint, both, expanded
from ..forms.nest import Statement
from .order import common_loops, text_before
from .pairing import Tagged


def implied(given: Case, wanted: Constraint, ranges: Ranges) -> bool:
    """Whether `wanted` follows from the ranges, or from one constraint of `given` that has the same
    terms.
    """
    low, high = interval(wanted.form, ranges)
    if wanted.equality:
        return low == high == 0 or wanted in given
    if low >= 0:
        return True
    for known in given:
        low, _ = interval(wanted.form - known.form, ranges)
        if low >= 0:  # wanted = known + something that is not negative
            return True
    return False


def all_implied(given: Cases, wanted: Cases, ranges: Ranges) -> bool:
    """Whether in each case of `given` all constraints of one case of `wanted` are implied."""
    return all(
        any(all(implied(known, c, ranges) for c in case) for case in wanted) for known in given
    )


def substituted(form: Affine, values: Mapping[Var, Affine], ranges: Ranges) -> Affine:
    """The form with variables replaced by forms of other variables, which have `ranges`."""
    result = Affine((), form.constant)
    for atom, coefficient in form.terms:
        if isinstance(atom, Var):
            term = values[atom]
        elif isinstance(atom, Quotient):
            term = quotient(substituted(atom.inner, values, ranges), atom.divisor, ranges)
        else:
            raise KeyError(atom)
        result = result + term.scaled(coefficient)
    return result


def solve(
    loops: Sequence[For],
    forms: Sequence[Affine],
    wanted: Sequence[Affine],
    known: Mapping[Var, Affine],
    ranges: Ranges,
) -> tuple[dict[Var, Affine], tuple[Constraint, ...]] | None:
    """A run of `loops` at which `forms` have the values `wanted`, digit by digit.

    forms: of the loops' variables; wanted, known and the result: of other variables, which have
    `ranges`. Each form is sum of c_n * x_n with c_n > 0: the largest first, x_n = (value - the
    lower end of the rest) // c_n, which is right when the constraints that come with the result
    hold. None when it cannot be done.
    """
    values = dict(known)
    needs: list[Constraint] = []
    extents = {loop.var: loop.extent for loop in loops}
    for form, value in zip(forms, wanted, strict=True):
        rest = value.plus(-form.constant)
        unknown: list[tuple[int, Var]] = []
        for atom, coefficient in form.terms:
            if isinstance(atom, Branching) or (atom not in values and coefficient < 0):
                return None
            if isinstance(atom, Var) and atom not in values:
                unknown.append((coefficient, atom))
            elif any(var not in values for var in Affine(((atom, 1),)).variables()):
                return None
            else:
                rest = rest - substituted(Affine(((atom, coefficient),)), values, ranges)
        for coefficient, var in sorted(unknown, key=lambda pair: -pair[0]):
            values[var] = quotient(rest, coefficient, ranges)
            rest = rest - values[var].scaled(coefficient)
            needs.append(Constraint(values[var]))
            needs.append(Constraint(values[var].scaled(-1).plus(extents[var] - 1)))
        needs.append(Constraint(rest, equality=True))
    open_needs = tuple(c for c in needs if not implied((), c, ranges))
    return values, open_needs


def earlier_run(write: Tagged, read: Tagged) -> Cases | None:
    """When `write` sets the cell of a run of `read` in a run before it that agrees on the loops
    that hold both.
    """
    a, b = write.statement, read.statement
    if not text_before(a, b) or len(write.access.fresh) > common_loops(a, b):
        return None
    return run_for(write, write.access.indices, read.access.indices, b)


def run_for(
    write: Tagged, forms: Sequence[Affine], wanted: Sequence[Affine], other: Statement
) -> Cases | None:
    """Conditions on a run of `other` under which `write` runs where `forms` have the values
    `wanted`.

    The two runs agree on the loops that hold both statements. None where no such run is visible.
    """
    mine = write.statement
    shared = mine.loops[: common_loops(mine, other)]
    known = {var: variable(var) for var in (*mine.dims, *(loop.var for loop in shared))}
    used = {var for form in forms for var in form.variables()}
    for loop in mine.loops:
        if loop.var not in known and loop.var not in used:
            least = _least(loop.var, write.access.where)
            if least >= loop.extent:
                return None
            known[loop.var] = Affine((), least)
    solved = solve(mine.loops, forms, wanted, known, other.ranges)
    if solved is None:
        return None
    values, needs = solved
    where: Cases = ()
    for case in write.access.where:
        at_run = (Constraint(substituted(c.form, values, other.ranges), c.equality) for c in case)
        left = (*needs, *(c for c in at_run if not implied((), c, other.ranges)))
        where += both(*(expanded(c.form, equality=c.equality) for c in left))
    return where


def _least(var: Var, where: Cases) -> int:
    """The least value that the first case's constraints on the variable alone leave it."""
    if not where:
        return 0
    return max([0, *(-c.form.constant for c in where[0] if c.form.terms == ((var, 1),))])


def same_cell_same_element(a: Tagged, b: Tagged) -> bool:
    """Whether two accesses to one tensor and one cell mean one element: both find it from the cell
    in the same way.
    """
    return _linked(a, b, of_cell=False)


def same_element_same_cell(a: Tagged, b: Tagged) -> bool:
    """Whether two accesses to one element touch one cell, given that they are in the same
    iteration's storage.
    """
    return a.access.buffer is b.access.buffer and _linked(a, b, of_cell=True)


def _linked(a: Tagged, b: Tagged, *, of_cell: bool) -> bool:
    if a.tensor != b.tensor:
        return False
    for where in (False, True):  # the second takes longer, and shows more
        mine, other = (one.offsets(of_cell=of_cell, where=where) for one in (a, b))
        if all(left & right for left, right in zip(mine, other, strict=True)):
            return True
    return False


@dataclass(frozen=True, slots=True)
class Box:
    """The points low .. high of each dimension, inclusive; each is reached by exactly one run."""

    low: tuple[int, ...]
    high: tuple[int, ...]

    @property
    def volume(self) -> int:
        """Number of points."""
        return math.prod(max(0, b - a + 1) for a, b in zip(self.low, self.high, strict=True))

    def meets(self, other: Box) -> bool:
        """Whether the two have a point in common."""
        return all(
            max(a, c) <= min(b, d)
            for a, b, c, d in zip(self.low, self.high, other.low, other.high, strict=True)
        )


def box_of(statement: Statement, point: Sequence[Affine]) -> Box | None:
    """The box that a statement's runs cover, each point once; None where they do not visibly make
    one.

    Each dimension is sum of c_n * x_n where x_n counts e_n values and c_0 = 1, c_(n+1) = c_n * e_n,
    so it counts through an interval; each loop serves one dimension; each condition bounds one
    dimension.
    """
    dims = statement.dims
    if len(statement.domain) != 1 or any(
        var in dims for constraint in statement.domain[0] for var in constraint.form.variables()
    ):
        return None
    ranges = {var: statement.ranges[var] for var in statement.variables}
    free = {var: high - low + 1 for var, (low, high) in ranges.items() if low != high}
    bounds: list[tuple[int, int]] = []
    for form in point:
        step = 1
        start = form.constant
        for atom, coefficient in sorted(form.terms, key=lambda term: term[1]):
            if not isinstance(atom, Var) or atom in dims:
                return None
            start += coefficient * ranges[atom][0]
            if ranges[atom][0] == ranges[atom][1]:
                continue
            extent = free.pop(atom, 0)
            if not extent or coefficient != step:
                return None
            step *= extent
        bounds.append((start, start + step - 1))
    if free:
        return None
    for constraint in statement.domain[0]:
        if implied((), constraint, ranges):
            continue
        clipped = _clip(constraint, point, bounds)
        if clipped is None:
            return None
        bounds = clipped
    return Box(tuple(low for low, _ in bounds), tuple(high for _, high in bounds))


def _clip(
    constraint: Constraint, point: Sequence[Affine], bounds: Sequence[tuple[int, int]]
) -> list[tuple[int, int]] | None:
    """The bounds narrowed by a constraint on one dimension; None for any other constraint."""
    for axis, form in enumerate(point):
        low, high = bounds[axis]
        above, below = constraint.form - form, constraint.form + form
        clipped = list(bounds)
        if not form.terms or constraint.equality:
            continue
        if not above.terms:  # form + c >= 0
            clipped[axis] = (max(low, -above.constant), high)
            return clipped
        if not below.terms:  # c - form >= 0
            clipped[axis] = (low, min(high, below.constant))
            return clipped
    return None
