"""Let copies end where they stand if no barrier in their loop waits for them."""

from __future__ import annotations

from dataclasses import dataclass

from ....tir.func import PrimFunc
from ....tir.node import Node
from ....tir.stmt import Alloc, Barrier, Commit, For, Seq, seq
from ....tir.visit import statements, transform


@dataclass(frozen=True, slots=True)
class CopyAtOnce:
    """Leave out the ends of groups of copies whose loop has no barrier: each thread uses what it
    has fetched itself, and nothing would make it wait.

    for k: { S[(k+1) % 2] = A[k+1]; commit(S, 1); use(S[k % 2]) }
    ->  for k: { S[(k+1) % 2] = A[k+1]; use(S[k % 2]) }

    Requires: stage NEST; barriers stand where they stay. Ensures: stage NEST; of the loops that
    copy ahead into one storage, one has a barrier.
    """

    def __call__(self, func: PrimFunc) -> PrimFunc:
        body = transform(func.body, _at_once)
        return func if body is func.body else func.with_body(body)


def _at_once(node: Node) -> Node:
    if not isinstance(node, Alloc) or any(map(_waits, statements(node.body))):
        return node

    def drop(inner: Node) -> Node:
        if not isinstance(inner, Seq):
            return inner
        kept = [x for x in inner.body if not _ends_copies(x, node)]
        return inner if len(kept) == len(inner.body) else seq(*kept)

    return transform(node, drop)


def _waits(node: Node) -> bool:
    """Whether it is a loop that copies ahead and waits."""
    if not isinstance(node, For):
        return False
    inside = statements(node.body)
    return all(any(isinstance(x, kind) for x in inside) for kind in (Barrier, Commit))


def _ends_copies(node: Node, storage: Alloc) -> bool:
    return isinstance(node, Commit) and storage.buffer in node.buffers
