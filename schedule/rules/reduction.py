"""Rule for reductions over windows or whole axes: pooling, means, sums of squares.

The last axis that is kept runs in vectors, a few rows of it stay in registers, what follows runs on
the accumulators.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...tir.func import PrimFunc
from ...tir.stmt import Block, IterKind, IterVar
from ...tir.target import CpuTarget, Target
from ..cost.passes import Sweep
from ..schedule import Schedule
from .anchored import anchored_passes, inline_around_windows, only_reduction
from .elementwise import schedule_pointwise
from .knobs.knobs import choose_copies, choose_tile, write_out
from .knobs.lanes import vector_lanes
from .knobs.tiles import Tile
from .long_sums import cut_long_sum
from .rule import Rule
from .shape.windows import UNROLLED_TAPS, is_window, window_taps
from .sweeps import block_cycles
from .tiled import finish_tile, panels_between, share_tiles, shared_first, tile_loops

ACCUMULATORS = 8  # enough to hide the latency of an addition


@dataclass(frozen=True, slots=True)
class ReductionRule(Rule):
    """One reduction whose last output axis is read contiguously, pointwise blocks around it.

    in_order: a sum is one chain in the order of its definition, never in parts.
    """

    name: ClassVar[str] = "reduction"
    keeps_order: ClassVar[bool] = True

    def matches(self, func: PrimFunc) -> bool:
        """Whether the function is one such reduction."""
        anchor = only_reduction(func)
        return anchor is not None and is_window(anchor)

    def apply(self, sch: Schedule, target: Target) -> None:
        """Take the steps."""
        target = CpuTarget.of(target)
        found = inline_around_windows(sch)
        for block in found.others:
            schedule_pointwise(sch, block.name, target)
        cuts = [] if self.in_order else cut_long_sum(sch, found.anchor.name, target)
        for cut in (cut for cut in cuts if not cut.scheduled):
            schedule_window(sch, sch.func.block(cut.parts), target, alone=True)
        schedule_window(sch, sch.func.block(found.anchor.name), target)

    def passes(self, func: PrimFunc, target: Target) -> Sequence[Sweep]:
        """One for each block; what follows the reduction runs on its accumulators."""
        target = CpuTarget.of(target)
        sch = Schedule(func)
        cycles = block_cycles(inline_around_windows(sch).anchor, target)
        return anchored_passes(sch.func, cycles, target)


def schedule_window(sch: Schedule, block: Block, target: CpuTarget, *, alone: bool = False) -> None:
    """Tile one windowed reduction for registers, with what follows on the accumulators, unless it
    is to be `alone`.
    """
    spatial = [it for it in block.iters if it.kind is IterKind.SPATIAL]
    reduced = [it for it in block.iters if it.kind is IterKind.REDUCE]
    lanes = vector_lanes(block, target)
    tile = choose_tile(sch, block.name, _tiles(spatial, lanes, target))
    order = [it.var for it in reduced]
    loops = tile_loops(sch, block, tile, tile.vectors * lanes, lanes, order)
    around = panels_between(sch, block.name, loops, len(loops.rows))
    outer = shared_first(sch, around, target)
    ordered = finish_tile(sch, block.name, loops, outer, loops.reduced, target, alone=alone)
    taps = window_taps(block)
    most = UNROLLED_TAPS if taps <= UNROLLED_TAPS else 0
    if not write_out(sch, block.name, loops.reduced, most):
        choose_copies(sch, block.name, loops.reduced[-1])
    share_tiles(sch, block, ordered, target)


def _tiles(spatial: Sequence[IterVar], lanes: int, target: CpuTarget) -> list[Tile]:
    """Tiles of rows and vectors: that first whose rows come out even, then those with nearly as
    many accumulators.
    """
    vectors = -(-spatial[-1].extent // lanes)
    row = spatial[-2].extent if len(spatial) > 1 else 1
    rows = _divisor(row, ACCUMULATORS)
    default = Tile(1, rows, max(1, min(vectors, ACCUMULATORS // rows)))
    most = min(2 * ACCUMULATORS, target.vector_registers - 2)
    sizes = itertools.product(range(1, min(row, ACCUMULATORS) + 1), (1, 2, 4, 8))
    found = [Tile(1, r, v) for r, v in sizes if v <= vectors and r * v <= most]
    found.sort(key=lambda t: (abs(t.accumulators - ACCUMULATORS), row % t.rows != 0, t.to_json()))
    return [default, *(tile for tile in found if tile != default)]


def _divisor(extent: int, limit: int) -> int:
    """The largest divisor of `extent` up to `limit`, or the limit where the divisors are poor."""
    best = max(d for d in range(1, min(extent, limit) + 1) if extent % d == 0)
    return best if best * 2 >= min(extent, limit) else min(extent, limit)
