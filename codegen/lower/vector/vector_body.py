"""The body of a vectorised loop as vectors: every expression that depends on the lane becomes one
value per lane.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ....tir.analysis.linear import Linear, Ranges, expression, linear
from ....tir.analysis.narrow import narrowed
from ....tir.analysis.simplify import provable, simplify, simplify_stmt
from ....tir.buffer import Buffer, Load
from ....tir.conditions import all_of, conjuncts
from ....tir.dtype import BOOL, INT32, INT64
from ....tir.errors import TargetError
from ....tir.expr import (
    EQ,
    LE,
    LT,
    NE,
    TRUE,
    And,
    Cast,
    Compare,
    Const,
    Expr,
    Let,
    Not,
    Or,
    Select,
    Var,
    const,
    index,
)
from ....tir.lowered import Broadcast, Ramp, Reinterpret
from ....tir.node import Node
from ....tir.stmt import NOTHING, Alloc, For, If, LetStmt, Prefetch, Seq, Stmt, Store, seq
from ....tir.visit import found_in, free_vars, substitute, walk
from ...lanes import address, fits_int32, linear_in, narrow, settle


class NotVectorizable(Exception):
    """What a loop does has no vector form here; the loop runs lane after lane instead."""


class VectorBody:
    """Rewrites statements that run for `lane` = 0 .. lanes-1 into statements that run once.

    `on` is everywhere the scalar condition, in terms of `lane`, under which a lane takes part;
    None: all do.
    """

    def __init__(self, lane: Var, lanes: int, ranges: Ranges) -> None:
        self.lane = lane
        self.lanes = lanes
        self.ranges = {**ranges, lane: (0, lanes - 1)}
        self._vectors: dict[Var, Var] = {}
        self._widened: dict[Buffer, Buffer] = {}
        self._varying: dict[Expr, bool] = {}
        self._read: dict[Load, Expr | None] = {}  # what was read already, and where

    # -- statements

    def stmt(self, stmt: Stmt, on: Expr | None) -> Stmt:
        """The statement for all lanes at once. Raises: NotVectorizable, TargetError."""
        match stmt:
            case Seq():
                return seq(*(self.stmt(child, on) for child in stmt.body))
            case Store():
                return self._store(stmt, on)
            case If():
                return self._if(stmt, on)
            case For():
                self.ranges[stmt.var] = (0, stmt.extent - 1)
                return replace(stmt, body=self.stmt(stmt.body, on))
            case LetStmt():
                value = self.value(stmt.value, on)
                return LetStmt(self._bind(stmt.var, value), value, self.stmt(stmt.body, on))
            case Alloc():
                return self._alloc(stmt, on)
            case Prefetch() if stmt.buffer in self._widened:
                return NOTHING  # a lane's own storage is near
            case Prefetch():
                first = {self.lane: index(0)}
                indices = tuple(simplify(substitute(i, first), self.ranges) for i in stmt.indices)
                return Prefetch(stmt.buffer, indices, stmt.write, stmt.level)
        raise NotVectorizable(f"a {type(stmt).__name__} in it")

    def _if(self, stmt: If, on: Expr | None) -> Stmt:
        scalar, rest = self._parts(stmt.condition, on)
        if not rest:
            orelse = None if stmt.orelse is None else self.stmt(stmt.orelse, on)
            return If(stmt.condition, self.stmt(stmt.then, on), orelse)
        if stmt.orelse is not None:
            return self._with_mask(
                stmt.condition, on, lambda mask: self._both_branches(stmt, on, mask)
            )
        inner = self._with_mask(
            all_of(*rest), on, lambda mask: self.stmt(stmt.then, _both(on, mask))
        )
        return If(all_of(*scalar), inner) if scalar else inner

    def _both_branches(self, stmt: If, on: Expr | None, mask: Expr) -> Stmt:
        assert stmt.orelse is not None
        then = self.stmt(stmt.then, _both(on, mask))
        return seq(then, self.stmt(stmt.orelse, _both(on, negated(mask))))

    def _with_mask(self, mask: Expr, on: Expr | None, make: Callable[[Expr], Stmt]) -> Stmt:
        """What `make` makes of a condition; one that loads is evaluated once, before any store."""
        if not _reads(mask):
            return make(mask)
        value = self.vector(mask, on)
        name = Var("on", BOOL)
        vector = self._bind(name, value)
        return LetStmt(vector, value, make(name))

    def _parts(self, condition: Expr, on: Expr | None) -> tuple[list[Expr], list[Expr]]:
        """The conjuncts that all lanes share and that may be computed before the others; and those
        others.
        """
        scalar: list[Expr] = []
        rest: list[Expr] = []
        for part in conjuncts(condition):
            shared = not self.varies(part) and (on is None or self._is_safe(part, on))
            (scalar if shared and not (rest and _reads(part)) else rest).append(part)
        return scalar, rest

    def _alloc(self, stmt: Alloc, on: Expr | None) -> Stmt:
        """Storage inside the loop is private to a lane: it gets a dimension of lanes."""
        old = stmt.buffer
        new = replace(
            old, shape=(*old.shape, self.lanes), dims=(*old.dims, None) if old.dims else ()
        )
        self._widened[old] = new
        return Alloc(new, self.stmt(stmt.body, on))

    def _store(self, store: Store, on: Expr | None) -> Stmt:
        buffer, scalars = self._element(store.buffer, store.indices)
        value = self.value(store.value, on)
        if any(self.varies(i) for i in scalars):
            self._check_contiguous(buffer, scalars)
            mask = None if on is None else self.vector(on, None)
            indices, value = self._indices(scalars, on), self._spread(value)
            return replace(store, buffer=buffer, indices=indices, value=value, mask=mask)
        if value.dtype.lanes == 1 and on is None:
            return replace(store, buffer=buffer, indices=scalars, value=value, mask=None)
        low, high = narrowed(self.ranges, on if on is not None else TRUE)[self.lane]
        if on is not None and low is not None and low == high and self._is_plain(store):
            return self._only_lane(store, on, low)
        raise NotVectorizable(f"its lanes store to one element of '{buffer.name}'")

    def _only_lane(self, store: Store, on: Expr, lane: int) -> Stmt:
        """A store by the one lane that the condition leaves on: a scalar one."""
        values: dict[Var, Expr] = {self.lane: index(lane)}
        condition = simplify(substitute(on, values), self.ranges)
        return simplify_stmt(If(condition, substitute(store, values)), self.ranges)

    def _element(self, buffer: Buffer, indices: Sequence[Expr]) -> tuple[Buffer, tuple[Expr, ...]]:
        """An access with scalar indices, moved to the lane's own storage where the buffer has
        some.
        """
        if buffer in self._widened:
            return self._widened[buffer], (*indices, self.lane)
        return buffer, tuple(indices)

    def _check_contiguous(self, buffer: Buffer, indices: Sequence[Expr]) -> None:
        if buffer.scope == "register":
            return
        found = address(buffer, indices, self.lane, self.lanes, self.ranges)
        if found.stride == 1:
            return
        moves = "irregularly" if found.stride is None else f"{found.stride} elements apart"
        near = [
            var.name
            for var in self.ranges
            if var is not self.lane and (linear_in(found.offset, var) or (None, 0))[1] == 1
        ]
        hint = (
            f"vectorise loop '{near[0]}', along which '{buffer.name}' is contiguous."
            if near
            else f"vectorise the loop over the last dimension of '{buffer.name}'."
        )
        raise TargetError(
            f"vectorize: the lanes of loop '{self.lane.name}' store to '{buffer.name}' {moves}; "
            "expected neighbouring elements.",
            code="vectorize-store-stride",
            hints=(hint,),
        )

    # -- expressions

    def varies(self, expr: Expr) -> bool:
        """Whether the value may differ from lane to lane."""
        known = self._varying.get(expr)
        if known is None:
            known = any(
                item is self.lane
                or (isinstance(item, Var) and item in self._vectors)
                or (isinstance(item, Load) and item.buffer in self._widened)
                for item in walk(expr)
            )
            self._varying[expr] = known
        return known

    def vector(self, expr: Expr, on: Expr | None) -> Expr:
        """The value of an expression in all lanes."""
        return self._spread(self.value(expr, on))

    def _spread(self, value: Expr) -> Expr:
        return value if value.dtype.lanes > 1 else Broadcast(value, self.lanes)

    def value(self, expr: Expr, on: Expr | None) -> Expr:
        """The value of an expression: a scalar where all lanes share it, else a vector."""
        if not self.varies(expr) and (on is None or self._is_safe(expr, on)):
            return expr
        match expr:
            case Var():
                return Ramp(index(0), 1, self.lanes) if expr is self.lane else self._vectors[expr]
            case Load():
                return self._load(expr, on)
            case Select():
                return self._select(expr, on)
            case And() | Or():
                return self._both_sides(expr, on)
            case Compare():
                return self._compare(expr, on)
            case Cast():
                return self._cast(expr, on)
            case Reinterpret():
                return Reinterpret(self.vector(expr.value, on), expr.type.with_lanes(self.lanes))
            case Let():
                value = self.value(expr.value, on)
                return Let(self._bind(expr.var, value), value, self.value(expr.body, on))
        if expr.dtype == INT64 and not _reads(expr):
            moved = linear_in(settle(expr, self.lane, self.lanes), self.lane, self._vectors)
            if moved is not None:
                return Ramp(moved[0], moved[1], self.lanes) if moved[1] else moved[0]
        return expr.map_children(lambda c: self.vector(c, on) if isinstance(c, Expr) else c)

    def _both_sides(self, expr: And | Or, on: Expr | None) -> Expr:
        """The second side is computed where the first leaves it open; what the first has read may
        be read there again as it was, whatever the first says: masks would hold it twice, and so on
        inwards.
        """
        first = self.vector(expr.a, on)
        known = self._read
        self._read = {**dict.fromkeys(_surely_read(expr.a), on), **known}
        skips = expr.a if isinstance(expr, And) else negated(expr.a)
        rest = on if _loads(expr.b) <= self._read.keys() else _both(on, skips)
        second = self.vector(expr.b, rest)
        self._read = known
        return type(expr)(first, second)

    def _bind(self, var: Var, value: Expr) -> Var:
        """The variable for a value: a vector's has a new type."""
        if value.dtype.lanes == 1:
            return var
        new = self._vectors[var] = Var(var.name, value.dtype)
        self._varying.clear()
        return new

    def _is_safe(self, expr: Expr, on: Expr) -> bool:
        """Whether a value that all lanes share may be computed although no lane may be on."""
        found = [node for node in walk(expr) if isinstance(node, Load)]
        if not found:
            return True
        if provable(substitute(on, {self.lane: index(0)}), self.ranges):  # the first lane always is
            return True
        return all(
            provable(all_of(index(0) <= i, i < extent), self.ranges)
            for load in found
            for i, extent in zip(load.indices, load.buffer.extents, strict=True)
        )

    def _load(self, load: Load, on: Expr | None) -> Expr:
        on = self._read.get(load, on)
        buffer, scalars = self._element(load.buffer, load.indices)
        indices = self._indices(scalars, on)
        if all(i.dtype.lanes == 1 for i in indices):  # one element, but only where a lane is on
            indices = (*indices[:-1], Broadcast(indices[-1], self.lanes)) if indices else indices
        if not indices:
            return load
        return Load(buffer, indices, None if on is None else self._mask(on))

    def _mask(self, on: Expr) -> Expr:
        """The lanes in which a condition holds. What was read under it is no help within it: the
        mask would hold itself.
        """
        known = self._read
        self._read = {load: where for load, where in known.items() if where is not on}
        mask = self.vector(on, None)
        self._read = known
        return mask

    def _indices(self, indices: Sequence[Expr], on: Expr | None) -> tuple[Expr, ...]:
        return tuple(self._index(i, on) for i in indices)

    def _index(self, expr: Expr, on: Expr | None) -> Expr:
        if not self.varies(expr):
            return expr
        settled = simplify(settle(expr, self.lane, self.lanes), self.ranges)
        moved = linear_in(settled, self.lane, self._vectors)
        if moved is None or _reads(settled):
            return self._lanewise(settled, on)
        return moved[0] if moved[1] == 0 else Ramp(moved[0], moved[1], self.lanes)

    def _lanewise(self, expr: Expr, on: Expr | None) -> Expr:
        """An index that is no sum of a base and a stride, operation by operation."""
        if not self.varies(expr):
            return Broadcast(expr, self.lanes)
        if isinstance(expr, Load | Select | Cast | Let | Var):
            return self.vector(expr, on)
        return expr.map_children(lambda c: self._lanewise(c, on) if isinstance(c, Expr) else c)

    def _select(self, expr: Select, on: Expr | None) -> Expr:
        if any(inner.dtype.is_bool for inner in found_in(expr.condition, Select)):
            # masks of what is read would hold the inner choice twice, and so on inwards
            raise NotVectorizable("a choice by a choice")
        if not self.varies(expr.condition) and (on is None or self._is_safe(expr.condition, on)):
            branches = (self.vector(expr.on_true, on), self.vector(expr.on_false, on))
            return Select(expr.condition, *branches)
        inside, outside = _both(on, expr.condition), _both(on, negated(expr.condition))
        known = self._read  # what the condition reads may be read again as it was
        read = self._read = {**dict.fromkeys(_surely_read(expr.condition), on), **known}
        a, b = self.vector(expr.on_true, inside), self.vector(expr.on_false, outside)
        self._read = known
        for branch, load, other in ((expr.on_true, a, b), (expr.on_false, b, a)):
            # select(c, load, x) -> the load alone, x in the lanes that are off; unless it was read
            # before, under another mask than the choice's
            if not isinstance(load, Load) or not isinstance(other, Broadcast) or branch in read:
                continue
            if load.dtype.is_bool:
                continue
            if load.mask is not None and load.other is None and load.buffer.scope != "register":
                return Load(load.buffer, load.indices, load.mask, other)
        return Select(self.vector(expr.condition, on), a, b)

    def _compare(self, expr: Compare, on: Expr | None) -> Expr:
        if expr.a.dtype != INT64 or _reads(expr) or not self._is_plain(expr):
            return type(expr)(self.vector(expr.a, on), self.vector(expr.b, on))
        form = linear(expr.a) - linear(expr.b)
        apart = simplify(settle(expression(form), self.lane, self.lanes), self.ranges)
        moved = linear_in(apart, self.lane)
        if moved is not None and isinstance(expr, LT | LE):  # base + stride*lane < limit
            base, stride = linear(moved[0]), moved[1]
            limit = index(-base.constant)
            start = expression(Linear(base.terms, 0))
            return type(expr)(Ramp(start, stride, self.lanes), Broadcast(limit, self.lanes))
        return type(expr)(self._narrowed(apart), self._narrowed(index(0)))

    def _is_plain(self, node: Node) -> bool:
        """Whether nothing but the lane itself makes the value differ from lane to lane."""
        if any(isinstance(n, Load | Store) and n.buffer in self._widened for n in walk(node)):
            return False
        return free_vars(node).isdisjoint(self._vectors)

    def _narrowed(self, expr: Expr) -> Expr:
        found = narrow(expr, self.lane, self.lanes, self.ranges)
        if found is None or not fits_int32(expr, self.ranges):
            raise NotVectorizable("index arithmetic that int32 may not hold")
        return found

    def _cast(self, expr: Cast, on: Expr | None) -> Expr:
        inner, result = expr.value, expr.type.with_lanes(self.lanes)
        if expr.type.is_bool:
            return NE(self.vector(inner, on), Broadcast(const(0, inner.dtype), self.lanes))
        if inner.dtype.is_bool:
            ones, zeros = (Broadcast(const(n, expr.type), self.lanes) for n in (1, 0))
            return Select(self.vector(inner, on), ones, zeros)
        if (
            inner.dtype == INT64
            and not _reads(inner)
            and self._is_plain(inner)
            and expr.type != INT64
        ):
            vector = self._narrowed(inner)
            return vector if expr.type == INT32 else Cast(vector, result)
        value = self.vector(inner, on)
        return value if value.dtype == result else Cast(value, result)


def negated(condition: Expr) -> Expr:
    """The condition that holds where this one does not."""
    match condition:
        case Not(a):
            return a
        case LT(a, b) if a.dtype.is_integer:
            return LE(b, a)
        case LE(a, b) if a.dtype.is_integer:
            return LT(b, a)
        case EQ(a, b):
            return NE(a, b)
        case NE(a, b):
            return EQ(a, b)
        case Const():
            return const(not condition.value, BOOL)
    return Not(condition)


def _both(on: Expr | None, condition: Expr) -> Expr:
    return condition if on is None else all_of(on, condition)


def _reads(expr: Expr) -> bool:
    return any(isinstance(node, Load) for node in walk(expr))


def _loads(expr: Expr) -> set[Load]:
    return {node for node in walk(expr) if isinstance(node, Load)}


def _surely_read(expr: Expr) -> set[Load]:
    """What is read whenever the expression is computed, whatever its conditions say."""
    match expr:
        case And(first, _) | Or(first, _) | Select(first, _, _):
            return _surely_read(first)
        case Load():
            return _loads(expr)
    found: set[Load] = set()
    return found.union(*(_surely_read(c) for c in expr.children() if isinstance(c, Expr)))
