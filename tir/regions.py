"""Regions: the box of elements that accesses touch while some loops run and the others stand
still.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .bounds import bounds
from .expr import LE, LT, Expr, Var, index
from .linear import Linear, Ranges, expression, linear
from .simplify import simplify
from .visit import free_vars


@dataclass(frozen=True, slots=True)
class Span:
    """The indices low .. low+extent-1 of one dimension; `low` mentions only variables that stand
    still.
    """

    low: Expr
    extent: int


Region = tuple[Span, ...]


def span(
    indices: Sequence[Expr],
    moving: Ranges,
    still: Ranges,
    size: int,
    conditions: Sequence[Expr] = (),
) -> Span:
    """The smallest span of one dimension of `size` that holds all `indices` while the `moving`
    variables run.

    conditions: what holds at every access. The span is the whole dimension where an index is not a
    sum of a still part and a moving part, or the still parts differ.
    """
    everything = {**still, **moving}
    lows: list[tuple[Linear, int, int]] = []
    for item in indices:
        form = linear(simplify(item, everything))
        fixed = Linear(tuple((a, c) for a, c in form.terms if not free_vars(a) & moving.keys()), 0)
        rest = Linear(
            tuple((a, c) for a, c in form.terms if free_vars(a) & moving.keys()), form.constant
        )
        if any(free_vars(a) - moving.keys() for a, _ in rest.terms):
            return Span(index(0), size)
        low, high = bounds(expression(rest), moving)
        if low is None or high is None:
            return Span(index(0), size)
        lows.append((fixed, low, min(high, _limit(rest, conditions))))
    base = lows[0][0]
    offsets = [fixed - base for fixed, _, _ in lows]
    if any(offset.terms for offset in offsets):
        return Span(index(0), size)
    low = min(o.constant + low for o, (_, low, _) in zip(offsets, lows, strict=True))
    high = max(o.constant + high for o, (_, _, high) in zip(offsets, lows, strict=True))
    if high - low + 1 >= size:
        return Span(index(0), size)
    return Span(simplify(expression(base + Linear((), low)), still), high - low + 1)


def _limit(form: Linear, conditions: Sequence[Expr]) -> int:
    """The largest value of a form that the conditions of the same terms, `form < n` or `form <= n`,
    allow.
    """
    limit = 1 << 62
    for condition in conditions:
        if isinstance(condition, LT | LE):
            difference = linear(condition.a) - linear(condition.b)
            if (difference - form).terms == () and form.terms:
                slack = 1 if isinstance(condition, LT) else 0
                limit = min(limit, form.constant - difference.constant - slack)
    return limit


def region(
    accesses: Iterable[Sequence[Expr]],
    moving: Ranges,
    still: Ranges,
    shape: Sequence[int],
    conditions: Sequence[Expr] = (),
) -> Region:
    """The box that holds all `accesses` (each a tuple of indices) to a buffer of `shape`, given
    what holds at each.
    """
    listed = list(accesses)
    known = [simplify(condition, {**still, **moving}) for condition in conditions]
    return tuple(
        span([access[d] for access in listed], moving, still, size, known)
        for d, size in enumerate(shape)
    )


def disjoint(spans: Sequence[Span], loops: Sequence[tuple[Var, int]]) -> bool:
    """Whether the box is another one, without overlap, in each iteration of `loops` ((variable,
    extent) pairs).

    Sufficient: in each dimension the coefficients grow like the digits of a number, and every loop
    moves some dimension.
    """
    extents = dict(loops)
    moved: set[Var] = set()
    for item in spans:
        width = item.extent
        terms = [(a, c) for a, c in linear(item.low).terms if isinstance(a, Var) and a in extents]
        if len(terms) != len(linear(item.low).terms):
            continue
        for atom, coefficient in sorted(terms, key=lambda term: term[1]):
            if coefficient < width or not isinstance(atom, Var):
                break
            width = coefficient * extents[atom]
            moved.add(atom)
    return all(var in moved or extent == 1 for var, extent in loops)
