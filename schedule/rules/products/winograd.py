"""Rule for Winograd convolutions: products of transformed tiles, transformed back.

Stages combine elements of the one before: those of the data before the products, those of the
results behind them. Each stage but the last runs on the vectors that the next one needs, in
registers. Where the weights stay in the level-2 cache, a few rows of tiles pass through all stages
before the next ones begin; else each stage runs over the whole tensor, so that the weights are read
once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ....tir.buffer import Buffer, Load
from ....tir.expr import Const, FloorDiv, Var
from ....tir.func import PrimFunc
from ....tir.stmt import Block
from ....tir.target.target import CpuTarget, Target
from ....tir.visit import loads, walk
from ....tir.work.work import points_of
from ...legality.inline_growth import outgrown
from ...nest import readers, target_of, writers
from ...schedule import Schedule
from ...trace.references import LoopRef
from ..anchored import only_product
from ..elementwise import schedule_pointwise
from ..knobs.knobs import choose, choose_copies, choose_tile
from ..knobs.lanes import vector_lanes
from ..knobs.threads import SERIAL_ELEMENTS, share_out
from ..knobs.tiles import Tile, candidates, tile_cycles
from ..shape.structure import Contraction, is_pointwise, pointwise_output
from ..staged import StagedRule
from ..tiled import finish_tile, share_tiles, tile_loops
from .halo import border_of, copy_border, is_copied_in_blocks
from .packing import pack_weights
from .prefetching import PREFETCH_STEPS, chunks
from .sum_blocks import SPACINGS

FEW_TILES = 12  # below which the weights would be read too often
WAITING = 1.25  # measured: how much longer products take whose weights are not fetched ahead
MOST_ROWS = 4  # of tiles that pass through all stages together


@dataclass(frozen=True, slots=True)
class _Stages:
    """What makes the data of the products, and what combines their results, in order: a stage on
    either side for each axis along which there are other weights.
    """

    product: Contraction
    before: tuple[Block, ...]
    after: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class WinogradRule(StagedRule[_Stages]):
    """Products of matrices along leading axes that stages before make and stages after combine."""

    name: ClassVar[str] = "winograd"

    def may_match(self, func: PrimFunc) -> bool:
        """Whether there are such products, and nothing but pointwise blocks beside them."""
        found = only_product(func)
        return found is not None and bool(found.batch)

    def recognise(self, sch: Schedule) -> _Stages | None:
        """The products and their stages."""
        _inline_what_is_read_once(sch)
        return _stages(sch.func)

    def schedule_stages(self, sch: Schedule, stages: _Stages, target: Target) -> None:
        """Take the steps."""
        target = CpuTarget.of(target)
        found = stages.product
        border = _border_of_many(sch, stages.before[0], target)
        own = {block.name for block in (found.block, *stages.before, *stages.after)}
        own |= set() if border is None else {border.name}
        for name in [name for name in sch.blocks() if name not in own]:
            schedule_pointwise(sch, name, target)
        rows = _rows_together(sch, found, target)
        tile = _tile(sch, found, rows, target)
        width = tile.vectors * target.lanes(found.weight.buffer.type)
        packed = pack_weights(sch, found, width, [axis.var for axis in found.reduced], None)
        place = _after(sch, stages.after, rows, target)
        if place is not None:
            for name in (found.block.name, stages.before[-1].name):
                sch.compute_at(name, place)
        _before(sch, found, stages.before, target, alone=place is None)
        if border is not None:
            copy_border(sch, border, place, target)
        _products(sch, found, tile, width, packed, target, alone=place is None)


def _border_of_many(sch: Schedule, first: Block, target: CpuTarget) -> Block | None:
    """The block that puts a border around the data of the first stage, where rows of tiles copy
    what they read of it: those of many images.

    Measured (a Xeon with AVX-512, two threads): 32 images of 56 x 56 x 64 took 14.8 ms for 17.1.
    """
    (data,) = {load.buffer for load in loads(first.body)}
    return border_of(sch, data, first) if is_copied_in_blocks(data, target) else None


def _inline_what_is_read_once(sch: Schedule) -> None:
    """Inline the pointwise intermediates of which an element of each reader reads one element."""
    for name in sch.blocks():
        block = sch.func.block(name)
        target = target_of(block)
        if not is_pointwise(block) or target not in sch.func.allocations:
            continue
        users = readers(sch.func, target)
        one = all(is_pointwise(u) and len(_read(u, target)) == 1 for u in users)
        if users and one and outgrown(sch.func, block) is None:
            sch.compute_inline(name)


def _read(block: Block, tensor: Buffer) -> set[Load]:
    """The elements of a tensor that one element of a block is made from."""
    return {load for load in loads(block.body) if load.buffer is tensor}


def _stages(func: PrimFunc) -> _Stages | None:
    found = only_product(func)
    if found is None or not found.batch or not found.rows:
        return None
    before, after = _before_of(func, found.data.buffer), _after_of(func, found.block)
    if not len(before) == len(after) == len(found.batch):
        return None
    combined = _read(after[0], target_of(found.block))
    along = all(isinstance(load.indices[0], Const) for load in combined)
    return _Stages(found, before, after) if along else None


def _before_of(func: PrimFunc, tensor: Buffer) -> tuple[Block, ...]:
    """The stages that end in a tensor: each has one reader and combines elements of one tensor."""
    made: list[Block] = []
    while len(writers(func, tensor)) == 1 and len(readers(func, tensor)) == 1:
        (block,) = writers(func, tensor)
        sources = {load.buffer for load in loads(block.body)}
        if len(sources) != 1 or len(_read(block, *sources)) < 2:
            break
        made.insert(0, block)
        (tensor,) = sources
    return tuple(made)


def _after_of(func: PrimFunc, block: Block) -> tuple[Block, ...]:
    """The stages that follow a block, the last of which computes the output."""
    made: list[Block] = []
    following = pointwise_output(func, block)
    while following is not None and len(_read(following, target_of(block))) > 1:
        made.append(following)
        block, following = following, pointwise_output(func, following)
    return tuple(made) if made and target_of(made[-1]) in func.outputs else ()


def _rows_together(sch: Schedule, found: Contraction, target: CpuTarget) -> int:
    """Rows of tiles that pass through all stages together; 0 where each stage runs alone."""
    rows = [axis.extent for axis in found.rows]
    most = max(1, math.prod(rows[:-1]) // target.threads)
    enough = [r for r in range(1, MOST_ROWS + 1) if r * rows[-1] >= FEW_TILES and r <= most]
    sizes = [*enough, *range(1, min(MOST_ROWS, most) + 1)]
    weights = found.weight.buffer.size * found.weight.buffer.type.bytes
    choices: list[int] = [*sizes, 0] if weights <= target.l2_bytes else [0, *sizes]
    return choose(sch, "rows of tiles together", found.block.name, choices, choices[0])


def _tile(sch: Schedule, found: Contraction, together: int, target: CpuTarget) -> Tile:
    """The tile of the products; where the weights come from memory, one that leaves time to fetch
    them ahead.
    """
    rows = [axis.extent for axis in found.rows]
    outer = together or (rows[-2] if len(rows) > 1 else 1)
    sizes = outer, rows[-1], found.vector.extent, math.prod(axis.extent for axis in found.reduced)
    dtype = found.weight.buffer.type
    tiles = candidates(*sizes, dtype, target)

    def order(tile: Tile) -> tuple[float, int]:
        count = math.prod(rows[:-2]) * -(-outer // tile.outer_rows) * -(-rows[-1] // tile.rows)
        ahead = together or tile.vectors * target.lanes(dtype) <= PREFETCH_STEPS * count
        cycles = tile_cycles(tile, *sizes, dtype, target)
        return cycles * (1 if ahead else WAITING), count  # each tile of rows reads all weights

    tiles.sort(key=order)
    return choose_tile(sch, found.block.name, tiles)


def _after(
    sch: Schedule, stages: Sequence[Block], together: int, target: CpuTarget
) -> LoopRef | None:
    """Schedule the stages behind the products as one nest of tiles. Returns the loop over groups of
    `together` rows of tiles, in which the others may be computed.
    """
    last = stages[-1]
    tiles: list[LoopRef] = []
    inside: list[LoopRef] = []
    *rows, columns = zip(last.iters, sch.loops(last.name), strict=True)
    for axis, loop in rows:
        size = _cut(last, axis.var)
        if size > 1:
            loop, part = sch.split(loop, (None, size), tail="partition")
            inside.append(part)
        tiles.append(loop)
    lanes = vector_lanes(last, target)
    vector, lane = sch.split(columns[1], (None, lanes), tail="mask")
    place = None
    if together:
        depth = max(0, len(tiles) - 2)
        place, tiles[depth] = sch.split(tiles[depth], (None, together), tail="partition")
        tiles.insert(depth, place)
    sch.reorder(*tiles, vector, *inside, lane)
    _in_registers(sch, stages[:-1], inside[0] if inside else vector, lanes)
    for loop in inside:
        sch.unroll(loop)
    sch.vectorize(lane)
    if place is None:
        share_out(sch, last.name, tiles, target, max(points_of(last), SERIAL_ELEMENTS))
        return None
    outer = [loop for loop in tiles[: tiles.index(place)] if sch.extent(loop) != 1]
    place = sch.fuse(*outer, place) if outer else place
    if sch.extent(place) > 1:
        sch.parallel(place)
    return place


def _cut(block: Block, var: Var) -> int:
    """The number of neighbours along an axis that a block computes from one tile."""
    nodes = (node for load in loads(block.body) for item in load.indices for node in walk(item))
    sizes = {
        int(node.b.value)
        for node in nodes
        if isinstance(node, FloorDiv) and node.a is var and isinstance(node.b, Const)
    }
    return max(sizes, default=1)


def _before(
    sch: Schedule, found: Contraction, stages: Sequence[Block], target: CpuTarget, *, alone: bool
) -> None:
    """Schedule the stages before the products tile by tile, a vector of channels at a time."""
    last = stages[-1]
    *axes, channels = sch.loops(last.name)[-len(last.iters) :]
    batch = {axis.var for axis in found.batch}
    inside = [x for x, at in zip(axes, found.data.indices, strict=False) if at in batch]
    tiles = [loop for loop in axes if loop not in inside]
    lanes = vector_lanes(last, target)
    vector, lane = sch.split(channels, (None, lanes), tail="mask")
    sch.reorder(*tiles, vector, *inside, lane)
    _in_registers(sch, stages[:-1], inside[0], lanes)
    for loop in inside:
        sch.unroll(loop)
    sch.vectorize(lane)
    if alone:
        share_out(sch, last.name, tiles, target, max(points_of(last), SERIAL_ELEMENTS))


def _in_registers(sch: Schedule, stages: Sequence[Block], loop: LoopRef, lanes: int) -> None:
    """Compute stages at the start of each iteration of a loop, in registers."""
    for block in reversed(stages):
        *others, lane = sch.compute_at(block.name, loop)
        if sch.extent(lane) < lanes:  # of fewer channels than a vector has lanes
            last, lane = sch.split(lane, (None, lanes), tail="mask")
            others.append(last)
        sch.set_scope(target_of(block).name, "register")
        for other in others:
            sch.unroll(other)
        sch.vectorize(lane)


def _products(
    sch: Schedule,
    found: Contraction,
    tile: Tile,
    width: int,
    packed: str | None,
    target: CpuTarget,
    *,
    alone: bool,
) -> None:
    """Schedule the products: for each panel of weights, all tiles."""
    lanes = target.lanes(found.weight.buffer.type)
    order = [axis.var for axis in found.reduced]
    loops = tile_loops(sch, found.block, tile, width, lanes, order)
    batch, rows = loops.rows[: len(found.batch)], loops.rows[len(found.batch) :]
    reduced = list(loops.reduced)
    long = sch.extent(reduced[-1]) >= 4 * PREFETCH_STEPS
    if long:
        sizes = [0, *SPACINGS]
        every = choose(sch, "steps between prefetches", found.block.name, sizes, PREFETCH_STEPS)
        long = every > 0
        reduced[-1:] = chunks(sch, reduced[-1], every) if long else reduced[-1:]
    first = sch.fuse(*batch) if alone and len(batch) > 1 else None
    outer = [*(batch if first is None else (first,)), loops.panel, *rows]
    ordered = finish_tile(sch, found.block.name, loops, outer, reduced, target, alone=True)
    choose_copies(sch, found.block.name, reduced[-1])
    tiled = [row for row in rows if sch.extent(row) > 1]
    count = math.prod(sch.extent(row) for row in rows)
    if packed is not None and alone and long and width <= PREFETCH_STEPS * count:
        sch.prefetch(packed, loops.panel, spread=(*tiled, reduced[-2]), level=2)
    if alone:
        share_tiles(sch, found.block, ordered, target)
