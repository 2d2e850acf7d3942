"""Make floats of a few bits of a word without a conversion, which a GPU has few units for."""

from __future__ import annotations

from dataclasses import dataclass

from ....tir.dtype import BFLOAT16, FLOAT16, FLOAT32, INT32, dtype
from ....tir.expr import BitAnd, BitOr, Cast, Const, Expr, Sub, const
from ....tir.func import PrimFunc
from ....tir.lowered import Reinterpret
from ....tir.node import Node
from ....tir.stmt import Stmt

BYTE = dtype("uint8")
HELD = {FLOAT16: 1 << 11, BFLOAT16: 1 << 8}  # up to which all whole numbers are of a type
ONE = 1 << 23  # from here to its double floats are the whole numbers
BITS = 0x4B000000  # of float32(ONE), whose mantissa is 0


@dataclass(frozen=True, slots=True)
class MaskedFloats:
    """Put a number below 2**23 into the mantissa of 2**23, where a conjunction bounds it:

    float(a & c)                ->  F(a & c) - 2**23, where F(i) is the float of bits i | 0x4B000000
    float(a & c) - k            ->  F(a & c) - (2**23 + k), where k is a whole number, |k| <= 2**22
    float(a & c) - float(b)     ->  F(a & c) - F(b), where b is of uint8, or such a conjunction

    So are floats that are made by way of float16 or bfloat16, where these hold the number. Exact:
    both operands of the difference are floats, and so is what it is. A disjunction of a conjunction
    is one instruction. Requires: scalar expressions.
    """

    def __call__(self, func: PrimFunc) -> PrimFunc:
        body = _rewritten(func.body)
        assert isinstance(body, Stmt)
        return func if body is func.body else func.with_body(body)


def _rewritten(node: Node) -> Node:
    if isinstance(node, Sub) and (made := _difference(node)) is not None:
        return made
    if isinstance(node, Cast) and (bits := _masked(node)) is not None:
        return Sub(_float_of(bits), const(float(ONE), FLOAT32))
    return node.map_children(_rewritten)


def _difference(expr: Sub) -> Expr | None:
    bits = _masked(expr.a)
    if bits is None:
        return None
    match expr.b:
        case Const(value=int() | float() as value) if abs(value) <= ONE // 2 and value % 1 == 0:
            return Sub(_float_of(bits), const(ONE + float(value), FLOAT32))
        case Cast(value=value) if value.dtype == BYTE:
            return Sub(_float_of(bits), _float_of(Cast(value, INT32)))
    subtracted = _masked(expr.b)
    return None if subtracted is None else Sub(_float_of(bits), _float_of(subtracted))


def _masked(expr: Expr) -> BitAnd | None:
    """The conjunction with a constant that an expression is the float32 of."""
    if not isinstance(expr, Cast) or expr.type != FLOAT32:
        return None
    bits: Expr = expr.value
    most = ONE - 1
    if isinstance(bits, Cast) and bits.type in HELD:
        most, bits = HELD[bits.type], bits.value
    match bits:
        case BitAnd(b=Const(value=int() as mask)) if bits.dtype == INT32:
            return bits if 0 <= mask <= most else None
    return None


def _float_of(bits: Expr) -> Expr:
    """2**23 more than a number."""
    inner = bits.map_children(_rewritten)
    assert isinstance(inner, Expr)
    return Reinterpret(BitOr(inner, const(BITS, INT32)), FLOAT32)
