"""Drop the copies into staged storage that nobody reads."""

from __future__ import annotations

from dataclasses import dataclass

from ....tir.analysis.simplify import simplify_stmt
from ....tir.func import PrimFunc
from ....tir.node import Node
from ....tir.stmt import NOTHING, Block, Role, Store
from ....tir.visit import accesses, stores, transform


@dataclass(frozen=True, slots=True)
class DropUnread:
    """Drop the copies into staged storage that nobody reads: a loop that was cut may leave a piece
    in which they alone run.

    Requires: stage NEST. Ensures: stage NEST; what is copied into staged storage is read.
    """

    def __call__(self, func: PrimFunc) -> PrimFunc:
        read = {a.buffer for a in accesses(func.body) if not isinstance(a, Store)}
        unread = {b for b in func.allocations if b.origin is not None and b not in read}
        if not unread:
            return func

        def drop(node: Node) -> Node:
            copies = isinstance(node, Block) and node.role is Role.COPY
            if copies and all(s.buffer in unread for s in stores(node)):
                return NOTHING
            return node

        return func.with_body(simplify_stmt(transform(func.body, drop)))
