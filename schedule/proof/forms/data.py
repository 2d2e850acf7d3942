"""Indices that depend on data: the loaded parts of an index, and the interval in which each lies.

A datum is a part of an index whose value the proof cannot follow: a value that is loaded, a product
or a quotient of what is no number, or what is computed from one other than by sums, products with a
number and quotients. It may be anything in
its interval. Where the definition clamps it, max(min(value, 9), 0), the whole clamp is the datum,
and the interval is that of the clamp; where a dim is in it, max(min(value, n - 1), 0), the datum
ends below that form, too. `Each` is a datum that does take every value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from ....tir.analysis.data import data_interval
from ....tir.dim import Dim
from ....tir.dtype import INT64, UINT64
from ....tir.expr import (
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
)
from ....tir.node import Node
from ....tir.text.printer import print_expr
from ....tir.visit import loads
from .affine import Affine, Ranges, Undecided, affine, extreme, interval

WIDEST = 1 << 31  # values of a datum; one of more is bounded by nothing but its type


@dataclass(frozen=True, slots=True, eq=False)
class Each(Var):
    """Every index of an axis, one after the other: 0 .. extent-1."""

    extent: int = field(default=0, kw_only=True)


@cache
def each(axis: int, extent: int) -> Each:
    """The one Each of an axis of a tensor: a nest and its canonical form mention the same."""
    return Each(f"each{axis}", extent=extent)


def data_of(indices: Iterable[Expr], env: Mapping[Var, Affine], ranges: Ranges) -> tuple[Expr, ...]:
    """The data of indices, each once, in the order of the text."""
    return tuple(dict.fromkeys(datum for item in indices for datum in _data(item, env, ranges)))


def _data(expr: Expr, env: Mapping[Var, Affine], ranges: Ranges) -> Iterator[Expr]:
    if isinstance(expr, Each):
        yield expr
        return
    if not loads(expr) and _form(expr, env, ranges) is not None:
        return
    if expr.dtype != INT64:  # sums of other types may wrap around
        yield expr
        return
    match expr:
        case Add(a, b) | Sub(a, b) | Mul(a, Const() as b) | Mul(Const() as a, b):
            yield from _data(a, env, ranges)
            yield from _data(b, env, ranges)
        case FloorDiv(a, Const()) | FloorMod(a, Const()):
            yield from _data(a, env, ranges)
        case _:
            yield expr


def without_data(expr: Expr, values: Mapping[Expr, Expr]) -> Expr:
    """The expression with `values` standing for its data."""

    def visit(node: Node) -> Node:
        if isinstance(node, Expr) and node in values:
            return values[node]
        return node.map_children(visit)

    result = visit(expr)
    assert isinstance(result, Expr)
    return result


def bounded(expr: Expr, env: Mapping[Var, Affine], ranges: Ranges) -> tuple[int, int]:
    """An interval that contains an integer expression, data or not."""

    def known(plain: Expr) -> tuple[int, int] | None:
        form = _form(plain, env, ranges)
        return None if form is None else interval(form, ranges)

    return data_interval(expr, known)


def _form(expr: Expr, env: Mapping[Var, Affine], ranges: Ranges) -> Affine | None:
    """The form of an expression that loads nothing; None where it has none."""
    try:
        return affine(expr, env, ranges)
    except Undecided:
        return None


def datum_interval(datum: Expr, env: Mapping[Var, Affine], ranges: Ranges) -> tuple[int, int]:
    """An interval that contains a datum. Raises: Undecided where only its type bounds it."""
    if isinstance(datum, Each):
        return 0, datum.extent - 1
    low, high = bounded(datum, env, ranges)
    if high - low >= WIDEST:
        read = loads(datum)
        why = f"depends on the values of '{read[0].buffer.name}'" if read else "is not affine"
        raise Undecided(f"the index {print_expr(datum)} {why}")
    return low, high


def ceilings(datum: Expr, env: Mapping[Var, Affine], ranges: Ranges) -> tuple[Affine, ...]:
    """Forms of dims that a datum does not exceed, whatever is loaded."""
    forms = _ceilings(datum, env, ranges)
    return tuple(form for form in forms if any(isinstance(v, Dim) for v in form.variables()))


def _ceilings(expr: Expr, env: Mapping[Var, Affine], ranges: Ranges) -> tuple[Affine, ...]:
    if expr.dtype.is_integer and not loads(expr):
        form = _form(expr, env, ranges)
        if form is not None:
            return (form,)
    match expr:
        case Min(a, b):
            return (*_ceilings(a, env, ranges), *_ceilings(b, env, ranges))
        case Max(a, b) | Select(_, a, b):
            some, others = _ceilings(a, env, ranges), _ceilings(b, env, ranges)
            return tuple(extreme(x, y, True, ranges) for x in some for y in others)
        case Cast(value) if expr.dtype == INT64 and value.dtype.is_integer:
            return () if value.dtype == UINT64 else _ceilings(value, env, ranges)
    return ()
