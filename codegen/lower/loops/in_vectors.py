"""Loops of vectors over neighbours: whole vectors, then shorter ones, then one by one."""

from __future__ import annotations

from collections.abc import Callable

from ....tir.dtype import DType
from ....tir.expr import Expr, Var, add, index, mul
from ....tir.stmt import For, ForKind, Stmt, seq
from ....tir.target.target import Target


def in_vectors(
    body: Callable[[Expr], Stmt], first: Expr, extent: int, kind: DType, target: Target
) -> Stmt:
    """What `body` does at each of `extent` neighbours from `first` on, in vectors of a type."""
    found: list[Stmt] = []
    done, lanes, size = 0, max(1, target.lanes(kind)), kind.bytes
    least = 16 // size if size >= 4 else lanes  # the shortest vectors have 16 bytes
    while lanes >= max(least, 2):
        count = (extent - done) // lanes
        if count:
            vector, lane = Var("vector"), Var("lane")
            at = add(add(first, index(done)), add(mul(vector, index(lanes)), lane))
            inner = For(lane, lanes, ForKind.VECTORIZED, body(at))
            found.append(For(vector, count, ForKind.SERIAL, inner))
            done += count * lanes
        lanes //= 2
    if done < extent:
        last = Var("last")
        at = add(add(first, index(done)), last)
        found.append(For(last, extent - done, ForKind.SERIAL, body(at)))
    return seq(*found)
