"""Reductions of the tensor-expression language: te.sum, te.argmax, reducers of one's own.

    k = te.reduce_axis(K, name="k")
    best, at = te.compute((M,), lambda i: te.argmax(A[i, k], axis=k), name=("best", "at"))
    total = te.compute((M,), lambda i: te.sum(A[i, k], axis=k, where=k <= i), name="total")

A reducer is associative and commutative by declaration, so a schedule may combine the points in any
order, and in parts. `where` says which points count: the others leave the result as it is, which
is the identity of the reducer where none counts. A condition on indices lets a schedule skip whole
tiles; at points that a condition on data leaves out, the identity is combined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Never

from .. import intrinsics
from ..conditions import all_of as conjunction
from ..conditions import conjuncts
from ..dim import Dim, Extent
from ..dtype import INT64, DType
from ..dtype import dtype as as_dtype
from ..errors import IRError, IRTypeError
from ..expr import (
    LT,
    TRUE,
    And,
    Call,
    Expr,
    Max,
    Min,
    Mul,
    Number,
    Or,
    Select,
    Var,
    add,
    compare,
    computed,
)
from ..expr import const as exact_const
from ..number import integer_range
from ..reduce import Reduce, Reducer, Values
from ..sizes import Length, Size, axis_of
from ..text.printer import print_expr
from ..visit import loads
from .accumulate import accumulated
from .checks import (
    check_axes,
    check_condition,
    check_extent,
    check_number_type,
    checked_size,
    checked_values,
    operands,
)
from .elements import all_of, any_of, cast, eq, ne, select
from .reducer_law import check_law


@dataclass(frozen=True, slots=True, eq=False)
class ReduceAxis(Var):
    """A reduction axis: a variable with the values 0 .. extent-1, all of which are combined; where
    a call decides how many, `dim` does, and `extent` is the upper bound.
    """

    extent: int = 1
    dim: Dim | None = None

    @property
    def size(self) -> Extent:
        """How many points there are: a number, or the dim that decides it."""
        return self.extent if self.dim is None else self.dim

    def __iter__(self) -> Never:
        raise IRTypeError(
            f"te: Python iterates over axis '{self.name}'; expected a reduction over it.",
            code="te-axis-iterated",
            hints=(f"te.sum(x, axis={self.name}), as te.max, te.min, te.prod, te.argmax.",),
        )

    def __repr__(self) -> str:
        last = self.extent - 1 if self.dim is None else f"{self.dim.name} - 1"
        return f"ReduceAxis {self.name}: 0 .. {last}"


Axes = ReduceAxis | Sequence[ReduceAxis]
Joined = Expr | tuple[Expr, ...]


def reduce_axis(extent: Length, *, name: str = "k") -> ReduceAxis:
    """An axis of `extent` points to reduce over; over none, a reduction gives its identity.

    Raises: IRError for an extent that is no dim and no integer of 0 or more; SizeError.
    """
    if isinstance(extent, Size):
        extent = axis_of(extent)
    if isinstance(extent, Dim):
        return ReduceAxis(name, INT64, extent.high, extent)
    check_extent(extent, name)
    return ReduceAxis(name, INT64, checked_size(extent, (extent,), name))


def _reduce(reducer: Reducer, values: Values, axis: Axes, where: Expr | None) -> Reduce:
    axes = _axes(reducer.name, axis)
    extents = tuple(item.extent for item in axes)
    present = tuple(item < item.dim for item in axes if item.dim is not None)
    if where is None and not present:
        return Reduce(reducer, values, axes, extents)
    if where is not None:
        check_condition(reducer.name, where)
    parts = (*present, *(() if where is None else conjuncts(where)))
    counts = conjunction(*(part for part in parts if not loads(part)))
    data = conjunction(*(part for part in parts if loads(part)))
    if data != TRUE:
        identity = reducer.identity(tuple(value.dtype for value in values))
        pairs = zip(values, identity, strict=True)
        values = tuple(Select(data, value, neutral) for value, neutral in pairs)
    return Reduce(reducer, values, axes, extents, counts)


def _axes(name: str, axis: Axes) -> tuple[ReduceAxis, ...]:
    several: object = None if isinstance(axis, Expr) else axis
    given: tuple[object, ...] = tuple(several) if isinstance(several, Iterable) else (axis,)
    axes: list[ReduceAxis] = []
    for item in given:
        if not isinstance(item, ReduceAxis):
            found = print_expr(item) if isinstance(item, Expr) else repr(item)
            joins = (f"te.{name}_of(a, b) joins conditions.",) if name in ("any", "all") else ()
            raise IRError(
                f"te.{name}: axis is {found}; expected a reduction axis.",
                code="te-axis",
                hints=(
                    "k = te.reduce_axis(extent) makes one; axis=k or axis=(k1, k2).",
                    *joins,
                ),
            )
        axes.append(item)
    check_axes(name, axes)
    return tuple(axes)


# -- one number ----------------------------------------------------------------------------------


def _numbers(reducer: Reducer, value: Expr, axis: Axes, where: Expr | None) -> Reduce:
    (value,) = operands(reducer.name, value)
    check_number_type(reducer.name, value)
    return _reduce(reducer, (value,), axis, where)


def _accumulate(
    reducer: Reducer, value: Expr, axis: Axes, where: Expr | None, dtype: str | DType | None
) -> Reduce:
    axes = _axes(reducer.name, axis)
    (value,) = operands(reducer.name, value)
    value = accumulated(reducer.name, value, axes, [item.extent for item in axes], dtype)
    check_number_type(reducer.name, value)
    return _reduce(reducer, (value,), axes, where)


def _one(
    name: str, combine: Callable[[Expr, Expr], Expr], identity: Callable[[DType], Expr]
) -> Reducer:
    return Reducer(name, lambda a, b: (combine(a[0], b[0]),), lambda types: (identity(types[0]),))


def _lowest(dtype: DType) -> Expr:
    return exact_const(-_INFINITY if dtype.is_float else integer_range(dtype)[0], dtype)


def _highest(dtype: DType) -> Expr:
    return exact_const(_INFINITY if dtype.is_float else integer_range(dtype)[1], dtype)


_INFINITY = float("inf")
SUM = _one("sum", lambda a, b: add(a, b), lambda t: exact_const(0, t))
PROD = _one("prod", lambda a, b: Mul(a, b), lambda t: exact_const(1, t))  # not folded where b is 0
MIN = _one("min", lambda a, b: Min(a, b), _highest)
MAX = _one("max", lambda a, b: Max(a, b), _lowest)
MAX_ANY = _one("max_any", lambda a, b: Call(intrinsics.MAX_ANY, (a, b)), _lowest)
ANY = _one("any", lambda a, b: Or(a, b), lambda t: exact_const(False, t))
ALL = _one("all", lambda a, b: And(a, b), lambda t: exact_const(True, t))


def sum(
    value: Expr, axis: Axes = (), *, where: Expr | None = None, dtype: str | DType | None = None
) -> Reduce:
    """The sum of `value` over the points of `axis` at which `where` holds.

    dtype: the type of the result, in which the arithmetic of `value` is computed as well: with
    "int32", te.sum(A[i, k] * B[k, j], ...) of int8 multiplies in int32. By default that of `value`,
    where it is no integer type below 32 bits that may be too narrow for the sum.
    Raises: IRError for such a type, and for a `dtype` that does not hold the values.
    """
    return _accumulate(SUM, value, axis, where, dtype)


def prod(
    value: Expr, axis: Axes = (), *, where: Expr | None = None, dtype: str | DType | None = None
) -> Reduce:
    """The product of `value` over the points of `axis` at which `where` holds; dtype: as in
    `sum`.
    """
    return _accumulate(PROD, value, axis, where, dtype)


def min(value: Expr, axis: Axes = (), *, where: Expr | None = None) -> Reduce:
    """The smallest `value` over `axis`; NaN when one is NaN."""
    return _numbers(MIN, value, axis, where)


def max(value: Expr, axis: Axes = (), *, where: Expr | None = None) -> Reduce:
    """The largest `value` over `axis`; NaN when one is NaN."""
    return _numbers(MAX, value, axis, where)


def max_any(value: Expr, axis: Axes = (), *, where: Expr | None = None) -> Reduce:
    """The largest `value` over `axis`; what a NaN gives is not promised, so it is one
    instruction.
    """
    return _numbers(MAX_ANY, value, axis, where)


def any(condition: Expr, axis: Axes = (), *, where: Expr | None = None) -> Reduce:
    """Whether `condition` holds at one of the points of `axis`."""
    check_condition("any", condition)
    return _reduce(ANY, (condition,), axis, where)


def all(condition: Expr, axis: Axes = (), *, where: Expr | None = None) -> Reduce:
    """Whether `condition` holds at all points of `axis`."""
    check_condition("all", condition)
    return _reduce(ALL, (condition,), axis, where)


# -- several values ------------------------------------------------------------------------------


def argmax(
    value: Expr, axis: Axes = (), *, dtype: str | DType = INT64, where: Expr | None = None
) -> Reduce:
    """The largest `value` over `axis`, and where it is: two tensors of one te.compute.

    The place counts through several axes in row-major order, as `dtype`; of equal values it is the
    smallest one, and a NaN counts as larger than every number, as in NumPy. Where no point counts,
    the place is the largest number of `dtype`.
    Raises: IRError for a `dtype` that is no integer type or cannot hold the last place.
    """
    return _place("argmax", ARGMAX, value, axis, as_dtype(dtype), where)


def argmin(
    value: Expr, axis: Axes = (), *, dtype: str | DType = INT64, where: Expr | None = None
) -> Reduce:
    """The smallest `value` over `axis`, and where it is, as `argmax` says."""
    return _place("argmin", ARGMIN, value, axis, as_dtype(dtype), where)


def _place(
    name: str, reducer: Reducer, value: Expr, axis: Axes, dtype: DType, where: Expr | None
) -> Reduce:
    axes = _axes(name, axis)
    (value,) = operands(name, value)
    check_number_type(name, value)
    place: Expr = axes[0]
    count = axes[0].extent
    for item in axes[1:]:
        place, count = place * item.extent + item, count * item.extent
    if not dtype.is_integer or dtype.is_bool or integer_range(dtype)[1] < count:
        raise IRError(
            f"te.{name}: the place has type {dtype}; expected an integer type that holds {count}.",
            code="te-place",
        )
    return _reduce(reducer, (value, cast(place, dtype)), axes, where)


def _ahead(before: Callable[[Expr, Expr], Expr]) -> Callable[[Values, Values], Values]:
    """Of two (value, place) pairs the one whose value comes first, or the smaller place."""

    def combine(a: Values, b: Values) -> Values:
        (x, i), (y, j) = a, b
        first, tied = before(x, y), eq(x, y)
        if x.dtype.is_float:
            first = any_of(first, all_of(ne(x, x), eq(y, y)))
            tied = any_of(tied, all_of(ne(x, x), ne(y, y)))
        taken = any_of(first, all_of(tied, compare(LT, i, j)))
        return select(taken, x, y), select(taken, i, j)

    return combine


ARGMAX = Reducer(
    "argmax",
    _ahead(lambda x, y: compare(LT, y, x)),
    lambda t: (_lowest(t[0]), _highest(t[1])),
    True,
)
ARGMIN = Reducer(
    "argmin",
    _ahead(lambda x, y: compare(LT, x, y)),
    lambda t: (_highest(t[0]), _highest(t[1])),
    True,
)


@dataclass(frozen=True, slots=True)
class CommReducer:
    """A reducer of one's own: call it as te.sum is called, with a tuple where it takes several
    values.
    """

    name: str
    combine: Callable[..., Joined]
    identity: Callable[..., Joined | Number | tuple[Expr | Number, ...]]

    def __repr__(self) -> str:
        return f"CommReducer {self.name}"

    def __call__(self, value: Joined, axis: Axes = (), *, where: Expr | None = None) -> Reduce:
        """`value` combined over the points of `axis` at which `where` holds.

        Raises: IRError where the reducer gives other values than it takes, or is not associative,
        commutative and neutral in its identity on sampled values.
        """
        several = isinstance(value, tuple)
        given = value if isinstance(value, tuple) else operands(self.name, value)
        values = tuple(map(computed, given))
        types = tuple(item.dtype for item in checked_values(self.name, values, None, "value"))

        def combine(a: Values, b: Values) -> Values:
            made = self.combine(a, b) if several else self.combine(a[0], b[0])
            return checked_values(self.name, made, types, "combine")

        def identity(kinds: tuple[DType, ...]) -> Values:
            return checked_values(self.name, self.identity(*kinds), types, "identity")

        reducer = Reducer(self.name, combine, identity, named=True)
        check_law(reducer, types)
        return _reduce(reducer, values, axis, where)


def comm_reducer(
    combine: Callable[..., Joined],
    identity: Callable[..., Joined | Number | tuple[Expr | Number, ...]],
    *,
    name: str,
) -> CommReducer:
    """A reducer that joins values by `combine` and starts from `identity`.

    combine: (lhs, rhs) -> their join; each is an expression, or a tuple where several values are
    reduced together, as a maximum and a sum that goes with it. It must be associative and
    commutative, since a schedule may take the points in any order and in parts.
    identity: the types of the values -> what leaves any value as it is; numbers take the types.

        lse = te.comm_reducer(join, lambda m, s: (te.const(-1e30, m), 0), name="log_sum_exp")
        m, s = te.compute((M,), lambda i: lse((A[i, k], one), axis=k), name=("m", "s"))
    """
    return CommReducer(name, combine, identity)
