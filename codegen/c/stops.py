"""Where a loop ends whose body runs up to an iteration that the sizes of a call decide.

for i in range(128): if i * 16 < n: s   ->   for (i = 0; i < (n + 15) / 16; i++) s
"""

from __future__ import annotations

from dataclasses import replace

from ...tir.analysis.linear import Ranges, expression, linear
from ...tir.analysis.simplify import simplify
from ...tir.dim import Dim
from ...tir.expr import LE, LT, Expr, Max, Min, index
from ...tir.stmt import For, If
from ...tir.visit import free_vars, loads


def stopped(loop: For, ranges: Ranges) -> tuple[Expr, For]:
    """How many iterations do something, and the loop without the test that says so.

    The number is the extent where no such test stands right inside the loop.
    """
    whole = index(loop.extent)
    match loop.body:
        case If(LT(a, b) | LE(a, b) as condition, then, None) if a.dtype.is_integer:
            form = linear(a) - linear(b)
        case _:
            return whole, loop
    if not any(isinstance(var, Dim) for var in free_vars(condition)):
        return whole, loop
    step, rest = form.coefficient(loop.var), form.without(loop.var)
    if step <= 0 or loads(condition) or loop.var in free_vars(expression(rest)):
        return whole, loop
    # step * i + rest < 0 for i = 0 .. (-rest - 1) // step
    room = rest.scaled(-1)
    last = (expression(room) - (1 if isinstance(condition, LT) else 0)) // step
    count = simplify(Max(Min(last + 1, whole), index(0)), ranges)
    return count, replace(loop, body=then)
