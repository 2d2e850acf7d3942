"""Conditions that need to hold in some iteration of loops only: what remains of them.

A variable goes where one value is the best that it can have for all conditions at once: the least,
the greatest, or the one that an equation asks for. Conditions that speak of nothing but such loops
are tried at their iterations.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..expr import EQ, FALSE, LE, LT, Expr, Var, index, is_const
from ..stmt import For
from ..visit import free_vars, substitute
from .linear import Linear, Ranges, linear
from .simplify import simplify

TRIED = 2_000  # values of loops


def in_some_iteration(conditions: Sequence[Expr], loops: Sequence[For]) -> list[Expr] | None:
    """What remains of conditions when they need to hold together in some iteration of `loops`: no
    condition on those; None where that cannot be said.

    i*4 + l < 10, for some l in 0 .. 3   ->   i*4 < 10
    """
    kept = list(conditions)
    for loop in loops:
        mine = [c for c in kept if loop.var in free_vars(c)]
        if not mine:
            continue
        value = _best_value(mine, loop, loops)
        if value is not None:
            point: dict[Var, Expr] = {loop.var: value}
            kept = [simplify(substitute(c, point)) for c in kept]
            continue
        joined = _joined(kept, loop, loops)
        holds = _tried(joined, loops)
        if holds is None:
            return None
        kept = [c for c in kept if c not in joined] if holds else [FALSE]
    return kept


def _joined(conditions: Sequence[Expr], loop: For, loops: Sequence[For]) -> list[Expr]:
    """The conditions that some of the loops tie to those on one of them."""
    own = {x.var for x in loops}
    tied = {loop.var}
    while True:
        found = [c for c in conditions if free_vars(c) & tied]
        grown = tied.union(*(free_vars(c) & own for c in found))
        if grown == tied:
            return found
        tied = grown


def _tried(conditions: Sequence[Expr], loops: Sequence[For]) -> bool | None:
    """Whether conditions hold together in some iteration of the loops, found by trying; None where
    they speak of other variables, or there are too many to try.
    """
    spoken = frozenset[Var]().union(*(free_vars(c) for c in conditions))
    listed = [loop for loop in loops if loop.var in spoken]
    if spoken - {loop.var for loop in listed}:
        return None
    return _search(list(conditions), listed, [TRIED])


def _search(conditions: list[Expr], loops: Sequence[For], left: list[int]) -> bool | None:
    """The loops' values, the outermost first and the greatest first; what the ranges of the loops
    further in decide is not tried.
    """
    if not conditions:
        return True
    loop, *inner = loops
    ranges: Ranges = {x.var: (0, x.extent - 1) for x in inner}
    for value in reversed(range(loop.extent)):
        if not left[0]:
            return None
        left[0] -= 1
        point: dict[Var, Expr] = {loop.var: index(value)}
        found = [simplify(substitute(c, point), ranges) for c in conditions]
        if any(is_const(c, 0) for c in found):
            continue
        holds = _search([c for c in found if not is_const(c, 1)], inner, left)
        if holds is not False:
            return holds
    return False


def _best_value(conditions: Sequence[Expr], loop: For, loops: Sequence[For]) -> Expr | None:
    """The value of a loop's variable with which conditions hold if they do with any."""
    if loop.extent == 1:
        return index(0)
    for condition in conditions:
        if isinstance(condition, EQ):
            return _digit(linear(condition.a) - linear(condition.b), loop, loops)
    signs = set()
    for condition in conditions:
        if not isinstance(condition, LT | LE):
            return None
        form = linear(condition.a) - linear(condition.b)
        if any(loop.var in free_vars(a) for a, _ in form.without(loop.var).terms):
            return None
        signs.add(form.coefficient(loop.var) > 0)
    return None if len(signs) != 1 else index(0 if signs.pop() else loop.extent - 1)


def _digit(form: Linear, loop: For, loops: Sequence[For]) -> Expr | None:
    """The only value with which a form of loop variables can be 0, where it writes a number in
    digits: the loop's coefficient is above all that those of the others can add up to.
    """
    step = form.coefficient(loop.var)
    number = -form.constant if step > 0 else form.constant
    most = {x.var: x.extent - 1 for x in loops}
    rest = 0
    for atom, factor in form.without(loop.var).terms:
        if not isinstance(atom, Var) or atom not in most or (factor > 0) != (step > 0):
            return None
        rest += abs(factor) * most[atom]
    if rest >= abs(step) or not 0 <= number < abs(step) * loop.extent:
        return None
    return index(number // abs(step))
