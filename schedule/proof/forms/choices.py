"""Choices inside of an expression: what a point decides there may be gone on the other side of a
comparison.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....tir.buffer import Load
from ....tir.expr import FALSE, TRUE, And, Expr, Or, Select
from ....tir.visit import walk


def choices(expr: Expr) -> Iterator[tuple[Expr, Select]]:
    """The selects among the operands of an expression, those in indices left out, and conditions of
    which only one side is of indices, without data and floats, each with the select that it is.

    a and b   ->   select(b, a, False)        a or b   ->   select(b, True, a)
    """
    for child in expr.children():
        if isinstance(child, Select):
            yield child, child
        elif isinstance(child, And | Or):
            for one, other in ((child.a, child.b), (child.b, child.a)):
                if _is_of_indices(one) and not _is_of_indices(other):
                    ends = (other, FALSE) if isinstance(child, And) else (TRUE, other)
                    yield child, Select(one, *ends)
        if isinstance(child, Expr) and not isinstance(child, Load):
            yield from choices(child)


def _is_of_indices(expr: Expr) -> bool:
    return not any(
        isinstance(n, Load) or (isinstance(n, Expr) and n.dtype.is_float) for n in walk(expr)
    )
