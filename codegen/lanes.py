"""How an index or an address moves from lane to lane: which accesses are contiguous, strided,
scattered.

Vector indices are read lane by lane: a variable `lane` stands for the number of the lane, so that
what is known about scalar integers (linear forms, bounds, the simplifier) answers for vectors as
well.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..tir.analysis.bounds import bounds
from ..tir.analysis.linear import Linear, Ranges, expression, linear
from ..tir.analysis.simplify import simplify
from ..tir.buffer import Buffer, Load
from ..tir.dim import Dim
from ..tir.dtype import INT32
from ..tir.expr import (
    Add,
    Cast,
    Const,
    Expr,
    FloorDiv,
    FloorMod,
    Max,
    Min,
    Mul,
    Select,
    Sub,
    Var,
    add,
    const,
    floordiv,
    floormod,
    index,
    is_const,
    mul,
)
from ..tir.lowered import Broadcast, Ramp
from ..tir.node import Node
from ..tir.number import integer_range
from ..tir.visit import free_vars, transform

INT32_LIMIT = 1 << 31


@dataclass(frozen=True, slots=True)
class LaneAccess:
    """The address of an access in elements, as a function of the variable `lane`.

    offset = base + stride * lane where `stride` is a number; where it is None, offset is no such
    sum.
    values: variables that stand for vectors loaded to compute the address, with those vectors.
    """

    offset: Expr
    lane: Var
    lanes: int
    base: Expr
    stride: int | None
    values: Mapping[Var, Expr] = field(default_factory=dict)


def flat_offset(buffer: Buffer, indices: Sequence[Expr]) -> Expr:
    """The distance of an element from the start of its buffer, in elements; scalar indices.

    Rows lie as far apart as the sizes of a call say; of an aligned buffer as their bounds do.
    """
    is_dense = buffer.scope == "global" and not buffer.aligned
    inner = buffer.extents[1:] if is_dense else ()
    offset: Expr
    if any(isinstance(extent, Dim) for extent in inner):
        offset = indices[0]
        for extent, item in zip(inner, indices[1:], strict=True):
            offset = add(mul(offset, extent if isinstance(extent, Dim) else index(extent)), item)
        return offset
    offset = index(0)
    for stride, item in zip(buffer.strides, indices, strict=True):
        offset = add(offset, mul(item, index(stride)))
    return offset


def access(buffer: Buffer, indices: Sequence[Expr], ranges: Ranges) -> LaneAccess:
    """The address of an access whose indices may be vectors."""
    lanes = max((item.dtype.lanes for item in indices), default=1)
    lane = Var("lane")
    values: dict[Var, Expr] = {}
    scalars = [_of_lane(item, lane, values) for item in indices]
    return address(buffer, scalars, lane, lanes, ranges, values)


def address(
    buffer: Buffer,
    indices: Sequence[Expr],
    lane: Var,
    lanes: int,
    ranges: Ranges,
    values: Mapping[Var, Expr] | None = None,
) -> LaneAccess:
    """The address of an access whose indices are scalars that mention `lane`."""
    known = {**ranges, lane: (0, lanes - 1)} if lanes > 1 else ranges
    offset = simplify(flat_offset(buffer, indices), known)
    if lanes > 1:
        settled = settle(offset, lane, lanes)
        offset = offset if settled is offset else simplify(settled, known)
    moved = linear_in(offset, lane, values or {})
    base, stride = moved if moved is not None else (index(0), None)
    return LaneAccess(offset, lane, lanes, base, stride, values or {})


def _of_lane(expr: Expr, lane: Var, values: dict[Var, Expr]) -> Expr:
    """A vector index as the scalar index of one lane."""
    if expr.dtype.lanes == 1:
        return expr
    match expr:
        case Ramp():
            return add(_of_lane(expr.base, lane, values), mul(lane, index(expr.stride)))
        case Broadcast():
            return expr.value
        case Load() | Cast() | Var() | Select():
            var = Var("value")
            values[var] = expr
            return var
    return expr.map_children(lambda c: _of_lane(c, lane, values) if isinstance(c, Expr) else c)


def lane_value(expr: Expr, lane: int) -> Expr:
    """What a vector expression without loads is in one lane, as a scalar."""
    match expr:
        case Ramp():
            moved = const(lane * expr.stride, expr.base.dtype)
            return add(lane_value(expr.base, lane), moved)
        case Broadcast():
            return lane_value(expr.value, lane)
        case Cast(value, kind):
            inner = lane_value(value, lane)
            if isinstance(inner, Const) and kind.is_integer and inner.type.is_integer:
                return const(inner.value, kind.scalar)
            return Cast(inner, kind.scalar)
    return expr.map_children(lambda c: lane_value(c, lane) if isinstance(c, Expr) else c)


def lanes_on(mask: Expr) -> int | None:
    """A mask as a bit for each lane, where it is known; None where it is not."""
    lanes = [simplify(lane_value(mask, n), {}) for n in range(mask.dtype.lanes)]
    if not all(isinstance(lane, Const) for lane in lanes):
        return None
    return sum(1 << n for n, lane in enumerate(lanes) if is_const(lane, 1))


def linear_in(
    expr: Expr, var: Var, others: Mapping[Var, Expr] | None = None
) -> tuple[Expr, int] | None:
    """(base, stride) with expr = base + stride * var and nothing that varies in base; None where it
    is no such sum.
    """
    form = linear(expr)
    rest = form.without(var)
    varying = {var, *(others or ())}
    if any(not varying.isdisjoint(free_vars(atom)) for atom, _ in rest.terms):
        return None
    return expression(rest), form.coefficient(var)


def settle(expr: Expr, lane: Var, lanes: int) -> Expr:
    """Quotients and remainders that the lanes do not carry over, written without the lane.

    (16*i + lane) // 48 -> 16*i // 48        (16*i + lane) % 48 -> 16*i % 48 + lane        lane < 16
    """

    def rule(node: Node) -> Node:
        if not isinstance(node, FloorDiv | FloorMod) or not isinstance(node.b, Const):
            return node
        moved = linear_in(node.a, lane)
        if moved is None or moved[1] == 0:
            return node
        form = linear(moved[0])
        step = math.gcd(int(node.b.value), *(c for _, c in form.terms))
        first = form.constant % step
        span = moved[1] * (lanes - 1)
        if min(0, span) + first < 0 or max(0, span) + first >= step:
            return node
        base = expression(Linear(form.terms, form.constant - first))
        if isinstance(node, FloorDiv):
            return floordiv(base, node.b)
        return add(add(floormod(base, node.b), mul(lane, index(moved[1]))), index(first))

    return transform(expr, rule)


def narrow(
    expr: Expr,
    lane: Var,
    lanes: int,
    ranges: Ranges,
    values: Mapping[Var, Expr] | None = None,
) -> Expr | None:
    """The vector of int32 of a scalar integer expression that mentions `lane`; None where int32 may
    not hold it.

    Sums and products wrap around alike in both widths, so only the final value, which the caller
    bounds, and the operands of other operations must fit.
    """
    found = values or {}
    varying = {lane, *found}
    if varying.isdisjoint(free_vars(expr)):
        return Broadcast(narrow_scalar(expr), lanes)
    moved = linear_in(expr, lane, found)
    if moved is not None:
        return Ramp(narrow_scalar(moved[0]), moved[1], lanes)
    if isinstance(expr, Var):
        return _narrow_vector(found[expr])
    form = linear(expr)
    if form.terms != ((expr, 1),) or form.constant:
        return _sum(form, lane, lanes, ranges, found)
    known = lane_ranges(lane, lanes, ranges, found)
    if not isinstance(expr, FloorDiv | FloorMod | Min | Max):
        return None
    if not (fits_int32(expr.a, known) and fits_int32(expr.b, known)):
        wide = _wide(expr, lane, lanes, found) if fits_int32(expr, known) else None
        return None if wide is None else _narrow_vector(wide)
    a, b = (narrow(item, lane, lanes, ranges, found) for item in (expr.a, expr.b))
    if a is None or b is None:
        return None
    quotient = _by_product(expr, a, known)
    return type(expr)(a, b) if quotient is None else quotient


def _by_product(expr: FloorDiv | FloorMod | Min | Max, a: Expr, ranges: Ranges) -> Expr | None:
    """A quotient or a remainder by a number, of the vector `a` of what is divided, by a product and
    a shift, which vectors have: x // d is x * m >> s with m = ceil(2**s / d), as long as
    x * (m * d - 2**s) is below 2**s (T. Granlund, P. L. Montgomery, "Division by Invariant Integers
    using Multiplication", 1994). None where the product is no int32, and for powers of two, which
    are shifts.
    """
    if not isinstance(expr, FloorDiv | FloorMod) or not isinstance(expr.b, Const):
        return None
    low, high = bounds(expr.a, ranges)
    divisor = int(expr.b.value)
    if low is None or high is None or low < 0 or divisor < 3 or divisor & (divisor - 1) == 0:
        return None
    shift = next((s for s in range(31) if high * (-(1 << s) % divisor) < 1 << s), None)
    if shift is None or high * -(-(1 << shift) // divisor) >= INT32_LIMIT:
        return None
    factor = -(-(1 << shift) // divisor)
    lanes = a.dtype.lanes
    whole, power, number = (
        Broadcast(const(n, INT32), lanes) for n in (factor, 1 << shift, divisor)
    )
    quotient = FloorDiv(Mul(a, whole), power)
    return quotient if isinstance(expr, FloorDiv) else Sub(a, Mul(quotient, number))


def lane_ranges(lane: Var, lanes: int, ranges: Ranges, values: Mapping[Var, Expr]) -> Ranges:
    """The ranges with those of the lane's number, and of values that were widened to int64."""
    widened = {
        var: integer_range(value.value.dtype.scalar)
        for var, value in values.items()
        if isinstance(value, Cast) and value.value.dtype.is_integer
    }
    return {**ranges, **widened, lane: (0, lanes - 1)}


def _narrow_vector(value: Expr) -> Expr:
    """A vector of integers as one of int32; what was widened before stays as it was."""
    inner = value.value if isinstance(value, Cast) else value
    if inner.dtype.scalar == INT32:
        return inner
    return Cast(value, INT32.with_lanes(value.dtype.lanes))


def _wide(expr: Expr, lane: Var, lanes: int, values: Mapping[Var, Expr]) -> Expr | None:
    """The vector of int64 of minima and maxima of loaded values; None for anything else."""
    if isinstance(expr, Var) and expr in values:
        return values[expr]
    if {lane, *values}.isdisjoint(free_vars(expr)):
        return Broadcast(expr, lanes)
    if not isinstance(expr, Min | Max):
        return None
    a, b = (_wide(item, lane, lanes, values) for item in (expr.a, expr.b))
    return None if a is None or b is None else type(expr)(a, b)


def _sum(
    form: Linear, lane: Var, lanes: int, ranges: Ranges, values: Mapping[Var, Expr]
) -> Expr | None:
    fixed, result = Linear((), form.constant), None
    for atom, coefficient in form.terms:
        if {lane, *values}.isdisjoint(free_vars(atom)):
            fixed += Linear(((atom, coefficient),), 0)
            continue
        term = narrow(atom, lane, lanes, ranges, values)
        if term is None:
            return None
        if coefficient != 1:
            term = Mul(term, Broadcast(const(coefficient, INT32), lanes))
        result = term if result is None else Add(result, term)
    assert result is not None
    if not fixed.terms and not fixed.constant:
        return result
    return Add(result, Broadcast(narrow_scalar(expression(fixed)), lanes))


def narrow_scalar(expr: Expr) -> Expr:
    """A scalar integer as int32."""
    if isinstance(expr, Const):
        return const(expr.value, INT32)
    return expr if expr.dtype == INT32 else Cast(expr, INT32)


def fits_int32(expr: Expr, ranges: Ranges) -> bool:
    """Whether every value of the expression is an int32."""
    low, high = bounds(expr, ranges)
    return low is not None and high is not None and low >= -INT32_LIMIT and high < INT32_LIMIT
