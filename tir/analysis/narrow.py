"""The ranges of variables where a condition holds."""

from __future__ import annotations

from ..dim import Dim
from ..expr import EQ, LE, LT, And, Const, Expr, Not, Var
from .bounds import form_bounds, intersect
from .iterations import LaneRange
from .linear import UNBOUNDED, Interval, Linear, Ranges, linear, total


def narrowed(ranges: Ranges, condition: Expr) -> dict[Var, Interval]:
    """The ranges where `condition` holds: comparisons of sums with constants are used, others are
    not.
    """
    result = dict(ranges)
    match condition:
        case And(a, b):
            return narrowed(narrowed(result, a), b)
        case Not(LT(a, b)):
            return narrowed(result, LE(b, a))
        case Not(LE(a, b)):
            return narrowed(result, LT(b, a))
        case LT(a, b) | LE(a, b) if a.dtype.is_integer and a.dtype.lanes == 1:
            form = linear(a) - linear(b)
            # sum of terms + limit <= 0
            limit = form.constant + (1 if isinstance(condition, LT) else 0)
            if len(form.terms) > 1 and not _leaves_one(form, limit, result):
                key = total(form)
                result[key] = intersect(result.get(key, UNBOUNDED), (None, -limit))
                if any(isinstance(atom, Dim) for atom, _ in form.terms):
                    key = total(form.scaled(-1))  # what is left of a size is asked both ways
                    result[key] = intersect(result.get(key, UNBOUNDED), (limit, None))
            for atom, coefficient in form.terms:
                if isinstance(atom, Var):
                    _narrow(result, atom, coefficient, form.without(atom), limit)
        case EQ(Var() as a, Const() as b) if not isinstance(result.get(a), LaneRange):
            result[a] = (int(b.value), int(b.value))
    return result


def is_point(values: Interval) -> bool:
    """Whether there is one value: a predicate that leaves a loop one iteration does not say so in
    the bindings, which keep one form in all copies of a block.
    """
    return values[0] is not None and values[0] == values[1]


def _leaves_one(form: Linear, limit: int, ranges: Ranges) -> bool:
    """Whether a sum of at most -limit, constant apart, is one number, and lanes take part in it."""
    lanes = any(isinstance(ranges.get(a), LaneRange) for a, _ in form.terms if isinstance(a, Var))
    return lanes and form_bounds(Linear(form.terms, 0), ranges)[0] == -limit


def _narrow(
    ranges: dict[Var, Interval], var: Var, coefficient: int, rest: Linear, limit: int
) -> None:
    """Use coefficient * var + rest + (limit - rest.constant) <= 0."""
    least, _ = form_bounds(Linear(rest.terms, 0), ranges)
    if least is None:
        return
    if coefficient > 0:
        found: Interval = (None, (-limit - least) // coefficient)
    else:
        found = (-((-limit - least) // -coefficient), None)
    before = ranges.get(var, UNBOUNDED)
    after = intersect(before, found)
    if isinstance(before, LaneRange):
        after = before if is_point(after) else LaneRange(after)
    ranges[var] = after
