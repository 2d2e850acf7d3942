"""Write conversions of floats to integers so that the machine's own conversion suffices."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ....tir.dtype import FLOAT32
from ....tir.expr import EQ, LT, Call, Cast, Const, Expr, Let, Max, Min, Select, Var, const
from ....tir.func import PrimFunc
from ....tir.intrinsics import FLOOR, MAX_ANY, MIN_ANY, ROUND
from ....tir.node import Node
from ....tir.number import integer_range
from ....tir.visit import transform


@dataclass(frozen=True, slots=True)
class SaturateCasts:
    """Clamp what is converted from a float to an integer, and give NaN the value 0.

    cast(x, "int8")   ->  cast(select(x == x, min_any(max_any(x, -128.0), 127.0), 0.0), "int8")
    cast(x, "int32")  ->  select(x == x, select(x < 2147483648.0,
                                                cast(max_any(x, -2147483648.0), "int32"),
                                                2147483647), 0)

    The second form is for an upper end that the float type cannot hold, 2147483647 in float32; in
    the first one what is selected is a float, because not every target has a mask for 8 bits. What
    the bounds of x rule out is not written, so a value that is clamped already costs nothing more.
    Requires: no vectors. Ensures: a float that is converted to an integer lies in its range, and is
    not NaN, where the result is used. The passes after this one keep to it.
    """

    def __call__(self, func: PrimFunc) -> PrimFunc:
        return func.with_body(transform(func.body, _rule))


def _rule(node: Node) -> Node:
    if not isinstance(node, Cast) or not node.type.is_integer or not node.value.dtype.is_float:
        return node
    value = node.value
    return _saturated(Cast(Cast(value, FLOAT32), node.type) if value.dtype.is_storage else node)


def _saturated(cast: Cast) -> Expr:
    found = _range(cast.value)
    low, high = integer_range(cast.type)
    if low <= found.low and found.high < high + 1 and not found.nan:
        return cast
    kind = cast.value.dtype
    bound = cast.value if isinstance(cast.value, Var) else Var("x", kind)
    value: Expr = bound
    if found.low < low:
        value = Call(MAX_ANY, (value, const(low, kind)))
    exact = int(const(high, kind).value) == high
    if found.high >= high + 1 and exact:
        value = Call(MIN_ANY, (value, const(high, kind)))
    if found.nan and exact:
        value = Select(EQ(bound, bound), value, const(0.0, kind))
    result: Expr = Cast(value, cast.type)
    if found.high >= high + 1 and not exact:
        result = Select(LT(bound, const(high + 1, kind)), result, const(high, cast.type))
    if found.nan and not exact:
        result = Select(EQ(bound, bound), result, const(0, cast.type))
    return result if bound is cast.value else Let(bound, cast.value, result)


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
            return _Range(low, high, False)
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


def _whole(to: Callable[[float], int], value: float) -> float:
    return float(to(value)) if math.isfinite(value) else value
