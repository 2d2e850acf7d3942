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
from ...tir.target.target import CpuTarget, Target
from ...tir.visit import free_vars, loads
from ..nest import targets_of
from ..schedule import Schedule
from .anchored import AnchoredRule, schedule_others
from .knobs.knobs import choose_copies, write_out
from .knobs.lanes import vector_lanes
from .knobs.tiles import Tile
from .long_sums import cut_long_sum
from .shape.structure import pointwise_output
from .shape.windows import UNROLLED_TAPS, is_window, sliding_axes, window_taps
from .sweeps import block_cycles
from .tiled import choose_tile_loops, finish_tile, panels_between, share_tiles, shared_first

ACCUMULATORS = 8  # enough to hide the latency of an addition


@dataclass(frozen=True, slots=True)
class ReductionRule(AnchoredRule):
    """One reduction whose last output axis is read contiguously, pointwise blocks around it.

    in_order: a sum is one chain in the order of its definition, never in parts.
    """

    name: ClassVar[str] = "reduction"
    keeps_order: ClassVar[bool] = True
    takes_padding: ClassVar[bool] = True

    def is_for(self, func: PrimFunc, anchor: Block) -> bool:
        """Whether its last output axis is read contiguously."""
        return is_window(anchor)

    def apply(self, sch: Schedule, target: Target) -> None:
        """Take the steps."""
        target = CpuTarget.of(target)
        anchor = self.inline(sch)
        schedule_others(sch, (anchor, pointwise_output(sch.func, anchor)), target)
        cuts = [] if self.in_order else cut_long_sum(sch, anchor.name, target)
        for cut in (cut for cut in cuts if not cut.scheduled):
            schedule_window(sch, sch.func.block(cut.parts), target, alone=True)
        schedule_window(sch, sch.func.block(anchor.name), target)

    def cycles(self, anchor: Block, target: CpuTarget) -> float:
        """Cycles of its block: it is no tile of products."""
        return block_cycles(anchor, target)


def schedule_window(sch: Schedule, block: Block, target: CpuTarget, *, alone: bool = False) -> None:
    """Tile one windowed reduction for registers, with what follows on the accumulators, unless it
    is to be `alone`.
    """
    loops = choose_tile_loops(sch, block, _tiles(block, target), target)
    around = panels_between(sch, block.name, loops, len(loops.rows))
    outer = shared_first(sch, around, target)
    ordered = finish_tile(sch, block.name, loops, outer, loops.reduced, target, alone=alone)
    taps = window_taps(block)
    most = UNROLLED_TAPS if taps <= UNROLLED_TAPS else 0
    if not write_out(sch, block.name, loops.reduced, most):
        choose_copies(sch, block.name, loops.reduced[-1])
    share_tiles(sch, block, ordered, target)


def _tiles(block: Block, target: CpuTarget) -> list[Tile]:
    """Tiles of rows and vectors: that first whose rows come out even, or whose vectors do where
    rows share nothing, so that a tile reads memory in long pieces; then those with nearly as many
    accumulators.
    """
    spatial = [it for it in block.iters if it.kind is IterKind.SPATIAL]
    vectors = -(-spatial[-1].extent // vector_lanes(block, target))
    row = spatial[-2].extent if len(spatial) > 1 else 1
    if _rows_share(block, spatial):
        rows = _divisor(row, ACCUMULATORS)
        default = Tile(1, rows, max(1, min(vectors, ACCUMULATORS // rows)))
    else:
        wide = _divisor(vectors, ACCUMULATORS)
        default = Tile(1, _divisor(row, max(1, ACCUMULATORS // wide)), wide)
    most = min(2 * ACCUMULATORS, target.vector_registers - 2)
    sizes = itertools.product(range(1, min(row, ACCUMULATORS) + 1), (1, 2, 4, 8))
    found = [Tile(1, r, v) for r, v in sizes if v <= vectors and r * v <= most]
    found.sort(key=lambda t: (abs(t.accumulators - ACCUMULATORS), row % t.rows != 0, t.to_json()))
    return [default, *(tile for tile in found if tile != default)]


def _rows_share(block: Block, spatial: Sequence[IterVar]) -> bool:
    """Whether neighbouring rows read elements in common: windows slide, or an operand is one for
    all of them.
    """
    if len(spatial) < 2 or sliding_axes(block):
        return True
    row, own = spatial[-2].var, targets_of(block)
    read = [load for load in loads(block.body) if load.buffer not in own]
    return any(all(row not in free_vars(item) for item in load.indices) for load in read)


def _divisor(extent: int, limit: int) -> int:
    """The largest divisor of `extent` up to `limit`, or the limit where the divisors are poor."""
    best = max(d for d in range(1, min(extent, limit) + 1) if extent % d == 0)
    return best if best * 2 >= min(extent, limit) else min(extent, limit)
