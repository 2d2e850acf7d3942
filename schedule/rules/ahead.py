"""What a tiled product asks for before it is needed: the next panel of weights, the next rows of
data.

A processor fetches ahead along few streams, and those short; a tile reads as many as it has rows.
So what comes from behind the level-2 cache is asked for a whole iteration early, a few lines at a
time, between chunks of the sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...tir.target import Target
from ..nest import targets_of
from ..primitives.prefetch import LINE_BYTES
from ..references import LoopRef
from ..schedule import Schedule
from .structure import Contraction

PREFETCH_STEPS = 16  # between the places at which a tile asks for what comes next, at most
FEW_LINES = 8  # asked for in one place where the steps between two places may be fewer
MOST_LINES = 16  # asked for in one place: a chunk of the sum takes longer than they do
MOST_LINES_OF_ROWS = 32  # the same, of data: measured


def chunks(sch: Schedule, loop: LoopRef, steps: int = PREFETCH_STEPS) -> list[LoopRef]:
    """A reduction loop in chunks, between which prefetches may stand."""
    return list(sch.split(loop, (None, steps), tail="partition"))


def spacing(row_bytes: int, row_tiles: int) -> int:
    """Steps from one place that asks for what comes next to the following one, where a step reads
    `row_bytes` bytes of weights and so many tiles of rows share out the work: a power of two.

    Many requests in one place wait for each other: of 16 x 4,096 x 4,096, whose weights stream from
    memory, 24 at once cost a tenth of the speed that 6 have.
    """
    fitting = FEW_LINES * LINE_BYTES * row_tiles // row_bytes
    return min(PREFETCH_STEPS, 1 << max(0, fitting.bit_length() - 1))


def fetch_weights(
    sch: Schedule, packed: str, at: LoopRef, spread: Sequence[LoopRef], bytes_read: int
) -> None:
    """Ask for the packed weights of the next iteration of `at`, which reads `bytes_read` bytes of
    them, from inside of the loops `spread` of this one; where that is a few lines in each.
    """
    if _lines(sch, bytes_read, spread) <= MOST_LINES:
        sch.prefetch(packed, at, spread=spread, level=2)


def fetch_results(sch: Schedule, tile: LoopRef, spread: Sequence[LoopRef]) -> None:
    """Ask for the lines that an iteration of the loop `tile` writes, while it sums its tile, from
    inside of the loops `spread`; where that is a few lines in each.

    For results that are far by then, since weights stream through the caches.
    """
    for block in sch.func.blocks:
        loops = sch.loops(block.name)
        if tile not in loops:
            continue
        size = math.prod(sch.extent(loop) for loop in loops[loops.index(tile) + 1 :])
        for tensor in targets_of(block):
            few = _lines(sch, size * tensor.type.bytes, spread) <= FEW_LINES
            if few and tensor.scope == "global":
                sch.prefetch(tensor.name, tile, spread=spread, distance=0, rw="write")


def fetch_rows(sch: Schedule, found: Contraction, loops: Sequence[LoopRef], target: Target) -> None:
    """Ask for the data of the next iteration of the first of `loops`, over rows, from inside of the
    others, where the data does not stay in the level-2 cache.

    Into the first level where each element is one step of a sum; what several taps read again does
    not stay there until then. Measured on one thread of a Zen 4, shares of the multiply-add peak:
    1x1 convolutions of 256 > 128 channels at 56 x 56 from 83 to 95 %, 512 > 128 at 28 from 90 to
    96 %, 3x3 of stride 2 from 87 to 92 %.
    """
    data = found.data.buffer
    size = data.size * data.type.bytes
    first, *others = loops
    if size <= target.l2_bytes // 2:
        return
    if _lines(sch, size // sch.extent(first), others) <= MOST_LINES_OF_ROWS:
        level = 1 if len(found.reduced) == 1 else 2
        sch.attempt(lambda s: s.prefetch(data.name, first, spread=others, level=level))


def _lines(sch: Schedule, size: int, spread: Sequence[LoopRef]) -> float:
    """Cache lines that each iteration of the innermost of nested loops asks for."""
    return size / LINE_BYTES / math.prod(sch.extent(loop) for loop in spread)
