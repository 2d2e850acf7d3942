"""One lane of a vector, as scalar expressions: what is known of scalars then answers for vectors.

A ramp is its base and a multiple of the lane's number; an operation on vectors is the operation on
the values that they have in the lane.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from ....tir.buffer import Buffer, Load
from ....tir.dtype import INT64
from ....tir.expr import Cast, Expr, Let, Var, add, const, mul
from ....tir.lowered import Broadcast, Exchange, Lanes, Ramp, Reinterpret, Shuffle, Vector
from ....tir.node import Node
from ....tir.stmt import NOTHING, For, ForKind
from ....tir.text.printer import print_expr
from ..forms.affine import Undecided


@cache
def lane_loop(count: int) -> For:
    """The loop over the lanes of a vector of `count`."""
    return For(Var("lane"), count, ForKind.SERIAL, NOTHING)


def in_lane(expr: Expr, values: Mapping[Var, Expr]) -> Expr:
    """The value of an expression in lane `lane_loop(lanes).var`, as a scalar, with `values` in the
    place of variables. The same object where it is one already.

    Raises: Undecided for what is put together of other lanes, or of other threads.
    """
    if isinstance(expr, Var):
        return in_lane(values[expr], values) if expr in values else expr
    match expr:
        case Let(var, value, body):
            return in_lane(body, {**values, var: value})
        case Ramp():
            base, number = in_lane(expr.base, values), lane_loop(expr.lanes).var
            lane = number if base.dtype == INT64 else Cast(number, base.dtype)
            return add(base, mul(lane, const(expr.stride, base.dtype)))
        case Broadcast(value):
            return in_lane(value, values)
        case Load():
            indices = tuple(in_lane(i, values) for i in expr.indices)
            return expr if indices == expr.indices else Load(expr.buffer, indices)
        case Cast(value, kind) if value.dtype.is_float:  # data, whatever it is made of
            return Cast(Load(Buffer("a float", value.dtype.scalar, ()), ()), kind.scalar)
        case Cast(value, kind):
            inner = in_lane(value, values)
            return expr if inner is value else Cast(inner, kind.scalar)
        case Reinterpret(value, kind) if kind.lanes == value.dtype.lanes:
            inner = in_lane(value, values)
            return expr if inner is value else Reinterpret(inner, kind.scalar)
        case Lanes() | Vector() | Shuffle() | Reinterpret() | Exchange():
            raise Undecided(f"{print_expr(expr)} has lanes, or is of threads, other than its own")
    return expr.map_children(lambda c: in_lane(c, values) if isinstance(c, Expr) else c)


def size_in_lane(expr: Expr, values: Mapping[Var, Expr]) -> int:
    """How many nodes `in_lane` makes of an expression, at most."""
    sizes: dict[Var, int] = {}

    def visit(node: Node) -> int:
        match node:
            case Let(var, value, body):
                sizes[var] = visit(value)
                return visit(body)
            case Var():
                if node not in sizes:
                    sizes[node] = visit(values[node]) if node in values else 1
                return sizes[node]
        return 1 + sum(map(visit, node.children()))

    return visit(expr)
