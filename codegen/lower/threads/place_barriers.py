"""Put barriers between statements at the root that depend on each other: there and nowhere else.

At the root each thread runs its share of a parallel loop, and thread 0 runs everything else. So
where a statement touches what an earlier one wrote, or writes what it touched, all threads wait for
each other first, unless thread 0 runs both.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....tir.buffer import Buffer
from ....tir.func import PrimFunc, split_allocations
from ....tir.scatter import ScatterFunction
from ....tir.stmt import SHARED_OUT, Alloc, Barrier, Extern, For, Prefetch, Stmt, Store, seq
from ....tir.suppression import SuppressionFunction
from ....tir.visit import accesses, statements

SHARED_BOXES = 1 << 11  # of a suppression
SHARED_ELEMENTS = 1 << 14  # of a scatter: fewer of them are copied sooner than threads meet


@dataclass(frozen=True, slots=True)
class PlaceBarriers:
    """Place the barriers of a function anew.

    Requires: stage NEST. Ensures: stage NEST; a barrier stands between two root statements exactly
    where an earlier barrier does not already part them and one writes what the other touches.
    """

    def __call__(self, func: PrimFunc) -> PrimFunc:
        buffers, statements = split_allocations(func.body)
        placed: list[Stmt] = []
        earlier: list[_Shared] = []
        for statement in (s for s in statements if not isinstance(s, Barrier)):
            mine = _shared(statement)
            if any(mine.conflicts_with(other) for other in earlier):
                placed.append(Barrier())
                earlier = []
            placed.append(statement)
            earlier.append(mine)
        body = seq(*placed)
        for buffer in reversed(buffers):
            body = Alloc(buffer, body)
        return func if body == func.body else func.with_body(body)


@dataclass(frozen=True, slots=True)
class _Shared:
    """What a root statement touches and writes of the buffers from outside, and whether all threads
    run it.
    """

    touched: frozenset[Buffer]
    written: frozenset[Buffer]
    parallel: bool

    def conflicts_with(self, other: _Shared) -> bool:
        """Whether the two depend on each other and different threads may run them."""
        depends = self.touched & other.written or self.written & other.touched
        return bool(depends) and (self.parallel or other.parallel)


def shares_out(call: Extern) -> bool:
    """Whether threads share out a scatter, of which they copy at least a part each, or rows of
    boxes.
    """
    if isinstance(call.function, SuppressionFunction):
        rows, count = call.inputs[0].shape
        return rows > 1 and rows * count >= SHARED_BOXES
    return isinstance(call.function, ScatterFunction) and call.outputs[0].size >= SHARED_ELEMENTS


def _is_shared_out(node: Stmt) -> bool:
    """Whether threads share out what a statement does."""
    if isinstance(node, Extern):
        return shares_out(node)
    return isinstance(node, For) and node.kind in SHARED_OUT


def _shared(statement: Stmt) -> _Shared:
    own = {node.buffer for node in statements(statement) if isinstance(node, Alloc)}
    listed = [a for a in accesses(statement) if not isinstance(a, Prefetch) and a.buffer not in own]
    parallel = any(map(_is_shared_out, statements(statement)))
    written = frozenset(a.buffer for a in listed if isinstance(a, Store))
    return _Shared(frozenset(a.buffer for a in listed), written, parallel)
