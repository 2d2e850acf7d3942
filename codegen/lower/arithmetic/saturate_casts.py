"""Write conversions of floats to integers so that the machine's own conversion suffices."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ....tir.dtype import FLOAT32, INT32
from ....tir.expr import EQ, LT, Call, Cast, Const, Expr, Let, Max, Min, Select, Var, const
from ....tir.func import PrimFunc
from ....tir.intrinsics import FLOOR, MAX_ANY, MIN_ANY, ROUND
from ....tir.node import Node
from ....tir.number import integer_range
from ....tir.visit import transform


@dataclass(frozen=True, slots=True)
class SaturateCasts:
    """Clamp what is converted from a float to an integer, and give NaN the value 0.

    cast(x, "uint8")  ->  cast(min_any(max_any(x, 0.0), 255.0), "uint8")
    cast(x, "int8")   ->  cast(select(x == x, min_any(max_any(x, -128.0), 127.0), 0.0), "int8")
    cast(x, "int32")  ->  select(x == x, select(x < 2147483648.0,
                                                cast(max_any(x, -2147483648.0), "int32"),
                                                2147483647), 0)

    max_any gives its second operand where the first is NaN, so that a lower end of 0 needs no more.
    The last form is for an upper end that the float type cannot hold, 2147483647 in float32; in the
    second one what is selected is a float, because not every target has a mask for 8 bits. What the
    bounds of x rule out is not written, so a value that is clamped already costs nothing more.

    What becomes a narrow integer and a float again, or a wider integer, stays as wide as it is:

    cast(cast(x, "uint8"), "float32")  ->  cast(cast(min_any(...), "int32"), "float32")

    What is rounded is clamped before: the ends are whole numbers, and many a processor rounds as it
    converts.

    cast(round(x), "uint8")  ->  cast(round(min_any(max_any(x, 0.0), 255.0)), "uint8")
    Requires: no vectors. Ensures: a float that is converted to an integer lies in its range, and is
    not NaN, where the result is used. The passes after this one keep to it.
    """

    def __call__(self, func: PrimFunc) -> PrimFunc:
        return func.with_body(transform(func.body, _rule))


def _rule(node: Node) -> Node:
    if not isinstance(node, Cast):
        return node
    value = node.value
    wider = node.type.is_integer and value.dtype.is_integer and node.type.bits > value.dtype.bits
    if node.type == FLOAT32 or (wider and node.type.bits <= INT32.bits):
        wide = _widened(value)
        return node if wide is None else Cast(wide, node.type)
    if not node.type.is_integer or not value.dtype.is_float:
        return node
    return _saturated(Cast(Cast(value, FLOAT32), node.type) if value.dtype.is_storage else node)


def _widened(value: Expr) -> Expr | None:
    """A float32 that was converted to an integer of 8 or 16 bits, in whose range it lies, as an
    int32; None for others.
    """
    match value:
        case Let(var, bound, body):
            wide = _widened(body)
            return None if wide is None else Let(var, bound, wide)
        case Cast(inner, kind) if (
            inner.dtype == FLOAT32 and kind.is_integer and kind.bits in (8, 16)
        ):
            return Cast(inner, INT32)
    return None


def _saturated(cast: Cast) -> Expr:
    if isinstance(cast.value, Let):
        let = cast.value
        return Let(let.var, let.value, _saturated(Cast(let.body, cast.type)))
    found = _range(cast.value)
    low, high = integer_range(cast.type)
    if low <= found.low and found.high < high + 1 and not found.nan:
        return cast
    kind, given = cast.value.dtype, cast.value
    exact = int(const(high, kind).value) == high
    is_rounded = exact and isinstance(given, Call) and given.intrinsic == ROUND
    if is_rounded and isinstance(given, Call):
        (given,) = given.arguments
    bound = given if isinstance(given, Var) else Var("x", kind)
    value: Expr = bound
    drops_nan = found.nan and low == 0 and exact
    if found.low < low or drops_nan:
        value = Call(MAX_ANY, (value, const(low, kind)))
    if found.high >= high + 1 and exact:
        value = Call(MIN_ANY, (value, const(high, kind)))
    if found.nan and exact and not drops_nan:
        value = Select(EQ(bound, bound), value, const(0.0, kind))
    result: Expr = Cast(Call(ROUND, (value,)) if is_rounded else value, cast.type)
    if found.high >= high + 1 and not exact:
        result = Select(LT(bound, const(high + 1, kind)), result, const(high, cast.type))
    if found.nan and not exact:
        result = Select(EQ(bound, bound), result, const(0, cast.type))
    return result if bound is given else Let(bound, given, result)


@dataclass(frozen=True, slots=True)
class _Range:
    """The bounds of a float where it is a number, and whether it may be NaN."""

    low: float = -math.inf
    high: float = math.inf
    nan: bool = True

    def negated(self) -> _Range:
        """The range of the negative value."""
        return _Range(-self.high, -self.low, self.nan)

    def union(self, other: _Range) -> _Range:
        """What one of two values may be."""
        low, high = min(self.low, other.low), max(self.high, other.high)
        return _Range(low, high, self.nan or other.nan)

    def smaller(self, other: _Range, *, drops_nan: bool) -> _Range:
        """The smaller of two values; drops_nan: it may be the other one where one is NaN."""
        high = min(self.high, other.high)
        if drops_nan and self.nan:
            high = max(high, other.high)
        if drops_nan and other.nan:
            high = max(high, self.high)
        return _Range(min(self.low, other.low), high, self.nan or other.nan)


def _range(expr: Expr) -> _Range:
    match expr:
        case Const() if expr.value == expr.value:
            return _Range(float(expr.value), float(expr.value), False)
        case Cast(whole, kind) if not whole.dtype.is_float:
            low, high = (float(const(end, kind).value) for end in integer_range(whole.dtype))
            inside = _rounded_range(whole)
            return _Range(max(low, inside.low), min(high, inside.high), False)
        case Select(_, a, b):
            return _range(a).union(_range(b))
        case Call(intrinsic, (a,)) if intrinsic in (FLOOR, ROUND):
            inside = _range(a)
            return _Range(
                _whole(math.floor, inside.low), _whole(math.ceil, inside.high), inside.nan
            )
        case Min(a, b):
            return _range(a).smaller(_range(b), drops_nan=False)
        case Max(a, b):
            return _range(a).negated().smaller(_range(b).negated(), drops_nan=False).negated()
        case Call(intrinsic, (a, b)) if intrinsic == MIN_ANY:
            return _range(a).smaller(_range(b), drops_nan=True)
        case Call(intrinsic, (a, b)) if intrinsic == MAX_ANY:
            return _range(a).negated().smaller(_range(b).negated(), drops_nan=True).negated()
    return _Range()


def _rounded_range(whole: Expr) -> _Range:
    """The bounds of an integer that was converted from a float, in whose range it lies; of others
    none.
    """
    while isinstance(whole, Let):
        whole = whole.body
    if not isinstance(whole, Cast) or not whole.value.dtype.is_float:
        return _Range()
    inside = _range(whole.value)
    return _Range(_whole(math.floor, inside.low), _whole(math.ceil, inside.high))


def _whole(to: Callable[[float], int], value: float) -> float:
    return float(to(value)) if math.isfinite(value) else value
