"""Bounds: an interval that contains every value of an integer expression, given the ranges of its
variables.
"""

from __future__ import annotations

from ..dim import Dim
from ..expr import BitAnd, Const, Expr, FloorDiv, FloorMod, Max, Min, Mul, Select, ShiftRight, Var
from ..lowered import Ramp
from ..number import integer_range
from .linear import UNBOUNDED, Interval, Linear, Ranges, Total, interval, linear, total


def bounds(expr: Expr, ranges: Ranges) -> Interval:
    """The interval of `expr`; (None, None) where nothing is known."""
    if isinstance(expr, Var):
        return _atom(expr, ranges)
    return form_bounds(linear(expr), ranges)


def form_bounds(form: Linear, ranges: Ranges) -> Interval:
    """The interval of the expression of a linear form."""
    low, high = interval(form, {atom: _atom(atom, ranges) for atom, _ in form.terms})
    if len(form.terms) < 2 or not has_totals(ranges):
        return low, high
    known = ranges.get(total(form), UNBOUNDED)
    return intersect(
        (low, high), (_shift(known[0], form.constant), _shift(known[1], form.constant))
    )


def has_totals(ranges: Ranges) -> bool:
    """Whether a condition bounds a sum of terms as a whole."""
    return Total in map(type, ranges)


def known_interval(expr: Expr, ranges: Ranges) -> tuple[int, int]:
    """The interval of `expr`; that of its type where nothing is known."""
    least, most = integer_range(expr.dtype)
    low, high = bounds(expr, ranges)
    return least if low is None else low, most if high is None else high


def intersect(a: Interval, b: Interval) -> Interval:
    """The values that lie in both intervals."""
    (low, high), (least, most) = a, b
    if low is None or (least is not None and least > low):
        low = least
    if high is None or (most is not None and most < high):
        high = most
    return low, high


def _shift(end: int | None, by: int) -> int | None:
    return None if end is None else end + by


def _atom(expr: Expr, ranges: Ranges) -> Interval:
    if type(expr) is Var:
        return ranges.get(expr, UNBOUNDED)
    match expr:
        case Dim():
            return intersect((expr.low, expr.high), ranges.get(expr, UNBOUNDED))
        case Var():
            return ranges.get(expr, UNBOUNDED)
        case FloorDiv(a, Const() as c) if c.value > 0:
            low, high = bounds(a, ranges)
            return (
                None if low is None else low // int(c.value),
                None if high is None else high // int(c.value),
            )
        case FloorMod(a, Const() as c) if c.value > 0:
            low, high = bounds(a, ranges)
            if low is not None and high is not None and low // c.value == high // c.value:
                return low % int(c.value), high % int(c.value)
            return 0, int(c.value) - 1
        case FloorDiv(a, Const() as c) if c.value < -1:
            low, high = bounds(a, ranges)
            return (
                None if high is None else high // int(c.value),
                None if low is None else low // int(c.value),
            )
        case FloorMod(a, Const() as c) if c.value < 0:
            low, high = bounds(a, ranges)
            if low is not None and high is not None and low // c.value == high // c.value:
                return low % int(c.value), high % int(c.value)
            return int(c.value) + 1, 0
        case BitAnd(_, Const() as c) | BitAnd(Const() as c, _) if c.value >= 0:
            return 0, int(c.value)
        case ShiftRight(a, Const() as c) if 0 <= c.value < a.dtype.bits:
            low, high = bounds(a, ranges)
            return (
                None if low is None else low >> int(c.value),
                None if high is None else high >> int(c.value),
            )
        case Min(a, b):
            return _min(bounds(a, ranges), bounds(b, ranges))
        case Max(a, b):
            low, high = _min(_negated(bounds(a, ranges)), _negated(bounds(b, ranges)))
            return _negated((low, high))
        case Select(_, a, b):
            (low, high), (other_low, other_high) = bounds(a, ranges), bounds(b, ranges)
            return (
                None if low is None or other_low is None else min(low, other_low),
                None if high is None or other_high is None else max(high, other_high),
            )
        case Mul(a, b):
            return _product(bounds(a, ranges), bounds(b, ranges))
        case Ramp(base, stride, lanes):
            low, high = bounds(base, ranges)
            span = stride * (lanes - 1)
            return (
                None if low is None else low + min(0, span),
                None if high is None else high + max(0, span),
            )
    return UNBOUNDED


def _negated(of: Interval) -> Interval:
    low, high = of
    return (None if high is None else -high, None if low is None else -low)


def _min(a: Interval, b: Interval) -> Interval:
    low = None if a[0] is None or b[0] is None else min(a[0], b[0])
    highs = [high for high in (a[1], b[1]) if high is not None]
    return low, min(highs, default=None)


def _product(a: Interval, b: Interval) -> Interval:
    if a[0] is None or a[1] is None or b[0] is None or b[1] is None:
        return UNBOUNDED
    corners = [x * y for x in (a[0], a[1]) for y in (b[0], b[1])]
    return min(corners), max(corners)
