"""Run the vectorised loops of a GPU's threads: neighbouring elements go to and from memory in one
piece, and are computed one by one.

    for v in vectorized(4): C[i*4 + v] = A[i*4 + v] + B[v*n]
    ->  let a: float32x4 = A[ramp(i*4, 1, 4)]
        C[ramp(i*4, 1, 4)] = vector(lanes(a, 0, 1) + B[0], lanes(a, 1, 1) + B[n], ...)

A thread moves 2, 4, 8 or 16 bytes at an address that is a multiple of as many. Every array begins
at a multiple of 16 bytes: the emitter declares those in shared memory so, and the runtime checks
those of the device. The rest follows from the index: what divides all its terms, whatever the loops
around are at.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ....tir.analysis.linear import Interval, Linear, Ranges, linear
from ....tir.analysis.simplify import simplify, simplify_stmt
from ....tir.buffer import Buffer, Load
from ....tir.conditions import conjuncts
from ....tir.expr import (
    LE,
    LT,
    And,
    Const,
    Expr,
    FloorDiv,
    FloorMod,
    Let,
    Max,
    Min,
    Or,
    Select,
    Var,
    add,
    index,
    mul,
)
from ....tir.func import PrimFunc
from ....tir.lowered import Lanes, Ramp, Vector
from ....tir.node import Node
from ....tir.stmt import For, ForKind, If, LetStmt, Seq, Stmt, Store, seq
from ....tir.visit import found_in, free_vars, fresh_copy, substitute
from ...lanes import address, linear_in, settle

MOST_BYTES = 16  # of one load or store


@dataclass(frozen=True, slots=True)
class WideAccesses:
    """Replace each VECTORIZED loop by copies of its body, whose loads and stores of neighbours are
    one where their address allows it.

    Where lanes take part or not one by one, and where they do not touch neighbours, each goes to
    memory by itself.
    Requires: stage NEST without blocks. Ensures: no loop is VECTORIZED.
    """

    def __call__(self, func: PrimFunc) -> PrimFunc:
        body = _rewritten(func.body, {})
        return func if body is func.body else func.with_body(body)


def _rewritten(stmt: Stmt, ranges: dict[Var, Interval]) -> Stmt:
    """Bottom-up; of nested vectorised loops the inner one's iterations are the lanes."""
    if isinstance(stmt, For):
        ranges = {**ranges, stmt.var: (0, stmt.extent - 1)}
    result = stmt.map_children(lambda c: _rewritten(c, ranges) if isinstance(c, Stmt) else c)
    if isinstance(result, For) and result.kind is ForKind.VECTORIZED:
        return _vectors(result, ranges)
    return result


def _vectors(loop: For, ranges: Ranges) -> Stmt:
    """The iterations of a loop, as many at a time as a vector of bytes may have lanes."""
    lanes = math.gcd(loop.extent, MOST_BYTES)
    inner = any(isinstance(node, For) for node in found_in(loop.body, For))
    if lanes == 1 or inner:
        return For(loop.var, loop.extent, ForKind.UNROLLED, loop.body)
    outer, lane = Var(loop.var.name), Var(loop.var.name)
    body = substitute(loop.body, {loop.var: add(mul(outer, index(lanes)), lane)})
    known = {**ranges, outer: (0, loop.extent // lanes - 1)}
    whole = For(
        outer, loop.extent // lanes, ForKind.UNROLLED, _Vectors(lane, lanes, known).stmt(body)
    )
    return simplify_stmt(whole, ranges)


class _Vectors:
    """Statements for `lane` = 0 .. lanes-1, each for all of them before the next one."""

    def __init__(self, lane: Var, lanes: int, ranges: Ranges) -> None:
        self.lane = lane
        self.lanes = lanes
        self.ranges = ranges

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement for all lanes."""
        match stmt:
            case Seq():
                return seq(*map(self.stmt, stmt.body))
            case If() if stmt.orelse is None and all(
                map(self._is_alike, conjuncts(stmt.condition))
            ):
                return If(self._at(stmt.condition, 0), self.stmt(stmt.then))
            case Store(value=Select(condition, a, b)) if all(
                map(self._is_alike, conjuncts(condition))
            ):
                sides = (self.stmt(replace(stmt, value=side)) for side in (a, b))
                return If(self._at(condition, 0), *sides)
            case Store():
                return self._store(stmt)
        return fresh_copy(For(self.lane, self.lanes, ForKind.UNROLLED, stmt))

    def _at(self, expr: Expr, lane: int) -> Expr:
        return substitute(expr, {self.lane: index(lane)})

    def _is_alike(self, condition: Expr) -> bool:
        """Whether a condition says the same of every lane.

        4*i + lane < 40: the same for four lanes, since no multiple of 4 lies between them.
        """
        if self.lane not in free_vars(condition):
            return True
        if not isinstance(condition, LT | LE):
            return False
        a, b = (linear(settle(side, self.lane, self.lanes)) for side in (condition.a, condition.b))
        form = a - b
        rest = form.without(self.lane)
        if any(self.lane in free_vars(atom) for atom, _ in rest.terms):
            return False
        # the terms, multiples of `step`, are to be at most `first` in the first lane, `last` in the
        # last one
        step = divisor(Linear(rest.terms, 0)) or 1
        first = -rest.constant - isinstance(condition, LT)
        last = first - form.coefficient(self.lane) * (self.lanes - 1)
        return first // step == last // step

    def _store(self, store: Store) -> Stmt:
        """The stores of all lanes, below the loads that several of them share."""
        wide: dict[Load, list[Expr]] = {}
        lets: list[tuple[Var, Expr]] = []
        for load in _sure_loads(store.value):
            for at, width in () if load in wide else self._pieces(load.buffer, load.indices):
                var = Var(load.buffer.name, load.buffer.type.with_lanes(width))
                lets.append((var, Load(load.buffer, at)))
                wide.setdefault(load, []).extend(Lanes(var, n, 1) for n in range(width))
        values = [self._value(store.value, wide, lane) for lane in range(self.lanes)]
        made: list[Stmt] = []
        for at, width in self._pieces(store.buffer, store.indices):
            first = len(made) * width
            vector = _vector(values[first : first + width])
            made.append(replace(store, indices=at, value=vector, mask=None))
        result = (
            seq(*made)
            if made
            else seq(
                *(
                    replace(
                        store,
                        indices=tuple(self._at(i, lane) for i in store.indices),
                        value=value,
                        mask=None,
                    )
                    for lane, value in enumerate(values)
                )
            )
        )
        for var, value in reversed(lets):
            result = LetStmt(var, value, result)
        return result

    def _value(self, value: Expr, wide: dict[Load, list[Expr]], lane: int) -> Expr:
        """A value in one lane; what it names has another name in each."""
        names: dict[Var, Expr] = {
            let.var: Var(let.var.name, let.var.type) for let in found_in(value, Let)
        }

        def visit(node: Node) -> Node:
            if isinstance(node, Load) and node in wide:
                return wide[node][lane]
            return node.map_children(visit)

        found = visit(value)
        assert isinstance(found, Expr)
        return substitute(found, {**names, self.lane: index(lane)})

    def _pieces(
        self, buffer: Buffer, indices: Sequence[Expr]
    ) -> list[tuple[tuple[Expr, ...], int]]:
        """An access as vectors of neighbours: the indices and the lanes of each; none where every
        lane is on its own.
        """
        found = address(buffer, indices, self.lane, self.lanes, self.ranges)
        moved = [self._moved(i) for i in indices]
        if buffer.is_private or found.stride != 1 or sorted(s for _, s in moved if s) != [1]:
            return []
        room = MOST_BYTES // buffer.type.bytes
        width = math.gcd(self.lanes, room, divisor(linear(found.base)))
        if width == 1:
            return []
        return [
            (tuple(Ramp(add(i, index(n)), 1, width) if s else i for i, s in moved), width)
            for n in range(0, self.lanes, width)
        ]

    def _moved(self, expr: Expr) -> tuple[Expr, int]:
        """An index in the first lane, and how far it goes on from lane to lane; 0 where it stays,
        or goes on otherwise.
        """
        known = {**self.ranges, self.lane: (0, self.lanes - 1)}
        moved = linear_in(simplify(settle(expr, self.lane, self.lanes), known), self.lane)
        return moved if moved is not None else (expr, 0)


def _vector(values: Sequence[Expr]) -> Expr:
    """The vector of some lanes; one that is there already where they are its lanes."""
    match values[0]:
        case Lanes(Var() as whole) if whole.type.lanes == len(values):
            if all(value == Lanes(whole, lane, 1) for lane, value in enumerate(values)):
                return whole
    return Vector(tuple(values))


def _sure_loads(expr: Expr) -> Iterator[Load]:
    """The loads in an expression that are made whatever is read."""
    if isinstance(expr, Load):
        yield expr
        return
    sure: Sequence[Node] = expr.children()
    match expr:
        case Select():
            sure = (expr.condition,)
        case And() | Or():
            sure = (expr.a,)
    for child in sure:
        if isinstance(child, Expr):
            yield from _sure_loads(child)


def divisor(form: Linear) -> int:
    """The largest number known to divide all values of a form; 0 where they are 0."""
    return math.gcd(form.constant, *(factor * _divisor(atom) for atom, factor in form.terms))


def _divisor(atom: Expr) -> int:
    match atom:
        case FloorMod(a, Const(number)):  # (6*i) % 4 is even
            return math.gcd(divisor(linear(a)), int(number))
        case FloorDiv(a, Const(number)):  # (6*i) // 3 is even
            whole = divisor(linear(a))
            return whole // int(number) if whole % int(number) == 0 else 1
        case Min(a, b) | Max(a, b) | Select(_, a, b):
            return math.gcd(divisor(linear(a)), divisor(linear(b)))
    return 1
