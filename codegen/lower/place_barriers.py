"""Put barriers between statements at the root that depend on each other: there and nowhere else.

At the root each thread runs its share of a parallel loop, and thread 0 runs everything else, so a statement that touches what
an earlier one wrote (or writes what it touched) waits for all threads.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...tir.expr import Buffer
from ...tir.func import PrimFunc, split_allocations
from ...tir.stmt import Alloc, Barrier, Prefetch, Stmt, Store, seq
from ...tir.visit import accesses, walk


@dataclass(frozen=True, slots=True)
class PlaceBarriers:
    """Place the barriers of a function anew.

    Requires: stage NEST. Ensures: stage NEST; a barrier stands between two root statements exactly where an earlier
    barrier does not already part them and one writes what the other touches.
    """

    def __call__(self, func: PrimFunc) -> PrimFunc:
        buffers, statements = split_allocations(func.body)
        placed: list[Stmt] = []
        touched: set[Buffer] = set()
        written: set[Buffer] = set()
        for statement in (s for s in statements if not isinstance(s, Barrier)):
            mine, stored = _shared(statement)
            if mine & written or stored & touched:
                placed.append(Barrier())
                touched, written = set(), set()
            placed.append(statement)
            touched |= mine
            written |= stored
        body = seq(*placed)
        for buffer in reversed(buffers):
            body = Alloc(buffer, body)
        return func if body == func.body else func.with_body(body)


def _shared(statement: Stmt) -> tuple[set[Buffer], set[Buffer]]:
    """The buffers from outside that a statement touches, and those that it writes."""
    own = {node.buffer for node in walk(statement) if isinstance(node, Alloc)}
    listed = [a for a in accesses(statement) if not isinstance(a, Prefetch) and a.buffer not in own]
    return {a.buffer for a in listed}, {a.buffer for a in listed if isinstance(a, Store)}
