"""Merge loops that run the same threads one right after the other."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ....tir.func import PrimFunc
from ....tir.node import Node
from ....tir.stmt import For, Seq, Stmt, seq
from ....tir.visit import substitute, transform_statements


@dataclass(frozen=True, slots=True)
class MergeThreads:
    """Let threads run on from one of their loops to the next one.

    for i in bound(32): a(i)                for i in bound(32): { a(i); b(i) }
    for j in bound(32): b(j)          ->

    Different threads have no order without a barrier, and each runs its own part in the order that
    it had. What follows finds longer runs of statements.
    Requires: no loop is UNROLLED. Ensures: no two loops of one axis and extent follow each other.
    """

    def __call__(self, func: PrimFunc) -> PrimFunc:
        body = transform_statements(func.body, _merged)
        return func if body is func.body else func.with_body(body)


def _merged(node: Node) -> Node:
    if not isinstance(node, Seq):
        return node
    parts: list[Stmt] = []
    for stmt in node.body:
        last = parts[-1] if parts else None
        if isinstance(stmt, For) and isinstance(last, For) and _same_threads(stmt, last):
            own = substitute(stmt.body, {stmt.var: last.var})
            # the parts of a body that come together now may be loops of threads, too
            parts[-1] = replace(last, body=transform_statements(seq(last.body, own), _merged))
        else:
            parts.append(stmt)
    return node if len(parts) == len(node.body) else seq(*parts)


def _same_threads(one: For, other: For) -> bool:
    return one.is_of_threads and (one.axis, one.extent) == (other.axis, other.extent)
