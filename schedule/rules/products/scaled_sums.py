"""What rules share of sums of blocks that are scaled and added up: which these are, the tile that
keeps both sums in registers, and what is asked for early.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from ....tir.buffer import Load
from ....tir.func import PrimFunc
from ....tir.stmt import Block, IterKind, IterVar
from ....tir.target.target import CpuTarget
from ....tir.visit import loads
from ...nest import readers, target_of
from ...schedule import Schedule
from ...trace.references import LoopRef
from ..anchored import schedule_others
from ..knobs.knobs import choose_tile
from ..knobs.tiles import Tile
from ..shape.structure import is_plain_store, pointwise_output
from ..tiled import finish_tile, share_tiles, tile_loops
from .packing import pack_columns

# computes the inner sum, by its name, where the loop over blocks is; the loops over its steps
SumBlocks = Callable[[Schedule, str, LoopRef], Sequence[LoopRef]]

# bytes that are asked for before they are read, and the cache to which they should come: measured
# on a Xeon (family 6, model 207), 0.87 of a plain read; 0.84 with one distance, 0.54 with none
AHEAD = ((3072, 1), (16384, 2))
FEW_PANELS = 2  # for a thread, below which narrower ones share the work out better


def spatial_axes(block: Block) -> tuple[IterVar, ...]:
    """The axes of what a block computes."""
    return tuple(it for it in block.iters if it.kind is IterKind.SPATIAL)


def is_added_up(func: PrimFunc, inner: Block, outer: Block) -> bool:
    """Whether the outer sum alone reads the inner ones, along their last axis but one, and has
    their other axes.
    """
    sums, own, above = target_of(inner), spatial_axes(inner), spatial_axes(outer)
    if sums not in func.allocations or tuple(readers(func, sums)) != (outer,):
        return False
    plain = is_plain_store(inner, list(own)) and is_plain_store(outer, list(above))
    alike = [it.extent for it in (*own[:-2], *own[-1:])] == [it.extent for it in above]
    reduced = [it.var for it in outer.iters if it.kind is IterKind.REDUCE]
    *rows, column = (it.var for it in above)
    read = [load.indices for load in loads(outer.body) if load.buffer is sums]
    along = len(reduced) == 1 and read == [(*rows, *reduced, column)]
    return plain and alike and along


def tile_scaled_sums(
    sch: Schedule,
    sums: tuple[Block, Block],
    fixed: Iterable[tuple[Block, Load]],
    tiles: Sequence[Tile],
    sum_blocks: SumBlocks,
    target: CpuTarget,
) -> None:
    """Schedule the outer of two sums in tiles, and the inner one where it is scaled.

    fixed: the loads of what columns have, by the block that reads it: they are packed in panels of
    a tile's width. tiles: the default first.
    """
    outer, inner = sums
    name, lanes = outer.name, target.lanes(target_of(outer).type)
    epilogue = pointwise_output(sch.func, outer)
    schedule_others(sch, (outer, inner, epilogue), target)
    tile = choose_tile(sch, name, tiles)
    width = tile.vectors * lanes
    packed = pack_columns(sch, ((block.name, load.buffer) for block, load in fixed), width)
    whole = sch.func.block(name)
    (along,) = (it.var for it in whole.iters if it.kind is IterKind.REDUCE)
    loops = tile_loops(sch, whole, tile, width, lanes, [along])
    ordered = finish_tile(sch, name, loops, [loops.panel, *loops.rows], loops.reduced, target)
    steps = sum_blocks(sch, inner.name, loops.reduced[0])
    _fetch_ahead(sch, packed, loops.reduced[0], steps)
    share_tiles(sch, sch.func.block(name), ordered, target)


def _fetch_ahead(
    sch: Schedule, packed: Sequence[str], block: LoopRef, steps: Sequence[LoopRef]
) -> None:
    """Ask for what later blocks read: the processor follows a stream a few lines ahead, which is
    less than memory takes.
    """
    buffers = [target_of(sch.func.block(name)) for name in packed]
    count = sch.extent(block)
    size = sum(b.size // b.shape[0] * b.type.bytes for b in buffers) // count
    for ahead, level in AHEAD:
        for name in packed:
            fetch = partial(Schedule.prefetch, buffer=name, at=block, spread=steps)
            sch.attempt(partial(fetch, distance=-(-ahead // size), level=level))
