"""Let copies end where they stand if no barrier waits for them."""

from __future__ import annotations

from dataclasses import dataclass

from ...tir.func import PrimFunc
from ...tir.node import Node
from ...tir.stmt import Alloc, Barrier, Commit, Seq, seq
from ...tir.visit import statements, transform


@dataclass(frozen=True, slots=True)
class CopyAtOnce:
    """Leave out the ends of groups of copies into storage that lives and goes without a barrier:
    each thread uses what it has fetched itself, and nothing would make it wait.

    Requires: stage NEST; barriers stand where they stay. Ensures: stage NEST; while storage lives
    into which copies go on, there is a barrier.
    """

    def __call__(self, func: PrimFunc) -> PrimFunc:
        body = transform(func.body, _at_once)
        return func if body is func.body else func.with_body(body)


def _at_once(node: Node) -> Node:
    if not isinstance(node, Alloc) or any(isinstance(x, Barrier) for x in statements(node.body)):
        return node

    def drop(inner: Node) -> Node:
        if not isinstance(inner, Seq):
            return inner
        kept = [x for x in inner.body if not _ends_copies(x, node)]
        return inner if len(kept) == len(inner.body) else seq(*kept)

    return transform(node, drop)


def _ends_copies(node: Node, storage: Alloc) -> bool:
    return isinstance(node, Commit) and storage.buffer in node.buffers
