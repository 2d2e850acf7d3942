"""Divide integers as floats, which vectors do."""

from __future__ import annotations

from dataclasses import dataclass

from ....tir.analysis.sums import is_data
from ....tir.buffer import Load
from ....tir.dtype import FLOAT32, FLOAT64, INT32, INT64
from ....tir.expr import (
    EQ,
    LT,
    NE,
    Add,
    And,
    BitXor,
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
from ....tir.intrinsics import FLOOR, MIN_ANY, ROUND
from ....tir.node import Node
from ....tir.stmt import Stmt, Store
from ....tir.target.target import Target
from ...isa.isa import isa

# floats as wide as integers, and the largest that is below the end of these
_FLOATS = {INT32: (FLOAT32, 2.0**31 - 2.0**7), INT64: (FLOAT64, 2.0**63 - 2.0**10)}


@dataclass(frozen=True, slots=True)
class IntegerQuotients:
    """Write quotients and remainders of data with floats, where the target has vectors of both.

    Of int32, by what is no constant, with a division of float64:

    a // b  ->  0 where b is 0, 0 - a where it is -1, else int32(floor(float64(a) / float64(b)))
    a % b   ->  0 where b is 0, else a - b * (a // b)

    Exact: a quotient that is no integer is at least 1 / |b| away from the next one, and rounding
    moves it by at most 2**31 / |b| / 2**53.

    With AVX-512, which multiplies and converts int64, of int32 and int64 with floats as wide, in
    two steps by one reciprocal y of b:

    q = round(a * y), r = a - q * b;  p = round(r * y), s = r - p * b
    a // b  ->  q + p, and 1 less where s is not 0 and has another sign than b
    a % b   ->  s, and b more there

    Exact: with floats of n bits (24, 53), y, the product and both conversions are off by 2**(2 - n)
    together, and q is kept below the end of the integers; so |r| is at most |b| / 2 and 5 * 2**7 or
    5 * 2**10 more, |r * y| is off by less than 2**-11, and |s| is less than |b|. Sums and products
    wrap around alike.

    Indices keep their divisions, whose ranges are asked for. Requires: scalar expressions; casts
    whose values fit (SaturateCasts has run).
    """

    target: Target

    def __call__(self, func: PrimFunc) -> PrimFunc:
        tables = isa(self.target)
        if not tables.vector_bytes:
            return func
        longs = INT64.with_lanes(tables.vector_bytes // INT64.bytes)
        body = _rewritten(func.body, tables.has("cast_float64", longs))
        assert isinstance(body, Stmt)
        return func if body is func.body else func.with_body(body)


def _rewritten(node: Node, twice: bool) -> Node:
    """twice: whether the target has what two steps take."""
    kept = node.indices if isinstance(node, Load | Store) else ()
    made = node.map_children(lambda child: child if child in kept else _rewritten(child, twice))
    if not isinstance(made, FloorDiv | FloorMod) or made.dtype not in _FLOATS:
        return made
    if twice and is_data(made) and not _is_shift(made.b):
        return _in_two_steps(made)
    is_plain = made.dtype == INT64 or isinstance(made.b, Const)
    return made if is_plain else _quotient(made)


def _is_shift(divisor: Expr) -> bool:
    """Whether a division is none: by 0, or by a power of two."""
    return isinstance(divisor, Const) and (number := abs(int(divisor.value))) & (number - 1) == 0


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


def _in_two_steps(expr: FloorDiv | FloorMod) -> Expr:
    kind = expr.dtype
    number, most = _FLOATS[kind]
    zero, one = const(0, kind), const(1, kind)
    a, b, q, r, p, s = (Var(name, kind) for name in "abqrps")
    y = Var("y", number)
    is_zero = EQ(b, zero)
    divisor = expr.b if isinstance(expr.b, Const) else Select(is_zero, one, b)
    other = And(NE(s, zero), LT(BitXor(s, b), zero))
    result: Expr = Select(other, Add(s, b), s)
    if isinstance(expr, FloorDiv):
        result = Sub(Add(q, p), Select(other, one, zero))
    if not isinstance(expr.b, Const):
        result = Select(is_zero, zero, result)
    whole = Call(MIN_ANY, (_rounded_product(a, y), const(most, number)))
    steps = (
        (a, expr.a),
        (b, expr.b),
        (y, Div(const(1.0, number), Cast(divisor, number))),
        (q, Cast(whole, kind)),
        (r, Sub(a, Mul(q, b))),
        (p, Cast(_rounded_product(r, y), kind)),
        (s, Sub(r, Mul(p, b))),
    )
    for var, value in reversed(steps):
        result = Let(var, value, result)
    return result


def _rounded_product(value: Expr, y: Var) -> Expr:
    return Call(ROUND, (Mul(Cast(value, y.type), y),))
