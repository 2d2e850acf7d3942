"""Running totals: scans in which each step combines the one before with a new value.

    S[t, i] = select(t < 1, a[i], S[t - 1, i] + x[t, i])   is the running sum of a, x[1], x[2], ...

A whole axis of these is one accumulation of NumPy, one value after the other as the steps are.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..analysis.linear import linear
from ..analysis.simplify import simplify
from ..buffer import Load
from ..expr import FALSE, TRUE, Add, Expr, Max, Min, Mul, Select, index
from ..visit import loads, substitute
from .definitions import Definition

_OPERATORS: dict[type[Expr], str] = {Add: "sum", Mul: "prod", Min: "min", Max: "max"}


@dataclass(frozen=True, slots=True)
class Running:
    """Each step is the one before combined with its own one of `values`; the first is its value."""

    reducer: str
    values: Expr


def running(definition: Definition) -> Running | None:
    """A definition as a running total; None where it is something else."""
    whole = definition.value
    if not definition.ordered or len(definition.values) > 1 or not isinstance(whole, Select):
        return None
    time = definition.axes[0]
    begins = simplify(substitute(whole.condition, {time.var: index(0)}))
    goes_on = simplify(whole.condition, {time.var: (1, max(1, time.extent - 1))})
    step = whole.on_false
    if begins != TRUE or goes_on != FALSE or not isinstance(step, Add | Mul | Min | Max):
        return None
    before = tuple(linear(substitute(at, {time.var: time.var - 1})) for at in definition.indices)
    for own, new in ((step.a, step.b), (step.b, step.a)):
        if not isinstance(own, Load) or own.buffer is not definition.target:
            continue
        if tuple(linear(at) for at in own.indices) == before:
            values = Select(whole.condition, whole.on_true, new)
            if all(load.buffer is not definition.target for load in loads(values)):
                return Running(_OPERATORS[type(step)], values)
    return None
