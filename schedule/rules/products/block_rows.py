"""Rule for a few rows times weights of few bits: sums of blocks, each multiplied with the scales of
its block, then added up.

The weights are read once, from memory as a rule, so that their bytes are what a call takes. Levels,
scales and zeros are packed in panels of a tile's width when a kernel is built. A tile has all rows,
or as many as its registers hold, and unpacks a vector of levels once for them. The sums of a block
and what they add up to stay in registers. For many rows it takes fewer instructions to make numbers
of the weights first, which is another function (`block_panels.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from ....tir.buffer import Load
from ....tir.expr import Expr, Var
from ....tir.func import PrimFunc
from ....tir.stmt import Block, IterKind, IterVar
from ....tir.target.target import CpuTarget, Target
from ....tir.visit import free_vars, loads
from ...nest import fixed_tensors, readers, target_of
from ...schedule import Schedule
from ...trace.references import LoopRef
from ..anchored import schedule_others
from ..knobs.knobs import choose_tile
from ..knobs.tiles import Tile
from ..rule import Rule
from ..shape.structure import (
    factors_of,
    inline_chains,
    is_plain_store,
    is_pointwise,
    pointwise_output,
    reductions,
)
from ..tiled import finish_tile, share_tiles, tile_loops
from .packing import pack_columns

TILE_ROWS = 8  # at most: their sums are held twice
MOST_VECTORS = 4  # of a tile: enough sums that a multiply-add never waits for the one before it
# bytes that are asked for before they are read, and the cache to which they should come: measured
# on a Xeon (family 6, model 207), 0.87 of a plain read; 0.84 with one distance, 0.54 with none
AHEAD = ((3072, 1), (16384, 2))
FEW_PANELS = 2  # for a thread, below which narrower ones share the work out better


@dataclass(frozen=True, slots=True)
class ScaledSums:
    """out[..., n] = sum over b of scale[b, n] * sum over others of data[..., b, ...] * number[n].

    outer, inner: the blocks of the two sums; what inner computes is read by outer alone. fixed: the
    loads of what columns have, by the block that reads it, each with the column as its last index.
    """

    outer: Block
    inner: Block
    fixed: tuple[tuple[Block, Load], ...]

    @property
    def spatial(self) -> tuple[IterVar, ...]:
        """The axes of the result: rows, then columns."""
        return tuple(it for it in self.outer.iters if it.kind is IterKind.SPATIAL)


def scaled_sums(func: PrimFunc) -> ScaledSums | None:
    """The two reductions of a function as sums that are scaled and added up; None for others."""
    found = reductions(func)
    rest = [block for block in func.blocks if block not in found]
    if len(found) != 2 or not all(map(is_pointwise, rest)):
        return None
    inner, outer = found
    scaled, summed = factors_of(outer), factors_of(inner)
    if scaled is None or summed is None or not is_added_up(func, inner, outer):
        return None
    if any(it.dim is not None for it in (*spatial_axes(inner), *spatial_axes(outer))):
        return None
    sums, column = target_of(inner), spatial_axes(inner)[-1].var
    scale = _other(scaled, lambda e: isinstance(e, Load) and e.buffer is sums)
    number = _other(summed, lambda e: column not in free_vars(e))
    if scale is None or number is None:
        return None
    fixed = [(outer, load) for load in loads(scale)] + [(inner, load) for load in loads(number)]
    constants = fixed_tensors(func)
    rows = {it.var for it in (*spatial_axes(inner)[:-2], *spatial_axes(outer)[:-1])}
    for block, load in fixed:
        of_columns = _is_of_columns(load, spatial_axes(block)[-1].var, rows)
        if not of_columns or load.buffer not in constants:
            return None
    return ScaledSums(outer, inner, tuple(fixed))


def spatial_axes(block: Block) -> tuple[IterVar, ...]:
    """The axes of what a block computes."""
    return tuple(it for it in block.iters if it.kind is IterKind.SPATIAL)


def _other(factors: tuple[Expr, Expr], is_one: Callable[[Expr], bool]) -> Expr | None:
    """The factor beside the one that is sought; None where it is not there."""
    return next((b for a, b in (factors, factors[::-1]) if is_one(a)), None)


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


def _is_of_columns(load: Load, column: Var, rows: AbstractSet[Var]) -> bool:
    """Whether the last index is the column, and no other is made of it or of a row."""
    *front, last = load.indices
    used = frozenset[Var]().union(*map(free_vars, front))
    return last is column and column not in used and used.isdisjoint(rows)


@dataclass(frozen=True, slots=True)
class BlockRowsRule(Rule):
    """Sums of blocks of a few rows, scaled and added up; pointwise blocks around them."""

    name: ClassVar[str] = "block rows"
    keeps_order: ClassVar[bool] = True

    def matches(self, func: PrimFunc) -> bool:
        """Whether the function has these two sums."""
        return scaled_sums(func) is not None

    def apply(self, sch: Schedule, target: Target) -> None:
        """Take the steps."""
        target = CpuTarget.of(target)
        inline_chains(sch)
        found = scaled_sums(sch.func)
        assert found is not None
        name, sums = found.outer.name, found.inner.name
        epilogue = pointwise_output(sch.func, found.outer)
        schedule_others(sch, (found.outer, found.inner, epilogue), target)
        lanes = target.lanes(target_of(found.outer).type)
        tile = choose_tile(sch, name, _tiles(found, lanes, target))
        width = tile.vectors * lanes
        read = ((block.name, load.buffer) for block, load in found.fixed)
        packed = pack_columns(sch, read, width)
        outer = sch.func.block(name)
        (block,) = (it.var for it in outer.iters if it.kind is IterKind.REDUCE)
        loops = tile_loops(sch, outer, tile, width, lanes, [block])
        ordered = finish_tile(sch, name, loops, [loops.panel, *loops.rows], loops.reduced, target)
        steps = _sum_blocks(sch, sums, loops.reduced[0], len(found.spatial), lanes)
        fetch_ahead(sch, packed, loops.reduced[0], steps)
        share_tiles(sch, sch.func.block(name), ordered, target)


def _tiles(found: ScaledSums, lanes: int, target: CpuTarget) -> list[Tile]:
    """Tiles of all rows, or of an even part of them, the widest first that fits the registers and
    leaves panels enough.
    """
    extents = [1, 1, *(it.extent for it in found.spatial[:-1])]
    high, rows = extents[-2:]
    most = min(TILE_ROWS, (target.vector_registers - 4) // 2)
    if high * rows > most:
        high, rows = 1, -(-rows // -(-rows // most))
    vectors = -(-found.spatial[-1].extent // lanes)
    fitting = [
        count
        for count in range(1, MOST_VECTORS + 1)
        if count <= vectors and (2 * high * rows + 1) * count + 3 <= target.vector_registers
    ] or [1]
    wide = [n for n in fitting if -(-vectors // n) >= FEW_PANELS * target.threads]
    default = max(wide, default=1)
    return [Tile(high, rows, n) for n in sorted(fitting, key=lambda n: (n != default, -n))]


def _sum_blocks(
    sch: Schedule, sums: str, block: LoopRef, axes: int, lanes: int
) -> Sequence[LoopRef]:
    """Compute the sums of a block where they are scaled, in registers. axes: those of the result.
    Returns the loops over the steps of a block that remain.
    """
    loops = sch.compute_at(sums, block)
    sch.set_scope(sums, "register")
    spatial, steps = loops[: axes + 1], loops[axes + 1 :]
    vectors, lane = sch.split(spatial[-1], (None, lanes), tail="mask")
    tile = [*spatial[:-1], vectors]
    sch.reorder(*steps, *tile, lane)
    for loop in (*steps[-1:], *tile):
        sch.unroll(loop)
    sch.vectorize(lane)
    return steps[:-1]


def fetch_ahead(
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
