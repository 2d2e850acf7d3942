"""Order in time of runs of two statements, and what of it plain arithmetic excludes before isl is
asked.

A run of `a` comes before one of `b` when it is ahead in a loop that holds both while they agree on
those further out, or when they agree on all of them and `a` stands first in the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ....tir.expr import Var
from ..forms.affine import Affine, Ranges, Term, interval
from ..forms.condition import Case, Cases
from ..forms.nest import Statement
from .dim_tests import exclude_each_other


@dataclass(frozen=True, slots=True)
class Order:
    """Two runs agree on the `same` outermost loops; on the next one the first is ahead ("<"),
    behind (">"), or anything ("").
    """

    same: int
    sign: str = ""


ANY = Order(0)
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


def orders_before(a: Statement, b: Statement, same: int = 0) -> list[Order]:
    """When a run of `a` comes before one of `b`, given that they agree on the `same` outermost
    loops.
    """
    common = common_loops(a, b)
    found = [Order(level, "<") for level in range(same, common)]
    if text_before(a, b):
        found.append(Order(common))
    return found


def orders_not_before(a: Statement, b: Statement) -> list[Order]:
    """When a run of `a` does not come before one of `b`."""
    common = common_loops(a, b)
    found = [Order(level, ">") for level in range(common)]
    return found if text_before(a, b) else [*found, Order(common)]


def possible_orders(
    a: Statement,
    a_where: Cases,
    b: Statement,
    b_where: Cases,
    equal: Equal,
    orders: Iterable[Order],
) -> list[Order]:
    """Those of `orders` that may hold for runs at which the forms `equal` are equal.

    One is left out when, with the loops that agree cancelled, a difference of two forms cannot be
    0. In particular c*x + r = c*y + s with x != y needs |s - r| >= |c|: the digits of an index tell
    iterations apart.
    """
    return [
        order
        for order in orders
        if _leaves_room(a, b, order)
        and not any(_apart(left, right, a, b, order) for left, right in equal)
        and any(
            not _exclude(one, two, a, order)
            and not exclude_each_other(one, two, a, b, order.same, equal)
            for one in a_where
            for two in b_where
        )
    ]


def _leaves_room(a: Statement, b: Statement, order: Order) -> bool:
    """Whether the ranges of the loops admit the order."""
    for loop in a.loops[: order.same]:
        (a_low, a_high), (b_low, b_high) = a.ranges[loop.var], b.ranges[loop.var]
        if a_high < b_low or b_high < a_low:
            return False
    if not order.sign:
        return True
    var = a.loops[order.same].var
    less, more = (a, b) if order.sign == "<" else (b, a)
    return less.ranges[var][0] < more.ranges[var][1]


def _apart(left: Affine, right: Affine, a: Statement, b: Statement, order: Order) -> bool:
    """Whether the two forms differ whenever the order holds."""
    low, high = _difference(left, right, a, b, order)
    return low > 0 or high < 0


def may_exceed(left: Affine, right: Affine, a: Statement, b: Statement, order: Order) -> bool:
    """Whether, as far as plain arithmetic shows, the form of `a` can be above that of `b` when the
    order holds.
    """
    return _difference(left, right, a, b, order)[1] > 0


def _difference(
    left: Affine, right: Affine, a: Statement, b: Statement, order: Order
) -> tuple[int, int]:
    """Bounds on the form of `a` less that of `b` when the order holds, the loops that agree
    cancelled.
    """
    shared = (*a.dims, *a.variables[: order.same])
    uneven = a.variables[order.same] if order.sign else None
    mine = _Parts(left, shared, uneven, a.ranges)
    other = _Parts(right, shared, uneven, b.ranges)
    low, high = mine.low - other.high, mine.high - other.low
    if mine.shared != other.shared:
        difference = Affine(tuple(mine.shared)) - Affine(tuple(other.shared))
        more = interval(difference, a.ranges)
        low, high = low + more[0], high + more[1]
    if uneven is not None and mine.factor and mine.factor == other.factor:
        # factor * (x - y) where 1 <= |x - y| < extent
        step = abs(mine.factor)
        far = step * (a.loops[order.same].extent - 1)
        below = (order.sign == "<") == (mine.factor > 0)
        return (low - far, high - step) if below else (low + step, high + far)
    if uneven is not None:
        for factor, (bottom, top) in (
            (mine.factor, a.ranges[uneven]),
            (-other.factor, b.ranges[uneven]),
        ):
            low += min(factor * bottom, factor * top)
            high += max(factor * bottom, factor * top)
    return low, high


class _Parts:
    """A form taken apart: its terms of shared variables, its factor of one variable, the interval
    of the rest.
    """

    __slots__ = ("factor", "high", "low", "shared")

    def __init__(
        self, form: Affine, shared: Sequence[Var], uneven: Var | None, ranges: Ranges
    ) -> None:
        self.shared: list[Term] = []
        self.factor = 0
        self.low = self.high = form.constant
        others: list[Term] = []
        for atom, factor in form.terms:
            if not isinstance(atom, Var):
                inner = Affine(((atom, factor),)).variables()
                (self.shared if all(v in shared for v in inner) else others).append((atom, factor))
            elif atom in shared:
                self.shared.append((atom, factor))
            elif atom is uneven:
                self.factor = factor
            elif others:
                others.append((atom, factor))
            else:
                low, high = ranges[atom]
                self.low += factor * (low if factor > 0 else high)
                self.high += factor * (high if factor > 0 else low)
        if others:
            low, high = interval(Affine(tuple(others)), ranges)
            self.low, self.high = self.low + low, self.high + high


def _exclude(one: Case, two: Case, a: Statement, order: Order) -> bool:
    """Whether a constraint of each case, on agreeing loops alone, cannot hold together."""
    if not one or not two:
        return False
    shared = (*a.dims, *a.variables[: order.same])
    mine = [c.form for c in one if all(var in shared for var in c.form.variables())]
    if not mine:
        return False
    theirs = [c.form for c in two if all(var in shared for var in c.form.variables())]
    full: dict[Var, tuple[int, int]] = {dim: (dim.low, dim.high) for dim in a.dims}
    full |= {loop.var: (0, loop.extent - 1) for loop in a.loops[: order.same]}
    return any(interval(f + g, full)[1] < 0 for f in mine for g in theirs)
