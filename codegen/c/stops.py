"""Where a loop ends whose body runs up to an iteration that the sizes of a call decide; which one
alone runs.

for i in range(128): if i * 16 < n: s   ->   for (i = 0; i < (n + 15) / 16; i++) s
for i in range(128): if i * 16 < n: if n <= i * 16 + 15: s   ->   i = n / 16; if (i * 16 < n) s
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...tir.analysis.linear import Linear, Ranges, expression, linear
from ...tir.analysis.simplify import provable, simplify
from ...tir.conditions import all_of, names_dim
from ...tir.expr import LE, LT, Expr, Max, Min, index
from ...tir.stmt import For, If, Stmt
from ...tir.visit import free_vars, loads


def stopped(loop: For, ranges: Ranges) -> tuple[Expr, For]:
    """How many iterations do something, and the loop without the test that says so.

    The number is the extent where no such test stands right inside the loop.
    """
    whole = index(loop.extent)
    match loop.body:
        case If(condition, then, None):
            form = _below(condition, loop)
        case _:
            return whole, loop
    if form is None or form.coefficient(loop.var) < 0:
        return whole, loop
    # step * i + rest <= 0 for i = 0 .. -rest // step
    last = expression(form.without(loop.var).scaled(-1)) // form.coefficient(loop.var)
    count = simplify(Max(Min(last + 1, whole), index(0)), ranges)
    return count, replace(loop, body=then)


@dataclass(frozen=True, slots=True)
class Alone:
    """The one iteration in which a loop may do something.

    value: of the loop's variable. test: whether it does something; known: what is known there.
    """

    value: Expr
    test: Expr
    known: Expr
    body: Stmt


def alone(loop: For, ranges: Ranges) -> Alone | None:
    """The one iteration in which a loop may do something; None where there may be several."""
    match loop.body:
        case If(upper, If(lower, then, None), None):
            last, first = _below(upper, loop), _below(lower, loop)
        case _:
            return None
    if last is None or first is None:
        return None
    step, apart = last.coefficient(loop.var), last + first
    if step <= 0 or apart.terms or apart.constant <= -step:
        return None
    # rest <= step * i, and the next multiple of step is too large for the other test
    rest = expression(first.without(loop.var)) + (step - 1)
    value = simplify(rest // step, ranges)
    within = [
        test
        for known, test in (
            (index(0) <= value, index(0) <= loop.var),
            (value < loop.extent, loop.var < loop.extent),
        )
        if not provable(known, ranges)
    ]
    return Alone(value, all_of(*within, upper), all_of(*within, upper, lower), then)


def _below(condition: Expr, loop: For) -> Linear | None:
    """A comparison with a dim as `step * i + rest <= 0`; None for another condition."""
    if not isinstance(condition, LT | LE) or not condition.a.dtype.is_integer or loads(condition):
        return None
    if not names_dim(condition):
        return None
    form = linear(condition.a) - linear(condition.b)
    rest = form.without(loop.var)
    if form.coefficient(loop.var) == 0 or loop.var in free_vars(expression(rest)):
        return None
    return form + Linear((), 1 if isinstance(condition, LT) else 0)
