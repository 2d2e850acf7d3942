"""Divide integers of 32 bits as floats of 64, which vectors do."""

from __future__ import annotations

from dataclasses import dataclass

from ....tir.buffer import Load
from ....tir.dtype import FLOAT64, INT32
from ....tir.expr import (
    EQ,
    Call,
    Cast,
    Const,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    Let,
    Mul,
    Or,
    Select,
    Sub,
    Var,
    const,
)
from ....tir.func import PrimFunc
from ....tir.intrinsics import FLOOR
from ....tir.node import Node
from ....tir.stmt import Stmt, Store
from ....tir.target.target import Target
from ...isa.isa import isa


@dataclass(frozen=True, slots=True)
class IntegerQuotients:
    """Write quotients and remainders of int32 by what is no constant with a division of float64,
    where the target has vectors.

    a // b  ->  0 where b is 0, 0 - a where it is -1, else int32(floor(float64(a) / float64(b)))
    a % b   ->  0 where b is 0, else a - b * (a // b)

    Exact: a quotient that is no integer is at least 1 / |b| away from the next one, and rounding
    moves it by at most 2**31 / |b| / 2**53. Indices keep their divisions, whose ranges are asked
    for. Requires: scalar expressions; casts whose values fit (SaturateCasts has run).
    """

    target: Target

    def __call__(self, func: PrimFunc) -> PrimFunc:
        if not isa(self.target).vector_bytes:
            return func
        body = _rewritten(func.body)
        assert isinstance(body, Stmt)
        return func if body is func.body else func.with_body(body)


def _rewritten(node: Node) -> Node:
    kept = node.indices if isinstance(node, Load | Store) else ()
    made = node.map_children(lambda child: child if child in kept else _rewritten(child))
    if not isinstance(made, FloorDiv | FloorMod) or made.dtype != INT32:
        return made
    return made if isinstance(made.b, Const) else _quotient(made)


def _quotient(expr: FloorDiv | FloorMod) -> Expr:
    a, b = Var("a", INT32), Var("b", INT32)
    zero, one, minus_one = (const(number, INT32) for number in (0, 1, -1))
    is_zero, is_minus_one = EQ(b, zero), EQ(b, minus_one)
    divisor = Select(Or(is_zero, is_minus_one), one, b)
    floor = Call(FLOOR, (Div(Cast(a, FLOAT64), Cast(divisor, FLOAT64)),))
    quotient: Expr = Select(is_minus_one, Sub(zero, a), Cast(floor, INT32))
    if isinstance(expr, FloorMod):
        quotient = Sub(a, Mul(b, quotient))
    return Let(a, expr.a, Let(b, expr.b, Select(is_zero, zero, quotient)))
