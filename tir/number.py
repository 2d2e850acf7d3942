"""Python numbers in expressions: which of them a type can hold, and what it makes of others.

What a user writes must fit; where constants fold, integers wrap around, as the program itself
would.
"""

from __future__ import annotations

import math
from numbers import Integral, Real

import numpy as np

from .dtype import FLOAT32, FLOAT64, INT32, INT64, DType, TypeKind, dtype
from .errors import IRError, IRTypeError

_FINITE = frozenset(
    {
        TypeKind.FLOAT8_E4M3FN,
        TypeKind.FLOAT8_E4M3FNUZ,
        TypeKind.FLOAT8_E5M2FNUZ,
        TypeKind.FLOAT4_E2M1FN,
    }
)
_WIDER = tuple(dtype(name) for name in ("int16", "int32", "int64", "uint64"))


def integer_range(kind: DType) -> tuple[int, int]:
    """The least and the greatest value of an integer type, or of bool."""
    if kind.is_bool:
        return 0, 1
    if kind.kind is TypeKind.UINT:
        return 0, (1 << kind.bits) - 1
    return -(1 << (kind.bits - 1)), (1 << (kind.bits - 1)) - 1


def holds(wide: DType, narrow: DType) -> bool:
    """Whether one type holds the numbers of the other: a float those of integers, rounded, and of
    narrower floats.
    """
    if wide.is_bool:
        return narrow.is_bool
    if wide.is_float:
        return not narrow.is_float or narrow == wide or narrow.bits < wide.bits
    if narrow.is_float:
        return False
    (low, high), (least, most) = integer_range(narrow), integer_range(wide)
    return least <= low and high <= most


def common_type(a: DType, b: DType) -> DType | None:
    """The type to compute with that holds the numbers of both: one of the two where that does, else
    one of 32 bits, or of 64. None for uint64 beside a signed type.
    """
    wider = (FLOAT32, FLOAT64) if a.is_float or b.is_float else (INT32, INT64)
    fitting = (kind for kind in (a, b, *wider) if holds(kind, a) and holds(kind, b))
    return next((kind for kind in fitting if not kind.is_storage), None)


def has_infinity(kind: DType) -> bool:
    """Whether a float type holds the infinities."""
    return kind.kind not in _FINITE


def saturates(kind: DType) -> bool:
    """Whether a float type has neither infinities nor NaN: what is too large becomes its largest
    number.
    """
    return kind.kind is TypeKind.FLOAT4_E2M1FN


def nearest(value: float, kind: DType) -> int | float | bool:
    """`value` as a type holds it: a float rounded, an integer wrapped around."""
    if kind is INT64 and type(value) is int and -(1 << 63) <= value < 1 << 63:
        return value  # most are indices
    if kind.is_bool:
        return bool(value)
    if kind.is_float:
        with np.errstate(over="ignore"):
            return float(kind.numpy.type(value))
    low, high = integer_range(kind)
    number = int(value)
    return number if low <= number <= high else (number - low) % (high - low + 1) + low


def check_number(value: object, kind: DType) -> None:
    """Refuse what `kind` cannot hold: the infinities fit a float type, a fraction is rounded.

    Raises: IRTypeError for what is no number; IRError for a float where an integer is expected, and
    for a number out of range.
    """
    if not isinstance(value, Real | np.bool_):
        raise IRTypeError(
            f"expression: an operand is {value!r}; expected an expression or a number.",
            code="expr-operand",
            hints=("an element of a tensor is an expression: A[i, j].",),
        )
    if kind.is_float:
        _check_float(value, kind)
    elif not isinstance(value, Integral | np.bool_):
        raise IRError(
            f"expression: the number {value!r} does not fit type {kind}; expected an integer.",
            code="expr-number",
            hints=(f"cast the other operand: te.cast(x, 'float32') * {value!r}.",),
        )
    else:
        _check_integer(int(value), kind)


def _check_integer(value: int, kind: DType) -> None:
    low, high = integer_range(kind)
    if low <= value <= high:
        return
    wider = [str(t) for t in _WIDER if integer_range(t)[0] <= value <= integer_range(t)[1]]
    raise IRError(
        f"expression: the number {value} does not fit type {kind}; expected {low} to {high}.",
        code="expr-range",
        hints=[
            f"{name} holds it: te.const({value}, '{name}'), te.cast(x, '{name}')."
            for name in wider[:1]
        ],
    )


def _check_float(value: object, kind: DType) -> None:
    try:
        with np.errstate(over="ignore"):
            rounded = float(kind.numpy.type(value))
        exact = float(value)  # type: ignore[arg-type]
        overflows = not math.isfinite(rounded) and rounded != exact and not math.isnan(exact)
    except OverflowError:  # a Python integer beyond float64
        overflows = True
    if overflows:
        # here, as in dtype.py
        import ml_dtypes

        greatest = float(ml_dtypes.finfo(kind.numpy).max)  # type: ignore[no-untyped-call]
        infinity = ", or infinity" if has_infinity(kind) else ""
        raise IRError(
            f"expression: the number {value!r} does not fit type {kind}; expected a magnitude of "
            f"at most {greatest!r}{infinity}.",
            code="expr-overflow",
            hints=("float('inf') is infinity; te.cast(x, 'float64') has a wider range.",)
            if infinity
            else ("te.cast(x, 'float32') has a wider range, and infinities.",),
        )


def index_number(index: object, name: str) -> int:
    """An index of tensor `name` that is no expression, as an integer.

    Raises: IRTypeError for another type; IRError for one beyond int64.
    """
    if isinstance(index, Integral):
        check_number(index, INT64)
        return int(index)
    shown = ":" if index == slice(None) else repr(index)
    raise IRTypeError(
        f"load: an index of '{name}' is {shown}; expected an integer or an expression.",
        code="load-index",
        hints=(f"one element at a time: te.compute(shape, lambda i, j: {name}[i, j], name=...).",),
    )
