"""What the threads of a block touch, cell by cell: plain arithmetic that shows, for most pairs of
accesses, that different threads keep to different cells.

An index is what the loops on which two runs agree say of it, its base, and something of the loops
further in. The cells are counted out, relative to the base, in all iterations of the latter: where
two bases are the same, no two threads meet if no cell is of two of them. A condition of the outer
loops counts as far as it holds one of them to an interval, so there may be fewer cells than these.
Where a quotient is of an outer loop and of others, the outer one's number is a part of the cell.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from ....tir.dim import Dim
from ....tir.expr import Var
from ....tir.stmt import THREAD_AXES
from ..forms.affine import Affine, Choice, Quotient, Ranges, Term, Undecided, interval, variable
from ..forms.condition import Case
from ..forms.nest import Access
from ..grid_races import Team, Threads

MOST_RUNS = 1 << 21  # of all accesses to a buffer
MOST_CELLS = 1 << 22  # among those that two accesses may touch
NOBODY, SEVERAL = -1, -2  # in the place of a thread's number

Numbers = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
Interval = tuple[int, int]
Values = Mapping[Var, Numbers]


@dataclass(frozen=True, slots=True)
class AccessedCells:
    """The cells of an access in all iterations of the loops on which two runs need not agree.

    parts: outer loops whose number is a part of the cell. base: of each of these, then of each
    index, what the other outer loops say; ranges: in which these are where it happens. inner: what
    is added to the base; threads: by which thread, SEVERAL for all of them. again: whether a loop
    that says nothing of all this runs it several times.
    """

    parts: tuple[Var, ...]
    base: tuple[Affine, ...]
    ranges: tuple[tuple[Var, Interval], ...]
    inner: tuple[Numbers, ...]
    threads: Numbers
    again: bool


class CellTable:
    """The cells of accesses, counted out when first asked for."""

    def __init__(self, team: Team, axes: Sequence[str] = THREAD_AXES) -> None:
        self.team = team
        self._axes = axes
        self._left = MOST_RUNS
        self._known: dict[tuple[Access, int], AccessedCells | None] = {}

    def of(self, access: Access, same: int) -> AccessedCells | None:
        """Those in which two runs agree on the `same` outermost loops; None where arithmetic does
        not tell, or where there are too many.
        """
        key = access, same
        if key not in self._known:
            try:
                self._known[key] = self._counted(access, same)
            except Undecided:
                self._known[key] = None
        return self._known[key]

    def _counted(self, access: Access, same: int) -> AccessedCells:
        statement = access.statement
        fixed = {*statement.dims, *statement.variables[:same]}
        mixed = _mixed(access.indices, fixed)
        fixed -= mixed
        own = tuple(var for var in statement.variables[:same] if var in mixed)
        forms = (*(variable(var) for var in own), *access.indices)
        parts = [_taken_apart(form, fixed) for form in forms]
        cases = [tuple(c for c in case if _is_of(c.form, fixed) is False) for case in access.where]
        used = {var for _, rest in parts for var in rest.variables()}
        used |= {var for case in cases for c in case for var in c.form.variables()}
        runners = self.team.threads(access)
        used |= {var for form in runners if form is not None for var in form.variables()}
        loops = [x for x in statement.loops[:same] if x.var in mixed]
        loops += [x for x in statement.loops[same:] if x.var in used]
        again = any(x.extent > 1 and x.var not in used for x in statement.loops[same:])
        runs = math.prod(loop.extent for loop in loops)
        if runs > self._left:
            raise Undecided("too many runs")
        self._left -= runs
        axes = np.indices([loop.extent for loop in loops], np.int64).reshape(len(loops), runs)
        values = {loop.var: axis for loop, axis in zip(loops, axes, strict=True)}
        kept = _kept(cases, values, runs)
        inner = tuple(_spread(rest, values, runs)[kept] for _, rest in parts)
        base = tuple(form for form, _ in parts)
        outer = (var for var in statement.variables[:same] if var not in mixed)
        ranges = _narrowed(access, (*statement.dims, *outer))
        threads = self._threads(access.statement.root, runners, values, runs)
        return AccessedCells(own, base, ranges, inner, threads[kept], again)

    def _threads(self, root: int, runners: Threads, values: Values, runs: int) -> Numbers:
        """The number of the thread in each run."""
        number = np.zeros(runs, np.int64)
        for axis, thread in zip(self._axes, runners, strict=True):
            extent = self.team.extents.get((root, axis), 1)
            if thread is None and extent > 1:
                return np.full(runs, SEVERAL, np.int64)
            number = number * extent
            if thread is not None:
                number = number + _spread(thread, values, runs)
        return number


def _narrowed(access: Access, outer: Sequence[Var]) -> tuple[tuple[Var, Interval], ...]:
    """The intervals of some variables, as each constraint on its own narrows them."""
    ranges = access.statement.ranges
    if not access.where:
        return tuple((var, ranges[var]) for var in outer)
    cases = [_narrowed_by(case, ranges, outer) for case in access.where]
    return tuple(
        (var, (min(one[var][0] for one in cases), max(one[var][1] for one in cases)))
        for var in outer
    )


def _narrowed_by(case: Case, ranges: Ranges, outer: Sequence[Var]) -> dict[Var, Interval]:
    found = {var: ranges[var] for var in outer}
    for constraint in case:
        for form in (constraint.form, constraint.form.scaled(-1))[: 1 + constraint.equality]:
            for var, factor in form.terms:
                if not isinstance(var, Var) or var not in found:
                    continue
                low, high = found[var]  # factor * var + rest >= 0
                rest = interval(form - Affine(((var, factor),)), ranges)[1]
                if factor > 0:
                    found[var] = max(low, -(rest // factor)), high
                else:
                    found[var] = low, min(high, rest // -factor)
    return found


def _is_of(form: Affine, variables: set[Var]) -> bool | None:
    """Whether a form is of these variables alone; None where it is of these and others."""
    found = {var in variables for var in form.variables()}
    return None if len(found) == 2 else found != {False}


def _mixed(forms: Sequence[Affine], fixed: set[Var]) -> set[Var]:
    """Those of some variables that a quotient, or another choice, is of together with others."""
    atoms = [Affine(((atom, 1),)) for form in forms for atom, _ in form.terms]
    found: set[Var] = set()
    while more := {
        var
        for atom in atoms
        if _is_of(atom, fixed - found) is None
        for var in atom.variables()
        if var in fixed - found
    }:
        found |= more
    if any(isinstance(var, Dim) for var in found):
        raise Undecided("a quotient is of a size that a call decides and of loops")
    return found


def _taken_apart(form: Affine, fixed: set[Var]) -> tuple[Affine, Affine]:
    """The part of some variables, and the rest."""
    base: list[Term] = []
    rest: list[Term] = []
    for atom, factor in form.terms:
        of_fixed = _is_of(Affine(((atom, factor),)), fixed)
        (base if of_fixed else rest).append((atom, factor))
    return Affine(tuple(base)), Affine(tuple(rest), form.constant)


def _kept(cases: Sequence[Case], values: Values, runs: int) -> np.ndarray[tuple[int], np.dtype]:
    """The runs in which one of the cases may hold."""
    found = np.zeros(runs, bool)
    for case in cases:
        holds = np.ones(runs, bool)
        for constraint in case:
            value = _value(constraint.form, values)
            holds &= value == 0 if constraint.equality else value >= 0
        found |= holds
    return found


def _spread(form: Affine, values: Values, runs: int) -> Numbers:
    return np.broadcast_to(_value(form, values), (runs,))


def _value(form: Affine, values: Values) -> Numbers:
    total: Numbers = np.array(form.constant, np.int64)
    for atom, factor in form.terms:
        if isinstance(atom, Var):
            value = values[atom]
        elif isinstance(atom, Quotient):
            value = _value(atom.inner, values) // atom.divisor
        else:
            a, b = _value(atom.a, values), _value(atom.b, values)
            if isinstance(atom, Choice):
                value = np.where(_value(atom.test, values) >= 0, a, b)
            else:
                value = np.maximum(a, b) if atom.larger else np.minimum(a, b)
        total = total + factor * value
    return total


def may_meet(some: Sequence[AccessedCells], others: Sequence[AccessedCells]) -> bool | None:
    """Whether two threads may touch one cell, one in `some`, the other one in `others`; None where
    their bases are too different to say. The cells of either side have one base and its ranges.
    """
    if some[0].parts != others[0].parts:
        return None
    ranges = _both(some[0].ranges, others[0].ranges)
    if any(low > high for low, high in ranges.values()):
        return False
    shifts = _shifts(some[0], others[0], ranges)
    return None if shifts is None else _meet(some, others, shifts)


def overlap(one: AccessedCells, two: AccessedCells) -> bool:
    """Whether two accesses may touch one cell, in whatever threads."""
    shifts = _shifts(one, two, _both(one.ranges, two.ranges)) if one.parts == two.parts else None
    if shifts is None:
        return not keep_apart(one, two)
    nobody = replace(one, threads=np.full_like(one.threads, SEVERAL))
    return _meet([nobody], [two], shifts)


def touches_once(cells: AccessedCells) -> bool:
    """Whether no cell is touched in two runs."""
    if cells.again:
        return False
    runs = len(cells.threads)
    return len(np.unique(np.stack((*cells.inner, np.zeros(runs, np.int64))), axis=1).T) == runs


def _shifts(one: AccessedCells, two: AccessedCells, ranges: Ranges) -> list[int] | None:
    """By how much the one's base is more along each axis; None where that depends on loops."""
    found: list[int] = []
    for left, right in zip(one.base, two.base, strict=True):
        low, high = interval(left - right, ranges)
        if low != high:
            return None
        found.append(low)
    return found


def _both(one: Sequence[tuple[Var, Interval]], two: Sequence[tuple[Var, Interval]]) -> Ranges:
    others = dict(two)
    return {var: (max(low, others[var][0]), min(high, others[var][1])) for var, (low, high) in one}


def _meet(
    some: Sequence[AccessedCells], others: Sequence[AccessedCells], shifts: Sequence[int]
) -> bool:
    moved = [
        (cells, [values + shift for values, shift in zip(cells.inner, shifts, strict=True)])
        for cells in some
        if cells.threads.size
    ]
    listed = [(cells, list(cells.inner)) for cells in others if cells.threads.size]
    if not moved or not listed:
        return False
    axes = list(zip(*(inner for _, inner in (*moved, *listed)), strict=True))
    lows = [min(int(values.min()) for values in axis) for axis in axes]
    sizes = [
        max(int(values.max()) for values in axis) - low + 1
        for axis, low in zip(axes, lows, strict=True)
    ]
    if math.prod(sizes) > MOST_CELLS:
        return True
    owner = np.full(math.prod(sizes), NOBODY, np.int64)
    for cells, inner in moved:
        places = _places(cells, inner, lows, sizes)
        before = owner[places]
        alone = (before == NOBODY) | (before == cells.threads)
        owner[places] = np.where(alone, cells.threads, SEVERAL)
        owner[places[owner[places] != cells.threads]] = SEVERAL
    for cells, inner in listed:
        found = owner[_places(cells, inner, lows, sizes)]
        several = (found == SEVERAL) | (cells.threads == SEVERAL)
        if bool(np.any((found != NOBODY) & (several | (found != cells.threads)))):
            return True
    return False


def _places(
    cells: AccessedCells, inner: Sequence[Numbers], lows: Sequence[int], sizes: Sequence[int]
) -> Numbers:
    place = np.zeros(cells.threads.shape, np.int64)
    for values, low, size in zip(inner, lows, sizes, strict=True):
        place = place * size + (values - low)
    return place


def keep_apart(one: AccessedCells, two: AccessedCells) -> bool:
    """Whether, along some axis, the bases are too far from each other for cells to meet, or leave
    other remainders, in runs that agree on all that the bases are of.
    """
    if one.parts != two.parts:
        return False
    ranges = _both(one.ranges, two.ranges)
    axes = zip(one.base, two.base, one.inner, two.inner, strict=True)
    for left, right, mine, other in axes:
        if not mine.size or not other.size:
            return True
        difference = left - right
        low, high = interval(difference, ranges)
        if low + int(mine.min()) > int(other.max()) or high + int(mine.max()) < int(other.min()):
            return True
        step = _common_step((c for _, c in difference.terms), mine, other)
        if step > 1 and (int(mine.flat[0]) - int(other.flat[0])) % step:
            return True
    return False


def _common_step(factors: Iterable[int], mine: Numbers, other: Numbers) -> int:
    """What divides the factors and all differences among the numbers of either side."""
    spread = (int(np.gcd.reduce(values - values.flat[0])) for values in (mine, other))
    return reduce(math.gcd, (*factors, *spread), 0)
