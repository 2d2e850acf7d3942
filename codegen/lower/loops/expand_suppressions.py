"""Replace suppressions by the loops that they are: boxes in blocks of BLOCK, each block compared in
vectors with the boxes that are kept, then its own boxes one after the other.

    for each row:
        for each block of it, while boxes are left and there is room:
            for each box that is kept:          hit[i] |= it overlaps i       for i of the block
            for each box of the block that is not hit:
                it is kept;                     hit[i] |= it overlaps i       for i of the block

So a box is compared with those that are kept alone, and nothing is joined across lanes. Places that
come from memory are clamped: the proof of the lowered code reads the clamp and knows no other
reason why one should be inside. Threads share out rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ....tir.buffer import Buffer, Load
from ....tir.dtype import INT32, INT64
from ....tir.expr import (
    EQ,
    LT,
    Add,
    And,
    Cast,
    Const,
    Div,
    Expr,
    Let,
    Max,
    Min,
    Mul,
    Select,
    Sub,
    Var,
    add,
    index,
    mul,
)
from ....tir.func import PrimFunc
from ....tir.node import Node
from ....tir.stmt import Alloc, Extern, For, ForKind, If, LetStmt, Stmt, Store, seq
from ....tir.suppression import SuppressionFunction
from ....tir.target.target import Target
from ....tir.visit import of_block, transform
from ..threads.place_barriers import shares_out
from .in_vectors import in_vectors

BLOCK = 64  # boxes that are compared with each that is kept


@dataclass(frozen=True, slots=True)
class ExpandSuppressions:
    """Make loops of each suppression.

    Requires: a CPU; stage NEST without blocks; a barrier parts each suppression whose rows threads
    share out from what it depends on.
    Ensures: no call of a suppression is left.
    """

    target: Target

    def __call__(self, func: PrimFunc) -> PrimFunc:
        def rule(node: Node) -> Node:
            if isinstance(node, Extern) and isinstance(node.function, SuppressionFunction):
                return of_block(_Suppression(node, self.target).loops(), node.outputs[0].name)
            return node

        return func.with_body(transform(func.body, rule))


class _Suppression:
    """One suppression on its way to loops."""

    def __init__(self, call: Extern, target: Target) -> None:
        *self.sides, self.count, self.share = call.inputs
        self.kept, self.number = call.outputs
        self.rows, self.size = self.sides[0].shape
        self.most = self.kept.shape[1]
        self.target = target
        self.shared = shares_out(call)
        self.hit = Buffer(f"{self.kept.name}_hit", INT32, (min(BLOCK, self.size),))

    def loops(self) -> Stmt:
        """All rows."""
        row = Var("row")
        kind = ForKind.PARALLEL if self.shared else ForKind.SERIAL
        return For(row, self.rows, kind, self._row(row))

    def _row(self, row: Expr) -> Stmt:
        blocks, rest = divmod(self.size, BLOCK)

        def clear(i: Expr) -> Stmt:
            return Store(self.kept, (row, i), Const(-1, INT32))

        begin = in_vectors(clear, index(0), self.most, INT32, self.target)
        parts = [Store(self.number, (row,), Const(0, INT32)), begin]
        if blocks:
            block = Var("block")
            own = self._block(row, mul(block, index(BLOCK)), BLOCK)
            parts.append(For(block, blocks, ForKind.SERIAL, own))
        if rest:
            parts.append(self._block(row, index(blocks * BLOCK), rest))
        return Alloc(self.hit, seq(*parts))

    def _block(self, row: Expr, first: Expr, count: int) -> Stmt:
        """The boxes of a row from `first` on, where there are any, and room for one."""

        def clear(i: Expr) -> Stmt:
            return Store(self.hit, (i,), Const(0, INT32))

        past, own = Var("past"), Var("own")
        here, number = add(first, own), Load(self.number, (row,))
        at = self._inside(Load(self.kept, (row, past)), self.size)
        earlier = self._with(at, lambda place: self._strike(row, place, first, count))
        compared = If(LT(Cast(past, INT32), number), earlier)
        open_ = And(self._is_there(row, here), EQ(Load(self.hit, (own,)), Const(0, INT32)))
        kept = self._with(
            self._inside(number, self.most),
            lambda place: seq(
                Store(self.kept, (row, place), Cast(here, INT32)),
                Store(self.number, (row,), Add(number, Const(1, INT32))),
                self._strike(row, here, first, count),
            ),
        )
        body = seq(
            in_vectors(clear, index(0), count, INT32, self.target),
            For(past, self.most, ForKind.SERIAL, compared),
            For(own, count, ForKind.SERIAL, If(And(open_, self._has_room(row)), kept)),
        )
        return If(And(self._is_there(row, first), self._has_room(row)), body)

    def _is_there(self, row: Expr, place: Expr) -> Expr:
        return LT(Cast(place, INT32), Load(self.count, (row,)))

    def _has_room(self, row: Expr) -> Expr:
        return LT(Load(self.number, (row,)), Const(self.most, INT32))

    def _inside(self, place: Expr, size: int) -> Expr:
        return Max(Min(Cast(place, INT64), index(size - 1)), index(0))

    def _with(self, value: Expr, body: Callable[[Expr], Stmt]) -> Stmt:
        place = Var("at", INT64)
        return LetStmt(place, value, body(place))

    def _strike(self, row: Expr, place: Expr, first: Expr, count: int) -> Stmt:
        """Strike off the boxes of a block that the one at a place overlaps."""
        its = tuple(Var(f"its_{side.name}", side.type) for side in self.sides)

        def strike(i: Expr) -> Stmt:
            own = [Load(side, (row, add(first, i))) for side in self.sides]
            is_hit = self._overlaps(own, its)
            value = Select(is_hit, Const(1, INT32), Load(self.hit, (i,)))
            return Store(self.hit, (i,), value)

        body = in_vectors(strike, index(0), count, INT32, self.target)
        for var, side in reversed(list(zip(its, self.sides, strict=True))):
            body = LetStmt(var, Load(side, (row, place)), body)
        return body

    def _overlaps(self, own: list[Load], its: tuple[Var, ...]) -> Expr:
        """Whether two boxes have more in common than the share."""
        zero = Const(0.0, self.share.type)
        low = [Select(LT(b, a), a, b) for a, b in zip(own[:2], its[:2], strict=True)]
        high = [Select(LT(a, b), a, b) for a, b in zip(own[2:4], its[2:4], strict=True)]
        names = ("width", "height", "common", "union")
        width, height, common, union = (Var(name, self.share.type) for name in names)
        spans = (Select(LT(zero, span), span, zero) for span in (width, height))
        more = LT(Load(self.share, ()), Div(common, union))
        found: Expr = And(And(LT(zero, common), LT(zero, union)), more)
        found = Let(union, Sub(Add(own[4], its[4]), common), found)
        found = Let(common, Mul(*spans), found)
        found = Let(height, Sub(high[1], low[1]), found)
        return Let(width, Sub(high[0], low[0]), found)
