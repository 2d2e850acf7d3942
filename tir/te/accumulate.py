"""In which type a sum or a product is computed: that of its terms, or a wider one by `dtype`.

Integers wrap around, so a sum of int8 terms in int8 is seldom what is meant. Where that can happen
and nothing says that it shall, the definition is refused.

    te.sum(A[i, k] * B[k, j], axis=k, dtype="int32")   # products and sum are int32
    te.sum(A[i, k] * B[k, j], axis=k, dtype="int8")    # both wrap around, as asked for
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..analysis.bounds import known_interval
from ..analysis.expr_size import parts_of
from ..dtype import INT32, DType
from ..dtype import dtype as as_dtype
from ..errors import IRError
from ..expr import (
    Add,
    Cast,
    Const,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    Max,
    Min,
    Mul,
    Select,
    Sub,
    Var,
    const,
)
from ..number import holds, integer_range
from ..operand_checks import check_computable

_EXACT_FROM = 32  # bits: sums of types that are as wide are left to wrap, as in C


def accumulated(
    function: str,
    value: Expr,
    axes: Sequence[Var],
    extents: Sequence[int],
    dtype: str | DType | None,
) -> Expr:
    """The terms of the sum or product `function`, in the type that it is computed in.

    Raises: IRError where `dtype` does not hold the terms, and without one where the result may lie
    outside of a type of fewer than 32 bits.
    """
    if dtype is None:
        _check_fits(function, value, axes, extents)
        return value
    kind = as_dtype(dtype)
    check_computable(f"te.{function}", kind)
    if kind.is_bool or not holds(kind, value.dtype):
        raise IRError(
            f"te.{function}: dtype is {kind}, and the terms have type {value.dtype}; expected a "
            "number type that holds them.",
            code="te-accumulator",
            hints=(f"te.cast(x, '{kind}') converts the terms first.",),
        )
    return value if value.dtype == kind else _widened(value, kind)


def _widened(value: Expr, kind: DType) -> Expr:
    """`value` as `kind`, with its arithmetic computed in that type.

    What else it is made of, such as shifts, conversions and calls, keeps its type and is converted.
    """
    made: dict[int, Expr] = {}
    for part in parts_of(value):
        if not isinstance(part, Expr) or part.dtype != value.dtype:
            continue
        match part:
            case Const(number):
                made[id(part)] = const(number, kind)
            case Add(a, b) | Sub(a, b) | Mul(a, b) | Div(a, b) | Min(a, b) | Max(a, b):
                made[id(part)] = type(part)(made[id(a)], made[id(b)])
            case FloorDiv(a, b) | FloorMod(a, b) if kind.is_integer:
                made[id(part)] = type(part)(made[id(a)], made[id(b)])
            case Select(condition, a, b):
                made[id(part)] = Select(condition, made[id(a)], made[id(b)])
            case _:
                made[id(part)] = Cast(part, kind)
    return made[id(value)]


def _check_fits(function: str, value: Expr, axes: Sequence[Var], extents: Sequence[int]) -> None:
    """Refuse a narrow integer type that may not hold the result. Raises: IRError."""
    kind = value.dtype
    if not kind.is_integer or kind.bits >= _EXACT_FROM:
        return
    count = math.prod(extents)
    ranges = {axis: (0, max(n - 1, 0)) for axis, n in zip(axes, extents, strict=True)}
    low, high = known_interval(value, ranges)
    least, most = integer_range(kind)
    if function == "sum":
        bounds = [min(low * count, 0), max(high * count, 0)]
    else:
        size = max(-low, high) ** min(count, kind.bits)  # 2 to the power of the bits is outside
        bounds = [-size if low < 0 else 1, size]
    if count < 2 or (least <= bounds[0] and bounds[1] <= most):
        return
    fits = function == "sum" and max(-bounds[0], bounds[1]) <= integer_range(INT32)[1]
    wide = "int32" if fits else "int64"
    raise IRError(
        f"te.{function}: {count} terms of type {kind} are combined in {kind}, which wraps around "
        f"outside of {least} .. {most}; expected a type for the result.",
        code="te-wraps",
        hints=(
            f'te.{function}(..., dtype="{wide}") computes the terms and the result in {wide}.',
            f'te.{function}(..., dtype="{kind}") wraps around on purpose.',
        ),
    )
