"""Indices that depend on data: the loaded parts of an index, and the interval in which each lies.

A datum is a part of an index whose value the proof cannot follow: a value that is loaded, or what is
computed from one other than by sums, products with a number and quotients. It may be anything in
its interval. Where the definition clamps it, max(min(value, 9), 0), the whole clamp is the datum,
and the interval is that of the clamp.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ...tir.buffer import Load
from ...tir.dtype import DType
from ...tir.expr import Add, Cast, Const, Expr, FloorDiv, FloorMod, Max, Min, Mul, Select, Sub, Var
from ...tir.node import Node
from ...tir.number import integer_range
from ...tir.printer import print_expr
from ...tir.visit import loads
from .affine import Affine, Ranges, Undecided, affine, interval

WIDEST = 1 << 31  # values of a datum; one of more is bounded by nothing but its type


def data_of(indices: Iterable[Expr]) -> tuple[Expr, ...]:
    """The data of indices, each once, in the order of the text."""
    return tuple(dict.fromkeys(datum for item in indices for datum in _data(item)))


def _data(expr: Expr) -> Iterator[Expr]:
    if not loads(expr):
        return
    match expr:
        case Add(a, b) | Sub(a, b) | Mul(a, Const() as b) | Mul(Const() as a, b):
            yield from _data(a)
            yield from _data(b)
        case FloorDiv(a, Const()) | FloorMod(a, Const()):
            yield from _data(a)
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


def datum_interval(datum: Expr, env: Mapping[Var, Affine], ranges: Ranges) -> tuple[int, int]:
    """An interval that contains a datum. Raises: Undecided where only its type bounds it."""
    low, high = _interval(datum, env, ranges)
    if high - low >= WIDEST:
        read = loads(datum)[0].buffer.name
        raise Undecided(f"the index {print_expr(datum)} depends on the values of '{read}'")
    return low, high


def _interval(expr: Expr, env: Mapping[Var, Affine], ranges: Ranges) -> tuple[int, int]:
    if not loads(expr) and expr.dtype.is_integer:
        return interval(affine(expr, env, ranges), ranges)
    operands = () if isinstance(expr, Load) else expr.children()
    parts = [
        _interval(c, env, ranges) for c in operands if isinstance(c, Expr) and c.dtype.is_integer
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
