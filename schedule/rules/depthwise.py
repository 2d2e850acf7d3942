"""Rule for windows that are weighted column by column: depthwise convolution.

Vectors run along the channels, a tile of a few rows and columns of outputs stays in registers, what
it reads is loaded once for all its taps, and the padding is no copy: it is taken into the sum, and
the tiles at a border are variants of their own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...tir.func import PrimFunc
from ...tir.stmt import Block, IterKind, IterVar
from ...tir.target.target import CpuTarget, Target
from ..schedule import Schedule
from .anchored import AnchoredRule, schedule_others
from .knobs.knobs import write_out
from .knobs.lanes import vector_lanes
from .knobs.tiles import Tile, pieces
from .reduction import ACCUMULATORS
from .shape.structure import pointwise_output
from .shape.windows import is_depthwise, sliding_axes, window_box, window_taps
from .tiled import choose_tile_loops, finish_tile, panels_between, share_tiles, shared_first

UNROLLED_TAPS = 25  # of a window that is written out at most
LOAD_SHARE = 0.35  # of a load, in multiply-adds that do not run beside it; measured


@dataclass(frozen=True, slots=True)
class DepthwiseRule(AnchoredRule):
    """One reduction over sliding windows that weighs each column on its own, pointwise blocks
    around it.
    """

    name: ClassVar[str] = "depthwise"
    keeps_order: ClassVar[bool] = True
    takes_padding: ClassVar[bool] = True

    def is_for(self, func: PrimFunc, anchor: Block) -> bool:
        """Whether the windows are weighed column by column."""
        return is_depthwise(anchor)

    def apply(self, sch: Schedule, target: Target) -> None:
        """Take the steps."""
        target = CpuTarget.of(target)
        anchor = self.inline(sch)
        schedule_others(sch, (anchor, pointwise_output(sch.func, anchor)), target)
        _schedule(sch, anchor, target)

    def cycles(self, anchor: Block, target: CpuTarget) -> float:
        """Cycles of the best tile over all rows and columns; without a fused multiply-add each step
        is two instructions.
        """
        spatial = [it for it in anchor.iters if it.kind is IterKind.SPATIAL]
        if 0 in (it.extent for it in anchor.iters):
            return 0.0
        vectors = -(-spatial[-1].extent // vector_lanes(anchor, target))
        others = math.prod(it.extent for it in spatial[:-3])
        best = _cycles(anchor, spatial[:-1], window_tiles(anchor, target)[0], target)
        return best * vectors * others * (1 if target.has_fma else 2)


def _schedule(sch: Schedule, block: Block, target: CpuTarget) -> None:
    """Tile the sum for registers, with what follows on the accumulators."""
    loops = choose_tile_loops(sch, block, window_tiles(block, target), target)
    # the windows of a row of tiles share what they read: panels stand outside of it
    inside = sum(sch.extent(row) > 1 for row in loops.rows) - 1
    around = panels_between(sch, block.name, loops, max(0, inside))
    around.sort(key=lambda loop: loop != loops.panel and sch.extent(loop) == 1)
    outer = shared_first(sch, around, target)
    ordered = finish_tile(sch, block.name, loops, outer, loops.reduced, target)
    write_out(sch, block.name, loops.reduced, UNROLLED_TAPS)
    share_tiles(sch, block, ordered, target)


def window_tiles(block: Block, target: CpuTarget) -> list[Tile]:
    """Tiles of rows and vectors, cheapest first by the model; those whose accumulators leave no
    registers for data and weights come last.
    """
    spatial = [it for it in block.iters if it.kind is IterKind.SPATIAL]
    rows = spatial[:-1]
    sliding = sliding_axes(block)
    outer = rows[-2].extent if len(rows) > 1 and rows[-2].var in sliding else 1
    inner = rows[-1].extent if rows else 1
    vectors = -(-spatial[-1].extent // vector_lanes(block, target))
    sizes = itertools.product(_sizes(outer, 4), _sizes(inner, 8), _sizes(vectors, 2))
    found = [tile for tile in (Tile(*s) for s in sizes) if tile.accumulators <= 2 * ACCUMULATORS]
    price = {tile: _cycles(block, rows, tile, target) for tile in found}
    return sorted(
        found, key=lambda t: (t.accumulators > ACCUMULATORS, price[t], t.accumulators, t.to_json())
    )


def _sizes(extent: int, limit: int) -> Sequence[int]:
    return range(1, max(1, min(extent, limit)) + 1)


def _cycles(block: Block, rows: Sequence[IterVar], tile: Tile, target: CpuTarget) -> float:
    """Cycles per vector of columns for all rows of the last two axes, by tiles: multiply-adds, and
    the part of the loads of data and weights that does not run beside them.
    """
    taps = window_taps(block)
    outer = rows[-2] if len(rows) > 1 else None
    inner = rows[-1] if rows else None
    total = 0.0
    for hn, h in pieces(outer.extent if outer else 1, tile.outer_rows):
        for wn, w in pieces(inner.extent if inner else 1, tile.rows):
            moved = {axis.var: n for axis, n in ((outer, h), (inner, w)) if axis is not None}
            adds = h * w * taps + LOAD_SHARE * (window_box(block, moved) + taps)
            total += hn * wn * adds / target.fma_per_cycle
    return total
