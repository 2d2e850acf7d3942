"""Indices that are data: checked, or clamped by definition.

`Checked(value, extent, what)` is `value` where 0 <= value < extent. Elsewhere it is clamped into
that range, so that every access stays inside its tensor, and the call fails. It stands in
definitions only: `te.func` splits it in two, both of them pure:
- the clamp, max(min(value, extent - 1), 0);
- a check: one more output of the function, the largest of all values that the definition uses, as
  uint64, where a negative value is larger than any extent (`index_check`). Where a call decides the
  extent, the values that lie inside count as 0.
So a check is scheduled, lowered and proved like any other tensor; no threads race to report; and
the value that is reported depends neither on the schedule nor on the number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .conditions import all_of
from .dim import Dim, Extent, most
from .dtype import INT64, UINT64, DType
from .expr import LT, And, Cast, Expr, Max, Min, Not, Or, Select, const, index
from .index_check import IndexCheck
from .node import Node
from .visit import transform, walk


@dataclass(frozen=True, slots=True, eq=False)
class Checked(Expr):
    """The int64 `value` where 0 <= value < extent; elsewhere it is clamped, and the call fails.
    Only in a te.compute.

    what: the user's name for the value.
    """

    value: Expr
    extent: Extent
    what: str

    @property
    def dtype(self) -> DType:
        return INT64


def clamped(value: Expr, extent: Extent) -> Expr:
    """The int64 `value` moved into 0 .. extent-1; 0 where the extent is 0."""
    if most(extent) <= 1:  # what is simplified later leaves what was computed for it
        return index(0)
    last = extent - 1 if isinstance(extent, Dim) else index(extent - 1)
    return Max(Min(value, last), index(0))


def without_checks(value: Expr) -> Expr:
    """The expression with its checked values clamped."""

    def rule(node: Node) -> Node:
        return clamped(node.value, node.extent) if isinstance(node, Checked) else node

    return transform(value, rule)


def has_checks(value: Expr) -> bool:
    """Whether something in the expression is checked."""
    return any(isinstance(node, Checked) for node in walk(value))


def checks_of(value: Expr) -> tuple[tuple[IndexCheck, Expr], ...]:
    """Each check of an expression, with what it takes the largest of: the checked value as uint64
    where the expression uses it, 0 where it takes another branch.
    """
    return tuple(dict.fromkeys(_checks(value, ())))


def _checks(expr: Expr, taken: tuple[Expr, ...]) -> Iterator[tuple[IndexCheck, Expr]]:
    """taken: the conditions under which `expr` is evaluated."""
    operands = [(child, taken) for child in expr.children() if isinstance(child, Expr)]
    match expr:
        case Checked(value, extent, what):
            name = extent.name if isinstance(extent, Dim) else extent
            used = _compared(without_checks(value), extent)
            if isinstance(extent, Dim):  # whether it has elements is what the check is about
                taken = tuple(asked for asked in taken if asked != LT(index(0), extent))
            on = without_checks(all_of(*taken))
            yield IndexCheck(what, name), Select(on, used, const(0, UINT64)) if taken else used
        case Select(condition, a, b):
            otherwise = (*taken, Not(condition))
            operands = [(condition, taken), (a, (*taken, condition)), (b, otherwise)]
        case And(a, b):
            operands = [(a, taken), (b, (*taken, a))]
        case Or(a, b):
            operands = [(a, taken), (b, (*taken, Not(a)))]
    for operand, where in operands:
        yield from _checks(operand, where)


def _compared(value: Expr, extent: Extent) -> Expr:
    """What a check takes the largest of for a value, as uint64."""
    bits: Expr = Cast(value, UINT64)
    if not isinstance(extent, Dim):
        return bits
    if extent.low == 0:  # no value is inside, and 0 would say that all are
        bits = Select(extent < 1, const((1 << 64) - 1, UINT64), bits)
    return Select(all_of(index(0) <= value, value < extent), const(0, UINT64), bits)
