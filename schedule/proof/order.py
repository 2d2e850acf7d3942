"""Order in time of runs of two statements, and what of it plain arithmetic excludes before isl is asked.

A run of `a` comes before one of `b` when it is ahead in a loop that holds both while they agree on those further out, or
when they agree on all of them and `a` stands first in the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...tir.expr import Var
from .affine import Affine, Ranges, interval
from .condition import Case, Cases
from .statements import Statement

Order = tuple[tuple[int, str], ...]  # (number of a common loop, "=" | "<" | ">"), all of which hold
Equal = Sequence[tuple[Affine, Affine]]


def common_loops(a: Statement, b: Statement) -> int:
    """How many loops hold both statements."""
    count = 0
    for left, right in zip(a.loops, b.loops, strict=False):
        if left is not right:
            break
        count += 1
    return count


def text_before(a: Statement, b: Statement) -> bool:
    """Whether `a` stands before `b` in the text."""
    return a.positions[-1] < b.positions[-1]


def agree(levels: int) -> Order:
    """The runs agree on the outermost loops."""
    return tuple((level, "=") for level in range(levels))


def orders_before(a: Statement, b: Statement, same: int = 0) -> list[Order]:
    """When a run of `a` comes before one of `b`, given that they agree on the `same` outermost loops."""
    common = common_loops(a, b)
    found = [(*agree(level), (level, "<")) for level in range(same, common)]
    if text_before(a, b):
        found.append(agree(common))
    return found


def possible_orders(
    a: Statement,
    a_where: Cases,
    b: Statement,
    b_where: Cases,
    equal: Equal,
    orders: Iterable[Order],
) -> list[Order]:
    """Those of `orders` that may hold for runs at which the forms `equal` are equal.

    One is left out when, with the loops that agree cancelled, a difference of two forms cannot be 0. In particular
    c*x + r = c*y + s with x != y needs |s - r| >= |c|: the digits of an index tell iterations apart.
    """
    return [
        order
        for order in orders
        if not any(_apart(left, right, a, b, order) for left, right in equal)
        and any(not _exclude(one, two, a, order) for one in a_where for two in b_where)
    ]


def _agreeing(a: Statement, order: Order) -> frozenset[Var]:
    return frozenset(a.loops[level].var for level, sign in order if sign == "=")


def _apart(left: Affine, right: Affine, a: Statement, b: Statement, order: Order) -> bool:
    """Whether the two forms differ whenever the order holds."""
    shared = _agreeing(a, order)
    same_a, free_a = _parts(left, shared)
    same_b, free_b = _parts(right, shared)
    uneven = [(a.loops[level], sign) for level, sign in order if sign != "="]
    low, high = interval(same_a - same_b, a.ranges)
    if uneven:
        loop, sign = uneven[0]
        factor = next((c for atom, c in free_a.terms if atom is loop.var), 0)
        if factor and factor == next((c for atom, c in free_b.terms if atom is loop.var), 0):
            free_a = Affine(tuple(t for t in free_a.terms if t[0] is not loop.var), free_a.constant)
            free_b = Affine(tuple(t for t in free_b.terms if t[0] is not loop.var), free_b.constant)
            low, high = _difference(low, high, free_a, free_b, a.ranges, b.ranges)
            far = abs(factor) * (loop.extent - 1)
            # factor * (x - y) = -(low .. high)
            up = high >= abs(factor) and low <= far
            down = low <= -abs(factor) and high >= -far
            return not (up if (sign == "<") == (factor > 0) else down)
    low, high = _difference(low, high, free_a, free_b, a.ranges, b.ranges)
    return low > 0 or high < 0


def _difference(
    low: int, high: int, a: Affine, b: Affine, a_ranges: Ranges, b_ranges: Ranges
) -> tuple[int, int]:
    a_low, a_high = interval(a, a_ranges)
    b_low, b_high = interval(b, b_ranges)
    return low + a_low - b_high, high + a_high - b_low


def _parts(form: Affine, shared: frozenset[Var]) -> tuple[Affine, Affine]:
    """The terms of the shared variables alone, and the others with the constant."""
    same, free = [], []
    for atom, coefficient in form.terms:
        known = atom in shared if isinstance(atom, Var) else _within(atom, coefficient, shared)
        (same if known else free).append((atom, coefficient))
    return Affine(tuple(same)), Affine(tuple(free), form.constant)


def _within(atom: object, coefficient: int, shared: frozenset[Var]) -> bool:
    form = Affine(((atom, coefficient),))  # type: ignore[arg-type]
    return all(var in shared for var in form.variables())


def _exclude(one: Case, two: Case, a: Statement, order: Order) -> bool:
    """Whether a constraint of each case, on agreeing loops alone, cannot hold together."""
    shared = _agreeing(a, order)
    mine = [c.form for c in one if all(var in shared for var in c.form.variables())]
    if not mine:
        return False
    theirs = [c.form for c in two if all(var in shared for var in c.form.variables())]
    return any(interval(f + g, a.ranges)[1] < 0 for f in mine for g in theirs)
