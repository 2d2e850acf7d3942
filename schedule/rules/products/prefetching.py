"""What a tiled product asks for before it is needed: the next panel of weights, the next rows of
what it reads and writes.

A processor fetches ahead along few streams, and those short; a tile reads as many as it has rows.
So what comes from behind the level-2 cache is asked for a whole iteration early, a few lines at a
time, between chunks of the sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from ....tir.buffer import Buffer
from ....tir.target.target import CpuTarget
from ....tir.visit import loads
from ...nest import targets_of
from ...primitives.storage.prefetch import LINE_BYTES
from ...schedule import Schedule
from ...trace.references import LoopRef
from ..shape.structure import Contraction, pointwise_output

PREFETCH_STEPS = 16  # between the places at which a tile asks for what comes next, at most
FEW_LINES = 8  # asked for in one place where the steps between two places may be fewer
MOST_LINES = 16  # asked for in one place: a chunk of the sum takes longer than they do
MOST_LINES_OF_ROWS = 32  # the same, of rows: measured
LEAST_STEPS = 4  # between two places that ask for rows


@dataclass(frozen=True, slots=True)
class Rows:
    """The tensors that a sum of products and what follows it walk by rows.

    data: what the sum reads. others: what follows reads that is as large as its results. results:
    what is stored in the end.
    """

    data: Buffer
    others: tuple[Buffer, ...]
    results: tuple[Buffer, ...]

    @property
    def bytes(self) -> int:
        """The size of all of them together."""
        return sum(b.size * b.type.bytes for b in (self.data, *self.others, *self.results))


def rows_of(sch: Schedule, found: Contraction) -> Rows:
    """What a sum of products and the pointwise block behind it, if there is one, walk by rows."""
    summed, last = targets_of(found.block), pointwise_output(sch.func, found.block)
    if last is None:
        return Rows(found.data.buffer, (), summed)
    results = targets_of(last)
    read = dict.fromkeys(load.buffer for load in loads(last.body))
    others = (b for b in read if b not in summed and b.size >= results[0].size)
    return Rows(found.data.buffer, tuple(others), results)


def chunks(sch: Schedule, loop: LoopRef, steps: int = PREFETCH_STEPS) -> list[LoopRef]:
    """A reduction loop in chunks, between which prefetches may stand."""
    return list(sch.split(loop, (None, steps), tail="partition"))


def spacing(size: int, steps: int, least: int = 1) -> int:
    """Steps from one place that asks for what comes next to the following one, where `steps` steps
    share out `size` bytes: a power of two, `least` or more.

    Many requests in one place wait for each other: of 16 x 4,096 x 4,096, whose weights stream from
    memory, 24 at once cost a tenth of the speed that 6 have.
    """
    fitting = FEW_LINES * LINE_BYTES * steps // size
    return max(least, min(PREFETCH_STEPS, 1 << max(0, fitting.bit_length() - 1)))


def fetch_weights(
    sch: Schedule, packed: str, at: LoopRef, spread: Sequence[LoopRef], bytes_read: int
) -> None:
    """Ask for the packed weights of the next iteration of `at`, which reads `bytes_read` bytes of
    them, from inside of the loops `spread` of this one; where that is a few lines in each, and they
    lie together.
    """
    if _lines(sch, bytes_read, spread) <= MOST_LINES:
        sch.attempt(lambda s: s.prefetch(packed, at, spread=spread, level=2))


def fetch_results(sch: Schedule, streamed: Rows, tile: LoopRef, spread: Sequence[LoopRef]) -> None:
    """Ask for the lines that an iteration of the loop `tile` writes, and for those that what
    follows its sum reads, while it sums its tile, from inside of the loops `spread`; where that is
    a few lines of a tensor in each.

    For what is far by then, since weights stream through the caches.
    """
    for block in sch.func.blocks:
        loops = sch.loops(block.name)
        if tile not in loops or not set(streamed.results) & set(targets_of(block)):
            continue
        size = math.prod(sch.extent(loop) for loop in loops[loops.index(tile) + 1 :])
        for tensor in (*streamed.others, *streamed.results):
            if _lines(sch, size * tensor.type.bytes, spread) <= FEW_LINES:
                _prefetch(sch, streamed, tensor, tile, spread, distance=0, level=1)


def fetch_rows(
    sch: Schedule,
    streamed: Rows,
    rows: Sequence[LoopRef],
    around: Sequence[LoopRef],
    target: CpuTarget,
    level: int,
) -> None:
    """Ask for what the next iteration of a loop over rows reads and writes, from inside of this
    one: the first of the nested loops `around` of which an iteration walks no more than a part of
    the level-2 cache, if that is one of `rows`. level: the cache that it should come to.

    A whole iteration ahead, since a tile is done before what it asks for is there.
    """
    size, loops = streamed.bytes, [loop for loop in around if sch.extent(loop) > 1]
    while loops and loops[0] in rows and size > target.l2_bytes // 4 * sch.extent(loops[0]):
        size //= sch.extent(loops.pop(0))
    if not loops or loops[0] not in rows:
        return
    at, *spread = loops
    if _lines(sch, size // sch.extent(at), spread) <= MOST_LINES_OF_ROWS:
        for tensor in (streamed.data, *streamed.others, *streamed.results):
            _prefetch(sch, streamed, tensor, at, spread, distance=1, level=level)


def _prefetch(
    sch: Schedule,
    streamed: Rows,
    tensor: Buffer,
    at: LoopRef,
    spread: Sequence[LoopRef],
    *,
    distance: int,
    level: int,
) -> None:
    """Prefetch a tensor that is walked by rows, where the loop walks it: what follows a sum may
    have a nest of its own.
    """
    rw: Literal["read", "write"] = "write" if tensor in streamed.results else "read"
    prefetch = partial(Schedule.prefetch, buffer=tensor.name, at=at, spread=spread)
    sch.attempt(partial(prefetch, distance=distance, rw=rw, level=level))


def _lines(sch: Schedule, size: int, spread: Sequence[LoopRef]) -> float:
    """Cache lines that each iteration of the innermost of nested loops asks for."""
    return size / LINE_BYTES / math.prod(sch.extent(loop) for loop in spread)
