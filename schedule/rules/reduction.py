"""Rule for reductions over windows or whole axes: pooling, means, sums of squares.

The last axis that is kept runs in vectors, a few rows of it stay in registers, what follows runs on
the accumulators.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...tir.func import PrimFunc
from ...tir.stmt import Block, IterKind
from ...tir.target import Target
from ..schedule import Schedule
from .elementwise import schedule_pointwise, vector_lanes
from .structure import inline_chains, is_pointwise, pointwise_output, reductions
from .tiled import finish_tile, shared_first, tile_loops
from .tiles import Tile
from .windows import UNROLLED_TAPS, inline_padding, is_window, window_taps

ACCUMULATORS = 8  # enough to hide the latency of an addition


@dataclass(frozen=True, slots=True)
class ReductionRule:
    """One reduction whose last output axis is read contiguously, pointwise blocks around it."""

    name: str = "reduction"

    def matches(self, func: PrimFunc) -> bool:
        """Whether the function is one such reduction."""
        anchors = reductions(func)
        others = [block for block in func.blocks if block not in anchors]
        return len(anchors) == 1 and is_window(anchors[0]) and all(map(is_pointwise, others))

    def apply(self, sch: Schedule, target: Target) -> None:
        """Take the steps."""
        inline_chains(sch)
        inline_padding(sch)
        (anchor,) = reductions(sch.func)
        epilogue = pointwise_output(sch.func, anchor)
        for block in sch.func.blocks:
            if block is not anchor and block is not epilogue:
                schedule_pointwise(sch, block.name, target)
        schedule_window(sch, anchor, target)


def schedule_window(sch: Schedule, block: Block, target: Target, *, alone: bool = False) -> None:
    """Tile one windowed reduction for registers, with what follows on the accumulators, unless it
    is to be `alone`.
    """
    spatial = [it for it in block.iters if it.kind is IterKind.SPATIAL]
    reduced = [it for it in block.iters if it.kind is IterKind.REDUCE]
    lanes = vector_lanes(block, target)
    vectors = -(-spatial[-1].extent // lanes)
    row = spatial[-2].extent if len(spatial) > 1 else 1
    rows = _divisor(row, ACCUMULATORS)
    tile = Tile(1, rows, max(1, min(vectors, ACCUMULATORS // rows)))
    order = [it.var for it in reduced]
    loops = tile_loops(sch, block, tile, tile.vectors * lanes, lanes, order)
    outer = shared_first(sch, [*loops.rows, loops.panel], target)
    finish_tile(sch, block.name, loops, outer, loops.reduced, target, alone=alone)
    if window_taps(block) <= UNROLLED_TAPS:
        for loop in loops.reduced:
            sch.unroll(loop)


def _divisor(extent: int, limit: int) -> int:
    """The largest divisor of `extent` up to `limit`, or the limit where the divisors are poor."""
    best = max(d for d in range(1, min(extent, limit) + 1) if extent % d == 0)
    return best if best * 2 >= min(extent, limit) else min(extent, limit)
