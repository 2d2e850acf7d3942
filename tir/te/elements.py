"""Functions of elements, as definitions in the tensor-expression language use them: te.exp(A[i]).

Plain numbers take the type of the expressions beside them.
"""

from __future__ import annotations

from ..checked import Checked, clamped
from ..conditions import all_of as conjunction
from ..conditions import any_of as disjunction
from ..dim import Dim, Extent, most
from ..dtype import INT64, DType
from ..dtype import dtype as as_dtype
from ..errors import IRError, IRTypeError
from ..expr import (
    EQ,
    NE,
    Cast,
    Const,
    Expr,
    Max,
    Min,
    Not,
    Number,
    Select,
    compare,
)
from ..expr import const as exact_const
from ..lowered import Reinterpret
from ..number import check_number
from ..sizes import Length, Size, axis_of
from .checks import alike, check_condition, check_number_type, operands


def const(value: Number, dtype: str | DType) -> Const:
    """The number `value` as `dtype`; a fraction is rounded to a float type.

    Raises: IRError, IRTypeError for a value that the type cannot hold.
    """
    kind = as_dtype(dtype)
    whole = not kind.is_float and isinstance(value, float) and value.is_integer()
    check_number(int(value) if whole else value, kind)
    return exact_const(value, kind)


def select(condition: Expr, on_true: Expr | Number, on_false: Expr | Number) -> Expr:
    """`on_true` where `condition` holds, else `on_false`; a load in the branch not taken does not
    happen.
    """
    check_condition("select", condition)
    return Select(condition, *alike("select", on_true, on_false))


def all_of(*conditions: Expr) -> Expr:
    """All conditions hold; true for none. One is evaluated only where those before it hold."""
    for condition in conditions:
        check_condition("all_of", condition)
    return conjunction(*conditions)


def any_of(*conditions: Expr) -> Expr:
    """One of the conditions holds; false for none. One is evaluated only where those before it do
    not hold.
    """
    for condition in conditions:
        check_condition("any_of", condition)
    return disjunction(*conditions)


def cast(value: Expr, dtype: str | DType) -> Expr:
    """`value` converted to `dtype`; the same expression when it has that type."""
    kind = as_dtype(dtype)
    return value if value.dtype == kind else Cast(value, kind)


def reinterpret(value: Expr, dtype: str | DType) -> Expr:
    """The bits of a number of 32 or 64 bits as another type of that width: those of the float 1.0
    are the int32 0x3f800000. Which NaN an operation gives is not said, and so are not its bits.

    Raises: IRTypeError for other types.
    """
    kind = as_dtype(dtype)
    widths = {value.dtype.bits, kind.bits}
    if widths not in ({32}, {64}):
        raise IRTypeError(
            f"te.reinterpret: the value is {value.dtype}, wanted is {kind}; expected two types of "
            "32 bits, or of 64.",
            code="te-reinterpret",
        )
    return value if value.dtype == kind else Reinterpret(value, kind)


def eq(a: Expr | Number, b: Expr | Number) -> Expr:
    """a == b"""
    return compare(EQ, *operands("eq", a, b))


def ne(a: Expr | Number, b: Expr | Number) -> Expr:
    """a != b"""
    return compare(NE, *operands("ne", a, b))


def logical_not(a: Expr) -> Expr:
    """The truth value does not hold."""
    check_condition("logical_not", a)
    return Not(a)


def maximum(a: Expr | Number, b: Expr | Number) -> Expr:
    """The larger of two values; NaN when either is NaN."""
    left, right = operands("maximum", a, b)
    check_number_type("maximum", left)
    return Max(left, right)


def minimum(a: Expr | Number, b: Expr | Number) -> Expr:
    """The smaller of two values; NaN when either is NaN."""
    left, right = operands("minimum", a, b)
    check_number_type("minimum", left)
    return Min(left, right)


def clamp_index(value: Expr, extent: Length) -> Expr:
    """The integer `value` as an index of `extent` elements: what lies outside becomes the first or
    the last one. An axis whose size a call decides may be empty where its least size is 0: then
    te.select(n > 0, x[te.clamp_index(v, n)], 0) reads nothing of it.

    Raises: IRError for a value that is no integer, or an extent below 1.
    """
    size = _extent("clamp_index", extent)
    return clamped(_index("clamp_index", value), size)


def checked(value: Expr, extent: Length, *, what: str = "index") -> Expr:
    """The integer `value` as an index of `extent` elements: a call that finds one outside of
    0 .. extent-1 raises IndexError, after it has run with the first or the last element instead.
    Of an axis that may be empty, see te.clamp_index.

    what: the name of the value for the message. Negative indices count from the end by
    te.checked(te.select(v < 0, v + n, v), n).
    Raises: IRError for a value that is no integer, or an extent below 1.
    """
    size = _extent("checked", extent)
    return Checked(_index("checked", value), size, what)


def _index(function: str, value: object) -> Expr:
    """The value as int64."""
    if not isinstance(value, Expr) or not value.dtype.is_integer:
        found = f"type {value.dtype}" if isinstance(value, Expr) else repr(value)
        raise IRTypeError(
            f"te.{function}: the value is {found}; expected an integer expression.",
            code="te-index-value",
            hints=("te.cast(x, 'int64') converts it; A[2] needs no check.",),
        )
    return cast(value, INT64)


def _extent(function: str, extent: object) -> Extent:
    """What is given as the number of elements: an integer, or the dim of a size."""
    found = axis_of(extent) if isinstance(extent, Size) else extent
    if isinstance(found, bool) or not isinstance(found, int | Dim) or most(found) < 1:
        raise IRError(
            f"te.{function}: the extent is {extent!r}; expected an integer of 1 or more, or a size "
            "that a call decides.",
            code="te-index-extent",
        )
    return found
