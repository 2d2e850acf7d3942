"""Decide masks that are on, or off, in every lane."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ....tir.analysis.bounds import bounds
from ....tir.analysis.linear import Interval, Ranges
from ....tir.analysis.simplify import simplify_stmt
from ....tir.buffer import Load
from ....tir.dtype import BOOL
from ....tir.expr import FALSE, LE, LT, TRUE, And, Expr, Not, Or, Select, Var, const, is_const
from ....tir.func import PrimFunc
from ....tir.lowered import Broadcast
from ....tir.node import Node
from ....tir.stmt import NOTHING, For, Stmt, Store


@dataclass(frozen=True, slots=True)
class FoldMasks:
    """Drop masks that are on in all lanes, and stores and loads that are off in all.

    masked(C[ramp(i*16, 1, 16)], ramp(i*16, 1, 16) < 40) = x      i = 0: C[ramp(0, 1, 16)] = x
    i = 3: nothing

    Requires: no loop is VECTORIZED or UNROLLED. Ensures: no mask is a constant.
    """

    def __call__(self, func: PrimFunc) -> PrimFunc:
        body = _stmt(func.body, {})
        return func if body is func.body else func.with_body(simplify_stmt(body))


def _stmt(stmt: Stmt, ranges: Mapping[Var, Interval]) -> Stmt:
    if isinstance(stmt, For):
        ranges = {**ranges, stmt.var: (0, stmt.extent - 1)}

    def visit(child: Node) -> Node:
        if isinstance(child, Stmt):
            return _stmt(child, ranges)
        return _expr(child, ranges) if isinstance(child, Expr) else child

    result = stmt.map_children(visit)
    if isinstance(result, Store) and result.mask is not None:
        if _is_all(result.mask, False):
            return NOTHING
        if _is_all(result.mask, True):
            return replace(result, mask=None)
    return result


def _expr(expr: Expr, ranges: Ranges) -> Expr:
    if expr.dtype.lanes == 1:
        return expr
    result = expr.map_children(lambda c: _expr(c, ranges) if isinstance(c, Expr) else c)
    match result:
        case LT(a, b) | LE(a, b) if a.dtype.is_integer:
            return _compare(result, a, b, ranges)
        case And(a, b) | Or(a, b):
            neutral = isinstance(result, And)
            for part, other in ((a, b), (b, a)):
                if _is_all(part, neutral):
                    return other
                if _is_all(part, not neutral):
                    return part
        case Not(a) if _is_all(a, True) or _is_all(a, False):
            return Broadcast(const(not _is_all(a, True), BOOL), result.dtype.lanes)
        case Select() if _is_all(result.condition, True):
            return result.on_true
        case Select() if _is_all(result.condition, False):
            return result.on_false
        case Load() if result.mask is not None and _is_all(result.mask, True):
            return Load(result.buffer, result.indices)
        case Load() if result.mask is not None and _is_all(result.mask, False):
            zero = Broadcast(const(0, result.buffer.type), result.dtype.lanes)
            return zero if result.other is None else result.other
    return result


def _is_all(mask: Expr, value: bool) -> bool:
    return isinstance(mask, Broadcast) and mask.dtype.is_bool and is_const(mask.value, value)


def _compare(expr: LT | LE, a: Expr, b: Expr, ranges: Ranges) -> Expr:
    (low, high), (other_low, other_high) = (_of_all(side, ranges) for side in (a, b))
    margin = 0 if isinstance(expr, LE) else 1
    if high is not None and other_low is not None and high + margin <= other_low:
        return Broadcast(TRUE, expr.dtype.lanes)
    if low is not None and other_high is not None and low + margin > other_high:
        return Broadcast(FALSE, expr.dtype.lanes)
    return expr


def _of_all(side: Expr, ranges: Ranges) -> Interval:
    return bounds(side.value if isinstance(side, Broadcast) else side, ranges)
