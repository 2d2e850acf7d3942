"""How many points of a box satisfy a condition.

Where every part of a conjunction bounds one axis by the others, as in k <= i, its values are an
interval at each point of the others, which alone are listed. Other conditions are evaluated at
every point, of up to MOST_POINTS; beyond, all points are taken to satisfy them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ..analysis.linear import Linear, expression, linear
from ..conditions import conjuncts
from ..dtype import INT64
from ..expr import LE, LT, Expr, Var
from ..reference.array_expr import evaluate_expr
from ..stmt import IterVar
from ..visit import free_vars

MOST_POINTS = 1 << 26  # at which a condition is evaluated
_PIECE = 1 << 20  # of them at a time
Places = dict[Var, NDArray[np.int64]]


def count_points(condition: Expr, axes: Sequence[IterVar]) -> int:
    """The points of `axes` at which a condition on them holds."""
    for axis in sorted(axes, key=lambda axis: axis.extent, reverse=True):
        limits = _limits(condition, axis.var)
        if limits is not None:
            others = [other for other in axes if other is not axis]
            if _size(others) <= MOST_POINTS:
                return sum(_solved(limits, axis, places) for places in _pieces(others))
    if _size(axes) > MOST_POINTS:
        return _size(axes)
    return sum(_held(condition, places) for places in _pieces(axes))


def _size(axes: Sequence[IterVar]) -> int:
    return math.prod(axis.extent for axis in axes)


def _pieces(axes: Sequence[IterVar]) -> Iterator[Places]:
    """The points of some axes, a list of values for each axis, some points at a time."""
    extents, total = [axis.extent for axis in axes], _size(axes)
    for low in range(0, total, _PIECE):
        flat = np.arange(low, min(low + _PIECE, total))
        places = np.unravel_index(flat, extents) if axes else (flat,)
        yield {axis.var: place for axis, place in zip(axes, places, strict=False)}


def _held(condition: Expr, places: Places) -> int:
    """At how many places a condition holds."""
    count = len(next(iter(places.values())))
    return int(np.count_nonzero(np.broadcast_to(evaluate_expr(condition, places), count)))


def _limits(condition: Expr, var: Var) -> tuple[Linear, ...] | None:
    """The linear forms that are 0 or less exactly where a condition holds, with `var` nowhere but
    in terms of its own; None where there are none.
    """
    found = []
    for part in conjuncts(condition):
        if not isinstance(part, LT | LE) or part.a.dtype != INT64:
            return None
        form = linear(part.a) - linear(part.b)
        if any(atom is not var and var in free_vars(atom) for atom, _ in form.terms):
            return None
        found.append(form + Linear((), 1) if isinstance(part, LT) else form)
    return tuple(found)


def _solved(limits: Sequence[Linear], axis: IterVar, places: Places) -> int:
    """The points of `axis`, summed over places of the others, at which no form is above 0."""
    low, high = np.asarray(0), np.asarray(axis.extent - 1)
    for form in limits:
        factor = form.coefficient(axis.var)
        rest = evaluate_expr(expression(form.without(axis.var)), places).astype(np.int64)
        if factor > 0:  # factor*v + rest <= 0
            high = np.minimum(high, -rest // factor)
        elif factor < 0:
            low = np.maximum(low, -(-rest // -factor))
        else:
            high = np.where(rest <= 0, high, -1)
    count = len(next(iter(places.values()))) if places else 1
    lengths = np.maximum(np.subtract(high, low) + 1, 0)
    return int(np.sum(np.broadcast_to(lengths, count)))
