"""Rule for pointwise blocks and data movement: one pass, rows in parallel, the last axis in
vectors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...tir.func import PrimFunc
from ...tir.stmt import Block
from ...tir.target.target import CpuTarget, Target
from ...tir.work.work import points_of
from ..cost.passes import Sweep, arithmetic_cycles, values_of
from ..nest import targets_of
from ..schedule import Schedule
from ..trace.references import LoopRef
from .knobs.knobs import choose, choose_copies, choose_flag
from .knobs.lanes import transposed_lanes, vector_lanes
from .knobs.threads import share_out
from .rule import Rule
from .shape.last_axis import (
    is_of_few_rows,
    is_one_row,
    steps_unevenly,
    turned_axis,
    turning_points,
)
from .shape.structure import inline_chains, is_elementwise
from .sweeps import block_cycles, sweep_over

VECTORS_PER_CHUNK = 64  # that a thread takes at once of a tensor of one axis
MOST_VECTORS = 8  # of a row that are written out, each of which reads in an order of its own
TILE = 16  # elements of four bytes in a cache line
# rows and columns of the tiles of a transposition that a tuner may choose from
TILES = tuple(
    (a, b) for a in (8, 16, 32, 64) for b in (8, 16, 32, 64) if max(a, b) <= 4 * min(a, b)
)


@dataclass(frozen=True, slots=True)
class ElementwiseRule(Rule):
    """Every block is one expression per element."""

    name: ClassVar[str] = "elementwise"
    keeps_order: ClassVar[bool] = True

    def matches(self, func: PrimFunc) -> bool:
        """Whether all blocks are pointwise."""
        return all(map(is_elementwise, func.blocks))

    def apply(self, sch: Schedule, target: Target) -> None:
        """Take the steps."""
        target = CpuTarget.of(target)
        inline_chains(sch)
        for name in sch.blocks():
            schedule_pointwise(sch, name, target)

    def passes(self, func: PrimFunc, target: Target) -> Sequence[Sweep]:
        """One for each block."""
        target = CpuTarget.of(target)
        sch = Schedule(func)
        inline_chains(sch)
        cycles = [block_cycles(block, target) for block in sch.func.blocks]
        pairs = zip(sch.func.blocks, cycles, strict=True)
        return [sweep_over(sch.func, (block,), own, target) for block, own in pairs]


def schedule_pointwise(sch: Schedule, name: str, target: CpuTarget) -> None:
    """Vectorise and parallelise a pointwise block in a nest of its own at the root."""
    block = sch.func.block(name)
    loops = sch.loops(name)
    if not loops:
        return
    elements = targets_of(block)[0].size
    turned = turned_axis(block)
    if turned is not None:
        outer = square_tiles(sch, name, loops, turned, target)
        share_out(sch, name, outer, target, elements)
        return
    lanes = vector_lanes(block, target)
    *around, last = loops
    if target.has_shuffles and sch.extent(last) <= lanes // 4 + 1 and is_of_few_rows(block):
        row = _rows_side_by_side(sch, around.pop(), last, lanes)
        share_out(sch, name, [*around, row], target, elements)
        return
    points = turning_points(block, block.iters[-1]) if lanes > 1 else ()
    if sch.extent(last) < lanes and is_one_row(block):
        before = around.pop()
        points = tuple(n * sch.extent(last) for n in turning_points(block, block.iters[-2]))
        last = sch.fuse(before, last)
    outer = [loop for loop in around if sch.extent(loop) > 1]
    past = lanes > 1 and choose_streaming(sch, (block,), target)
    pieces = sch.loop_partition(last, points) if points else (last,)
    for number, piece in enumerate(pieces):
        told = f" in piece {number}" if points else ""
        shared = _piece_in_vectors(sch, name, piece, lanes, told, target, alone=not outer)
        if past:
            sch.annotate((outer or [shared])[-1], "stream", 1)
        if not outer:
            share_out(sch, name, [shared], target, elements, piece=told)
    if outer:
        share_out(sch, name, outer, target, elements)


def _rows_side_by_side(sch: Schedule, before: LoopRef, last: LoopRef, lanes: int) -> LoopRef:
    """Run the last two loops, of which the last one is over rows, in vectors, as many at once as
    begin with the same row again. Returns the loop around them.
    """
    copies = math.lcm(sch.extent(last), lanes) // lanes
    row = sch.fuse(before, last)
    outer, vectors, lane = sch.split(row, (None, copies, lanes), tail="mask")
    sch.unroll(vectors)
    sch.vectorize(lane)
    return outer


def _piece_in_vectors(
    sch: Schedule,
    name: str,
    piece: LoopRef,
    lanes: int,
    told: str,
    target: CpuTarget,
    *,
    alone: bool,
) -> LoopRef:
    """Run a loop over the last axis, or a part of it, in vectors, where it is long enough for one.
    alone: no loop stands around it, so that it is cut into chunks. Returns the outermost loop.
    """
    if lanes == 1 or sch.extent(piece) < lanes // 2:
        return piece
    sizes = (None, VECTORS_PER_CHUNK, lanes) if alone else (None, lanes)
    *around, lane = sch.split(piece, sizes, tail="mask")
    vectors = sch.extent(around[-1])
    uneven = 1 < vectors <= MOST_VECTORS and steps_unevenly(sch.func.block(name))
    if uneven and choose_flag(sch, f"vectors written out{told}", name, target.has_shuffles):
        sch.unroll(around[-1])
    else:
        choose_copies(sch, name, around[-1], told)
    sch.vectorize(lane)
    return around[0]


def choose_streaming(sch: Schedule, blocks: Sequence[Block], target: CpuTarget) -> bool:
    """Whether what the last of `blocks`, which make a row, writes goes past the caches; not asked
    of what the level-2 cache holds.
    """
    written = sum(b.size * b.type.bytes for b in targets_of(blocks[-1]))
    default = streams(blocks, target)
    if written <= target.l2_bytes:
        return default
    return choose_flag(sch, "stores past the caches", blocks[-1].name, default)


def streams(blocks: Sequence[Block], target: CpuTarget) -> bool:
    """Whether what the last of `blocks`, which make a row, writes goes past the caches: it is more
    than the last cache holds, so that a reader would find little of it there; and their arithmetic
    takes less time than memory does for two lines, so that not to read a line before it is written
    is time won.
    """
    written = sum(b.size * b.type.bytes for b in targets_of(blocks[-1]))
    if written <= target.l3_bytes:
        return False
    cycles = sum(vector_cycles(block, target) * points_of(block) for block in blocks)
    return cycles < 2 * memory_cycles(target) * points_of(blocks[-1])


def vector_cycles(block: Block, target: CpuTarget) -> float:
    """Cycles of the arithmetic of one vector that a block computes."""
    return sum(arithmetic_cycles(value, target) for value in values_of(block))


def memory_cycles(target: CpuTarget) -> float:
    """Cycles in which a vector comes from memory."""
    return target.vector_bytes / target.dram_gb_per_s * target.clock_ghz


def square_tiles(
    sch: Schedule, name: str, loops: Sequence[LoopRef], turned: int, target: CpuTarget
) -> list[LoopRef]:
    """Small tiles of the last axis and of the one that the data has in its place, number `turned`:
    the cache lines that a tile reads are used whole. Returns the loops around a tile.

    Squares of them are transposed in registers (codegen/lower/vector/transpose_tiles.py) where the
    target has vectors of the elements. Measured: elements one by one take less than half of what
    gathered vectors take.
    """
    lanes = transposed_lanes(sch.func.block(name), target)
    height, width = choose(sch, "tile", name, TILES, (TILE, TILE))
    *rows, row = sch.split(loops[turned], _tile_sizes(height, lanes), tail="partition")
    *columns, column = sch.split(loops[-1], _tile_sizes(width, lanes), tail="partition")
    others = [loop for n, loop in enumerate(loops[:-1]) if n != turned]
    outer = [*others, columns[0], rows[0]]
    if choose_flag(sch, "rows outside", name, False):
        outer = [*others, rows[0], columns[0]]
    inside = [row, column]
    if lanes == 1 and choose_flag(sch, "rows inside", name, False):
        inside = [column, row]
    sch.reorder(*outer, *rows[1:], *columns[1:], *inside)
    if lanes > 1:
        sch.vectorize(column)
        sch.unroll(row)
    return outer


def _tile_sizes(size: int, lanes: int) -> tuple[int | None, ...]:
    """A tile, and in it squares of registers where these are smaller."""
    return (None, size) if lanes == 1 or size <= lanes else (None, size // lanes, lanes)
