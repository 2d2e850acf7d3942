"""Let what a loop fetches into shared memory be fetched some iterations ahead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ....tir.analysis.fetched import Fetched, fetched
from ....tir.buffer import Buffer, Load
from ....tir.errors import TargetError
from ....tir.expr import LT, Expr, Var, add, floormod, index
from ....tir.func import PrimFunc
from ....tir.node import Node
from ....tir.stmt import Alloc, Commit, For, ForKind, If, Stmt, Store, seq
from ....tir.visit import fresh_copy, substitute, transform, transform_statements

KEY = "stages"


@dataclass(frozen=True, slots=True)
class CopyAhead:
    """Give what a loop with the hint "stages" fetches as many places in shared memory, and fetch
    each slice `stages - 1` iterations before it is used.

    for k in range(n, stages=2): { S = A[k]; use(S) }
    ->  S[0] = A[0]; commit(S, 1)
        for k in range(n):
            if k + 1 < n: S[(k + 1) % 2] = A[k + 1]
            commit(S, 1)
            use(S[k % 2])

    Requires: stage NEST; storage is what one iteration touches. Ensures: stage NEST; no loop has
    the hint. Raises: TargetError where the body does not fetch first.
    """

    def __call__(self, func: PrimFunc) -> PrimFunc:
        def rule(node: Node) -> Node:
            if not isinstance(node, For) or KEY not in dict(node.annotations):
                return node
            parts = fetched(node)
            if isinstance(parts, str):
                raise TargetError(
                    f"copy_ahead: loop '{node.var.name}' of '{func.name}' has the hint '{KEY}', "
                    f"but {parts}; expected copies into shared memory of its own, then their use.",
                    code="ahead-copies",
                    hints=(f"annotate(loop, '{KEY}', n) last, behind steps that move blocks.",),
                )
            return _ahead(node, parts)

        return func.with_body(transform_statements(func.body, rule))


def _ahead(loop: For, parts: Fetched) -> Stmt:
    hints = dict(loop.annotations)
    count = min(hints.pop(KEY), loop.extent)
    plain = replace(loop, annotations=tuple(hints.items()))
    if count < 2:
        return plain
    staged = {buffer: _staged(buffer, count) for buffer in parts.buffers}
    commit = Commit(tuple(staged.values()), count - 1)
    first = Var(loop.var.name)
    begun = _copies(parts.copies, loop.var, first, staged, count)
    later = add(loop.var, index(count - 1))
    next_one = fresh_copy(_copies(parts.copies, loop.var, later, staged, count))
    used = _at(seq(*parts.rest), staged, floormod(loop.var, index(count)))
    body = seq(If(LT(later, index(loop.extent)), next_one), commit, used)
    for buffer in reversed(parts.held):
        body = Alloc(buffer, body)
    result = seq(
        For(first, count - 1, ForKind.SERIAL, seq(begun, commit)), replace(plain, body=body)
    )
    for buffer in reversed(staged.values()):
        result = Alloc(buffer, result)
    return result


def _staged(buffer: Buffer, count: int) -> Buffer:
    """The buffer with a place for each of some slices."""
    aligned = tuple(replace(item, axis=item.axis + 1) for item in buffer.aligned)
    return replace(buffer, shape=(count, *buffer.shape), dims=(), aligned=aligned)


def _copies(
    copies: Sequence[Stmt], var: Var, value: Expr, staged: Mapping[Buffer, Buffer], count: int
) -> Stmt:
    """What fetches the slice `value`, to its place."""
    moved = substitute(seq(*copies), {var: value})
    return _at(moved, staged, floormod(value, index(count)))


def _at(stmt: Stmt, staged: Mapping[Buffer, Buffer], place: Expr) -> Stmt:
    """The statement with the slices at a place."""

    def rule(node: Node) -> Node:
        if isinstance(node, Load | Store) and node.buffer in staged:
            return replace(node, buffer=staged[node.buffer], indices=(place, *node.indices))
        return node

    return transform(stmt, rule)
