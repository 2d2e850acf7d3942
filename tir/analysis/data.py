"""Indices that are data: what a definition lets them be.

An index is data where it depends on a loaded value, or on a product or a quotient of sizes and
axes, which integer sets do not express. It may then be anything that its form allows,
and integers of data wrap around, so a sum of two bounded values is bounded only where it fits its
type. max(min(value, 9), 0) lies in 0 .. 9 whatever the value is, and max(min(value, n - 1), 0)
below the n of this call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..buffer import Load
from ..dim import Dim
from ..dtype import INT64, UINT64, DType
from ..expr import Add, Cast, Const, Expr, FloorDiv, FloorMod, Max, Min, Mul, Select, Sub
from ..number import integer_range
from ..visit import loads

Known = Callable[[Expr], tuple[int, int] | None]


def data_interval(expr: Expr, known: Known) -> tuple[int, int]:
    """An interval that contains an integer expression.

    known: an interval of an integer expression that loads nothing, if there is one.
    """
    if not loads(expr) and expr.dtype.is_integer:
        found = known(expr)
        if found is not None:
            return found
    operands = () if isinstance(expr, Load) else expr.children()
    parts = [
        data_interval(c, known) for c in operands if isinstance(c, Expr) and c.dtype.is_integer
    ]
    match expr, parts:
        case Min(), [a, b]:
            return min(a[0], b[0]), min(a[1], b[1])
        case Max(), [a, b]:
            return max(a[0], b[0]), max(a[1], b[1])
        case Add(), [a, b]:
            return _wrapped(a[0] + b[0], a[1] + b[1], expr.dtype)
        case Sub(), [a, b]:
            return _wrapped(a[0] - b[1], a[1] - b[0], expr.dtype)
        case Mul(), [a, b]:
            corners = [x * y for x in a for y in b]
            return _wrapped(min(corners), max(corners), expr.dtype)
        case FloorMod(_, Const() as c), _ if c.value > 0:
            return 0, int(c.value) - 1
        case FloorDiv(_, Const() as c), [a, _] if c.value > 0:
            return a[0] // int(c.value), a[1] // int(c.value)
        case Cast(), [a]:
            return _wrapped(*a, expr.dtype)
        case Select(), [a, b]:
            return min(a[0], b[0]), max(a[1], b[1])
        case Cast(value), _ if value.dtype.is_bool:
            return 0, 1
    return integer_range(expr.dtype)


def _wrapped(low: int, high: int, dtype: DType) -> tuple[int, int]:
    """The interval; that of the type where the value may wrap around."""
    least, most = integer_range(dtype)
    return (low, high) if least <= low and high <= most else (least, most)


def loose_indices(load: Load, known: Known) -> Iterator[int]:
    """The dimensions in which a load may leave its buffer because of data. That an axis may have no
    elements is for the proof of the bounds.
    """
    for position, (item, extent) in enumerate(zip(load.indices, load.buffer.extents, strict=True)):
        if loads(item):
            low, high = data_interval(item, known)
            inside = _ends(item, extent, known) if isinstance(extent, Dim) else high < extent
            if low < 0 or not inside:
                yield position


def _ends(expr: Expr, dim: Dim, known: Known) -> bool:
    """Whether an integer expression is less than a dim, or 0, in every call."""
    if expr.dtype.is_integer and not loads(expr):
        apart = known(dim - expr)
        return (isinstance(expr, Const) and expr.value == 0) or (apart is not None and apart[0] > 0)
    match expr:
        case Min(a, b):
            return _ends(a, dim, known) or _ends(b, dim, known)
        case Max(a, b) | Select(_, a, b):
            return _ends(a, dim, known) and _ends(b, dim, known)
        case Cast(value) if expr.dtype == INT64 and value.dtype.is_integer:
            return value.dtype != UINT64 and _ends(value, dim, known)
    return False
