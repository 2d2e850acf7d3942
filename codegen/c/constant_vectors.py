"""Operations that read a vector of numbers, which is declared once, at the top of the function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ...tir.dtype import INT32, INT64, DType
from ...tir.expr import Expr, const
from ...tir.lowered import Shuffle
from ..isa.lookup import Lookup
from ..isa.shuffles import lanes_of_second, number_of_four
from ..text.scalars import Scalars

# the name of an operation, the type that it is looked up with, the operands
Application: TypeAlias = tuple[str, DType, Sequence[Expr | str]]


def of_lookup(writer: Scalars, found: Lookup, kind: DType) -> Application:
    """Numbers of a table."""
    numbers = ", ".join(writer.scalar(const(number, kind.scalar)) for number in found.numbers)
    text = writer.isa.apply("lookup_table", kind, numbers)
    table = writer.lines.once(writer.isa.types[kind], "tw_table", text)
    if not found.high:
        return "lookup", kind, (found.index, table)
    text = writer.isa.apply("lookup_halves", kind, table)
    halves = writer.lines.once(writer.isa.types[INT32.with_lanes(kind.lanes)], "tw_halves", text)
    return "lookup_high", kind, (found.index, halves)


def of_shuffle(writer: Scalars, expr: Shuffle) -> Application:
    """Lanes of two vectors in any order, or of one."""
    kind, order = expr.dtype, number_of_four(expr.order)
    if writer.isa.has("shuffle_order", kind):
        words = (INT32 if kind.bits == INT32.bits else INT64).with_lanes(kind.lanes)
        text = writer.isa.apply("shuffle_order", kind, ", ".join(map(str, expr.order)))
        order = writer.lines.once(writer.isa.types[words], "tw_order", text)
    if max(expr.order) < kind.lanes:
        return "shuffle_one", kind, (expr.a, "", order)
    return "shuffle", kind, (expr.a, expr.b, order, lanes_of_second(kind, expr.order))
