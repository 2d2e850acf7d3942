"""Write conversions of storage types in the integer arithmetic of their bits."""

from __future__ import annotations

from dataclasses import dataclass

from ....tir.dtype import FLOAT32, INT32, DType, TypeKind, dtype
from ....tir.expr import (
    EQ,
    LT,
    Add,
    BitAnd,
    BitOr,
    BitXor,
    Cast,
    Expr,
    Let,
    Min,
    Mul,
    Select,
    ShiftLeft,
    ShiftRight,
    Sub,
    Var,
    const,
)
from ....tir.func import PrimFunc
from ....tir.lowered import Reinterpret
from ....tir.node import Node
from ....tir.target.target import Target
from ....tir.visit import transform
from ...isa.isa import Isa, isa

_BYTE, _HALF = dtype("uint8"), dtype("uint16")


@dataclass(frozen=True, slots=True)
class StorageCasts:
    """Expand each conversion of a storage type that the target has no instruction for.

    cast(x, "float32") of bfloat16  ->  reinterpret(cast(reinterpret(x, "uint16"), "int32") << 16,
                                                    "float32")

    Conversions between a float type of storage and another than float32 go by way of float32, those
    of integers of less than a byte by way of int32.
    Requires: no vectors; a float that becomes an integer lies in its range. Ensures: a Cast of a
    storage type has an entry in the target's tables.
    """

    target: Target

    def __call__(self, func: PrimFunc) -> PrimFunc:
        tables = isa(self.target)

        def rule(node: Node) -> Node:
            if not isinstance(node, Cast):
                return node
            value = node.value
            if value.dtype.is_storage:
                value = _loaded(value, tables)
            if node.type.is_storage:
                return _stored(value, node.type, tables)
            return node if value is node.value else _cast(value, node.type)

        return func.with_body(transform(func.body, rule))


@dataclass(frozen=True, slots=True)
class Layout:
    """A float type as fields of bits: sign, exponent, mantissa from the top.

    infinity: the bits, without the sign, from which on there are no numbers; what is too large
    becomes these. nan: those that a NaN becomes. finite: whether all are numbers, without the sign.
    negative_zero: whether there is one; its bits are the only NaN where there is none.
    """

    bits: int
    mantissa: int
    bias: int
    infinity: int
    nan: int
    finite: bool = False
    negative_zero: bool = True


LAYOUTS = {
    TypeKind.FLOAT: Layout(16, 10, 15, 0x7C00, 0x7E00),
    TypeKind.BFLOAT: Layout(16, 7, 127, 0x7F80, 0x7FC0),
    TypeKind.FLOAT8_E4M3FN: Layout(8, 3, 7, 0x7F, 0x7F),
    TypeKind.FLOAT8_E5M2: Layout(8, 2, 15, 0x7C, 0x7E),
    TypeKind.FLOAT8_E4M3FNUZ: Layout(8, 3, 8, 0x80, 0x80, True, False),
    TypeKind.FLOAT8_E5M2FNUZ: Layout(8, 2, 16, 0x80, 0x80, True, False),
    TypeKind.FLOAT4_E2M1FN: Layout(4, 1, 1, 0x7, 0x0, True),
}


def _number(value: int) -> Expr:
    return const(value, INT32)


def _cast(value: Expr, to: DType) -> Expr:
    return value if value.dtype == to else Cast(value, to)


def _unsigned(kind: DType) -> DType:
    return _HALF if kind.bits == 16 else _BYTE


def _loaded(value: Expr, tables: Isa) -> Expr:
    """A value of a storage type as float32 or int32."""
    kind = value.dtype
    if kind.is_float and tables.has("cast_float32", kind):
        return Cast(value, FLOAT32)
    bits = Cast(Reinterpret(value, _unsigned(kind)), INT32)
    if kind.is_float:
        return float_of_bits(bits, LAYOUTS[kind.kind])
    low = BitAnd(bits, _number((1 << kind.bits) - 1))
    if kind.kind is TypeKind.UINT:
        return low
    # of four bits the highest counts -8: (x ^ 8) - 8
    highest = _number(1 << (kind.bits - 1))
    return Sub(BitXor(low, highest), highest)


def _stored(value: Expr, kind: DType, tables: Isa) -> Expr:
    """A number or a truth value as a storage type."""
    if not kind.is_float:
        bits: Expr = BitAnd(_cast(value, INT32), _number((1 << kind.bits) - 1))
    elif tables.has(f"cast_{kind}", FLOAT32):
        return Cast(_cast(value, FLOAT32), kind)
    else:
        bits = bits_of_float(_cast(value, FLOAT32), LAYOUTS[kind.kind])
    return Reinterpret(Cast(bits, _unsigned(kind)), kind)


def float_of_bits(bits: Expr, layout: Layout) -> Expr:
    """The float32 of a float type's bits, an int32.

    Exponent and mantissa move to their places in float32; a product with a power of two, which is
    exact, sets the exponent's bias right, of numbers without a full mantissa too. What is no number
    gets the highest exponent instead.
    """
    low = 23 - layout.mantissa
    if layout.bias == 127:
        return Reinterpret(ShiftLeft(bits, _number(low)), FLOAT32)
    stored, moved = Var("bits", INT32), Var("moved", INT32)
    magnitude = BitAnd(stored, _number((1 << (layout.bits - 1)) - 1))
    scaled = Mul(Reinterpret(moved, FLOAT32), const(2.0 ** (127 - layout.bias), FLOAT32))
    chosen: Expr = Reinterpret(scaled, INT32)
    if not layout.finite:
        special = BitOr(moved, _number(0x7F800000))
        chosen = Select(LT(moved, _number(layout.infinity << low)), chosen, special)
    if not layout.negative_zero:
        chosen = Select(EQ(stored, _number(layout.nan)), _number(0x7FC00000), chosen)
    sign = ShiftLeft(ShiftRight(stored, _number(layout.bits - 1)), _number(31))
    signed = Reinterpret(BitOr(chosen, sign), FLOAT32)
    return Let(stored, bits, Let(moved, ShiftLeft(magnitude, _number(low)), signed))


def bits_of_float(value: Expr, layout: Layout) -> Expr:
    """The bits, an int32, of the nearest number of a float type, ties to the even one.

    Numbers with a full mantissa are rounded by an integer sum, which carries into the exponent:
    half of the last place, less one where the last bit kept is 0. Smaller ones are rounded by a
    float sum with the number whose last place is the smallest number of the type. F. Giesen
    published both in his conversions of half floats.
    """
    low = 23 - layout.mantissa
    x, whole, magnitude = Var("x", FLOAT32), Var("whole", INT32), Var("magnitude", INT32)
    last = BitAnd(ShiftRight(magnitude, _number(low)), _number(1))
    rebias = ((layout.bias - 127) << 23) + (1 << (low - 1)) - 1
    rounded: Expr = ShiftRight(Add(Add(magnitude, _number(rebias)), last), _number(low))
    if layout.bias != 127:
        anchor = const(2.0 ** (24 - layout.bias - layout.mantissa), FLOAT32)
        total = Reinterpret(Add(Reinterpret(magnitude, FLOAT32), anchor), INT32)
        small = Sub(total, Reinterpret(anchor, INT32))
        smallest = _number((128 - layout.bias) << 23)  # the first one with a full mantissa
        rounded = Select(LT(magnitude, smallest), small, rounded)
    number = Min(rounded, _number(layout.infinity))
    chosen = Select(EQ(x, x), number, _number(layout.nan))
    sign = BitAnd(ShiftRight(whole, _number(32 - layout.bits)), _number(1 << (layout.bits - 1)))
    signed: Expr = BitOr(chosen, sign)
    if not layout.negative_zero:
        bits = Var("bits", INT32)
        signed = Let(bits, chosen, Select(EQ(bits, _number(0)), bits, BitOr(bits, sign)))
    below = Let(magnitude, BitAnd(whole, _number(0x7FFFFFFF)), signed)
    return Let(x, value, Let(whole, Reinterpret(x, INT32), below))
