"""Write what an instruction set lacks with operations that it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeGuard

from ....tir.dtype import FLOAT32, INT32, INT64
from ....tir.errors import InternalError
from ....tir.expr import (
    LT,
    NE,
    Add,
    Call,
    Cast,
    Const,
    Expr,
    FloorDiv,
    Let,
    Max,
    Min,
    Mul,
    Select,
    Sub,
    Var,
    const,
)
from ....tir.func import PrimFunc
from ....tir.intrinsics import FLOOR, MAX_ANY, MIN_ANY, ROUND, SCALE
from ....tir.lowered import Reinterpret
from ....tir.node import Node
from ....tir.target.target import Target
from ....tir.visit import transform, walk
from ...isa.isa import isa

_BIAS = {32: 127, 64: 1023}  # the largest exponent of a float


@dataclass(frozen=True, slots=True)
class Legalise:
    """Replace `floor` and `scale` where the target has no instruction for them; make Min and Max of
    a float and a number one instruction.

    floor(x)    ->  r = round(x); r - 1 where x < r, else r
    scale(x, n) ->  x * 2^q * 2^q * 2^q * 2^(n - 3*q), q = n // 4, each power made of its exponent
    bits; n where it is NaN, unless it is named min_any(_, 1.0) or so, which never is. Where a name
    is between two numbers, x * 2^n, or x * 2^q * 2^(n - q) with q = n // 2, if these powers fit
    max(x, 1.0)  ->  max_any(1.0, x), which gives x where x is NaN, or a zero beside another one

    Requires: no elementary function is left. Ensures: every Call has an entry in the target's
    tables.
    """

    target: Target

    def __call__(self, func: PrimFunc) -> PrimFunc:
        tables = isa(self.target)
        named = {node.var: node.value for node in walk(func.body) if _is_never_nan(node)}

        def rule(node: Node) -> Node:
            if isinstance(node, Min | Max):
                return _with_number(node)
            if not isinstance(node, Call) or tables.has(node.intrinsic.name, node.dtype):
                return node
            if node.intrinsic == FLOOR:
                return _floor(node.arguments[0])
            if node.intrinsic == SCALE:
                x, n = node.arguments
                return _scale(x, n, named)
            raise InternalError(
                f"legalise: '{node.intrinsic.name}' of {node.dtype} has no instruction and no "
                "expansion for "
                f"{self.target}; expected an elementary function to be expanded before.",
                code="legalise-call",
            )

        return func.with_body(transform(func.body, rule))


def _with_number(node: Min | Max) -> Expr:
    first, other = (node.b, node.a) if _is_number(node.b) else (node.a, node.b)
    if not node.dtype.is_float or not _is_number(first):
        return node
    return Call(MIN_ANY if isinstance(node, Min) else MAX_ANY, (first, other))


def _is_number(expr: Expr) -> bool:
    return isinstance(expr, Const) and expr.value == expr.value


def _floor(x: Expr) -> Expr:
    value, rounded = Var("x", x.dtype), Var("rounded", x.dtype)
    below = Sub(rounded, const(1.0, x.dtype))
    body = Select(LT(value, rounded), below, rounded)
    return Let(value, x, Let(rounded, Call(ROUND, (value,)), body))


def _is_between(n: Expr, least: int, most: int, named: Mapping[Var, Expr]) -> bool:
    """Whether it is a name of max_any(min_any(_, most), least), or nearer numbers than these."""
    lower = named.get(n) if isinstance(n, Var) else None
    if not isinstance(lower, Call) or lower.intrinsic != MAX_ANY:
        return False
    given, low = lower.arguments
    upper = named.get(given, given) if isinstance(given, Var) else given
    if not isinstance(upper, Call) or upper.intrinsic != MIN_ANY:
        return False
    high = upper.arguments[1]
    if not isinstance(low, Const) or not isinstance(high, Const):
        return False
    return least <= low.value and high.value <= most


def _is_never_nan(node: Node) -> TypeGuard[Let]:
    """Whether a name stands for the smaller one, or the larger one, of a value and a number: the
    number, where the value is none.
    """
    if not isinstance(node, Let) or not isinstance(node.value, Call):
        return False
    chosen = node.value
    return chosen.intrinsic in (MIN_ANY, MAX_ANY) and _is_number(chosen.arguments[1])


def _scale(x: Expr, n: Expr, named: Mapping[Var, Expr]) -> Expr:
    """2^n in one factor or two, where it is bounded so, else in four: the exponent of each fits,
    whatever n is, and only the last product rounds. named: what is never NaN, by its name.
    """
    bias = _BIAS[x.dtype.bits]
    if _is_between(n, 1 - bias, bias, named):
        return Mul(x, _power_of_two(Cast(n, INT32), x))
    if _is_between(n, 2 * (1 - bias), 2 * bias, named):
        whole, half = Var("n", INT32), Var("q", INT32)
        first = Mul(x, _power_of_two(half, x))
        product = Mul(first, _power_of_two(Sub(whole, half), x))
        halved = Let(half, FloorDiv(whole, const(2, INT32)), product)
        return Let(whole, Cast(n, INT32), halved)
    return _scale_by_four(x, n, named)


def _scale_by_four(x: Expr, n: Expr, named: Mapping[Var, Expr]) -> Expr:
    limit = 496.0 if x.dtype == FLOAT32 else 4080.0  # beyond it every result is 0 or infinite
    most, least = (const(sign * limit, n.dtype) for sign in (1, -1))
    given = Var("power", n.dtype)
    clamped = Call(MAX_ANY, (Call(MIN_ANY, (given, most)), least))
    power, quarter, step = Var("n", INT32), Var("q", INT32), Var("step", x.dtype)
    rest = Sub(power, Mul(quarter, const(3, INT32)))
    product: Expr = x
    for factor in (step, step, step, _power_of_two(rest, x)):
        product = Mul(product, factor)
    inner = Let(
        quarter, FloorDiv(power, const(4, INT32)), Let(step, _power_of_two(quarter, x), product)
    )
    finite = Let(power, Cast(clamped, INT32), inner)
    body = finite if n in named else Select(NE(given, given), given, finite)
    return Let(given, n, body)


def _power_of_two(exponent: Expr, like: Expr) -> Expr:
    biased = Add(exponent, const(_BIAS[like.dtype.bits], INT32))
    if like.dtype == FLOAT32:
        return Reinterpret(Mul(biased, const(1 << 23, INT32)), like.dtype)
    bits = Mul(Cast(biased, INT64), Const(1 << 52, INT64))
    return Reinterpret(bits, like.dtype)
