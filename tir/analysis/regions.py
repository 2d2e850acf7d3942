"""Regions: the box of elements that accesses touch while some loops run and the others stand
still.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from ..expr import LE, LT, Const, Expr, FloorDiv, FloorMod, Var, index
from ..visit import free_vars, loads
from .bounds import bounds, has_totals
from .linear import Linear, Ranges, expression, linear
from .simplify import simplify


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
    sum of a still part and a moving part, or is data, or the still parts differ.
    """
    everything = {**still, **moving}
    lows: list[tuple[Linear, int, int]] = []
    for item in indices:
        form = linear(simplify(item, everything))
        if any(loads(atom) for atom, _ in form.terms):
            return Span(index(0), size)
        fixed = Linear(tuple((a, c) for a, c in form.terms if not free_vars(a) & moving.keys()), 0)
        rest = Linear(
            tuple((a, c) for a, c in form.terms if free_vars(a) & moving.keys()), form.constant
        )
        if not all(free_vars(a) <= moving.keys() for a, _ in rest.terms):
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
    named = frozenset[Var]().union(*(free_vars(i) for i in (*chain(*listed), *conditions)))
    moving, still = _of_these(moving, named), _of_these(still, named)
    known = [simplify(condition, {**still, **moving}) for condition in conditions]
    return tuple(
        span([access[d] for access in listed], moving, still, size, known)
        for d, size in enumerate(shape)
    )


def _of_these(ranges: Ranges, names: frozenset[Var]) -> Ranges:
    """The ranges of these variables, where none is of a sum as a whole."""
    if has_totals(ranges):
        return ranges
    return {var: ranges[var] for var in names if var in ranges}


def disjoint(spans: Sequence[Span], loops: Sequence[tuple[Var, int]]) -> bool:
    """Whether the box is another one, without overlap, in each iteration of `loops` ((variable,
    extent) pairs).

    Sufficient: box after box, the digits of loop variables that are not known yet have coefficients
    that grow like those of a number, so that the position of the box gives them; and in the end
    every variable is known by its digits.
    """
    extents = dict(loops)
    known: set[Digit] = set()
    pending = [item for item in spans if all(digit_of(a) for a, _ in linear(item.low).terms)]
    while pending:
        solved = [item for item in pending if _adds_digits(item, extents, known)]
        if not solved:
            break
        pending = [item for item in pending if item not in solved]
    return all(extent <= 1 or _is_known(var, extent, known) for var, extent in loops)


@dataclass(frozen=True, slots=True)
class Digit:
    """The digit var // weight % modulus of a variable; modulus None: no remainder is taken."""

    var: Var
    weight: int
    modulus: int | None

    def count(self, extent: int) -> int:
        """How many values it has where the variable has `extent`."""
        most = -(-extent // self.weight)
        return most if self.modulus is None else min(self.modulus, most)


def digit_of(expr: Expr) -> Digit | None:
    """`expr` as a digit of one variable; None when it is something else."""
    match expr:
        case Var():
            return Digit(expr, 1, None)
        case FloorDiv(a, Const() as c) if (inner := digit_of(a)) is not None and c.value > 0:
            size = int(c.value)
            if inner.modulus is None:  # v // w // c -> v // (w*c)
                return Digit(inner.var, inner.weight * size, None)
            if inner.modulus % size == 0:  # v // w % (c*m) // c -> v // (w*c) % m
                return Digit(inner.var, inner.weight * size, inner.modulus // size)
        case FloorMod(a, Const() as c) if (inner := digit_of(a)) is not None and c.value > 0:
            size = int(c.value)
            if inner.modulus is None or inner.modulus % size == 0:  # v // w % (c*m) % m
                return Digit(inner.var, inner.weight, size)
    return None


def _adds_digits(item: Span, extents: Mapping[Var, int], known: set[Digit]) -> bool:
    """Whether the position of a span tells the digits that it depends on and that are not in
    `known`, where they are put.
    """
    unknown = []
    for atom, coefficient in linear(item.low).terms:
        digit = digit_of(atom)
        if digit is None or digit.var not in extents or coefficient < 0:
            return False
        if digit not in known and digit.count(extents[digit.var]) > 1:
            unknown.append((coefficient, digit))
    width = item.extent
    for coefficient, digit in sorted(unknown, key=lambda term: term[0]):
        if coefficient < width:
            return False
        width = coefficient * digit.count(extents[digit.var])
    known.update(digit for _, digit in unknown)
    return True


def _is_known(var: Var, extent: int, known: set[Digit]) -> bool:
    """Whether the digits in `known` tell the variable."""
    weight = 1
    while weight < extent:
        found = [d for d in known if d.var is var and d.weight == weight]
        if any(digit.modulus is None for digit in found):
            return True
        sizes = [digit.modulus for digit in found if digit.modulus is not None]
        if not sizes or max(sizes) < 2:
            return False
        weight *= max(sizes)
    return True
