"""Rule for sums of products: matrix product and direct convolution are one program.

Rows times columns are tiled for registers, the weights packed into panels of a tile's width, a long
reduction is cut into blocks, what follows runs on the accumulators, the next panel is prefetched
while this one is used. The structure follows Goto and van de Geijn, "Anatomy of High-Performance
Matrix Multiplication" (2008).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...tir.expr import Var
from ...tir.func import PrimFunc
from ...tir.linear import linear
from ...tir.target import Target
from ...tir.tensor_intrinsics import TensorIntrinsic
from ...tir.visit import free_vars
from ..nest import fixed_tensors, is_reduction
from ..references import LoopRef
from ..schedule import Schedule
from .ahead import (
    LEAST_STEPS,
    PREFETCH_STEPS,
    chunks,
    fetch_results,
    fetch_rows,
    fetch_weights,
    rows_of,
    spacing,
)
from .borders import block_size, border_of, copy_border
from .elementwise import schedule_pointwise
from .groups import Panel, choose_panel, has_short_end, is_grouped
from .questions import ask_tile
from .row_groups import row_axis
from .structure import (
    Contraction,
    contraction,
    inline_chains,
    is_pointwise,
    pointwise_output,
    reductions,
)
from .tiled import finish_tile, tile_loops
from .tiles import Tile, candidates, tile_cycles

REDUCTION_BLOCK = 1024  # steps whose panel of weights stays in the level-2 cache
LONG_SUM = 1024  # steps from which on a sum is taken in parts
PART = 512  # steps of a part at most
ROW_BLOCK = 64  # rows that a panel of weights serves at least, before the next panel comes
FEW_ROWS = 4  # up to which elements of a product are summed one by one, where that walks memory
SET_SPAN = 4096  # bytes after which the sets of a first cache repeat: a page
PACK_ROWS = 32  # rows from which on packing weights that change with every call pays


@dataclass(frozen=True, slots=True)
class ContractionRule:
    """One reduction that sums products of data and weights, pointwise blocks around it.

    in_order: each sum keeps the order of its definition.
    """

    name: str = "contraction"
    in_order: bool = False

    def matches(self, func: PrimFunc) -> bool:
        """Whether the function is one contraction with pointwise blocks around it."""
        anchors = reductions(func)
        others = [block for block in func.blocks if block not in anchors]
        if len(anchors) != 1 or not all(map(is_pointwise, others)):
            return False
        found = contraction(anchors[0])
        return found is not None and not _is_dot(func, found)

    def apply(self, sch: Schedule, target: Target) -> None:
        """Take the steps."""
        inline_chains(sch)
        (anchor,) = reductions(sch.func)
        found = contraction(anchor)
        assert found is not None
        schedule_contraction(sch, found, target, in_order=self.in_order)


def schedule_contraction(
    sch: Schedule,
    found: Contraction,
    target: Target,
    *,
    in_order: bool = False,
    unit: TensorIntrinsic | None = None,
) -> None:
    """Schedule a sum of products and the pointwise blocks around it.

    in_order: each sum keeps the order of its definition. unit: the instruction that computes some
    points of the innermost reduction axis at once.
    """
    epilogue = pointwise_output(sch.func, found.block)
    border = None if _streams(found, target) else border_of(sch, found, target)
    for block in sch.func.blocks:
        if block not in (found.block, epilogue, border) and not is_reduction(block):
            schedule_pointwise(sch, block.name, target)
    points = 1 if unit is None else unit.points
    panel = _choose(sch, found, target, points)
    order = [it.var for it in found.reduced] if in_order else reduction_order(found)
    part = None if in_order or found.total.is_integer else _part_of_axis(found, points)
    packed = pack_weights(sch, found, panel.width, order, part, points)
    place = _nest(sch, found, panel, packed, order, part, target, unit, border is not None)
    if border is not None:
        copy_border(sch, border, place, target)


def _is_dot(func: PrimFunc, found: Contraction) -> bool:
    """Whether few rows meet weights that change with every call and lie row by row: then each
    element is a sum along two rows, cheaper than packing.
    """
    few = math.prod(axis.extent for axis in found.rows) < FEW_ROWS
    return few and found.weight.buffer not in func.constants and row_axis(found.block) is not None


def _choose(sch: Schedule, found: Contraction, target: Target, points: int) -> Panel:
    if is_grouped(found):
        return choose_panel(sch, found, target)
    tile = _choose_tile(sch, found, target, points)
    return Panel(tile, tile.vectors * target.lanes(found.total))


def _choose_tile(sch: Schedule, found: Contraction, target: Target, points: int) -> Tile:
    rows = found.rows
    outer = rows[-2].extent if len(rows) > 1 else 1
    inner = rows[-1].extent if rows else 1
    steps = -(-math.prod(axis.extent for axis in found.reduced) // points)
    sizes = (outer, inner, found.vector.extent, steps, found.total, target, points)
    tiles = candidates(*sizes)
    if len(rows) == 1 and _streams(found, target):
        tiles.sort(key=lambda tile: tile_cycles(tile, *sizes) * _uneven(found, tile, target))
    if _rows_meet(found):
        most = target.l1_bytes // SET_SPAN + 1
        tiles.sort(key=lambda tile: tile.outer_rows * tile.rows > most)
    return ask_tile(sch, found.block.name, tiles)


def _uneven(found: Contraction, tile: Tile, target: Target) -> float:
    """The share of the busiest thread over an equal one, of a matrix whose weights are streamed:
    threads share out blocks of rows, or else panels.
    """
    lanes = target.lanes(found.total)
    pieces, size = -(-found.vector.extent // (lanes * tile.vectors)), 1
    if _row_blocks(found, target):
        pieces, size = -(-found.rows[-1].extent // tile.rows), _block_size(found, tile, target)
    return _busiest(pieces, size, target) * target.threads / pieces


def _busiest(pieces: int, size: int, target: Target) -> int:
    """Pieces of the busiest thread where so many are shared out in blocks of `size`."""
    return -(-pieces // (size * target.threads)) * size


def _rows_meet(found: Contraction) -> bool:
    """Whether the data of all rows of a tile belongs in one set of the first cache.

    Measured where a set keeps 8 lines: 9 rows cost nothing, 12 a tenth, 14 a quarter of the speed.
    """
    if not found.rows:
        return False
    data, row = found.data, found.rows[-1].var
    along = zip(data.indices, data.buffer.strides, strict=True)
    step = sum(linear(item).coefficient(row) * stride for item, stride in along)
    return step * data.buffer.type.bytes % SET_SPAN == 0


def pack_weights(
    sch: Schedule,
    found: Contraction,
    width: int,
    order: Sequence[Var],
    part: int | None,
    points: int = 1,
) -> str | None:
    """Store the weights in panels of `width` columns, in the order in which the tile walks them,
    the `points` elements that a lane takes at once next to each other.

    Returns the block; None where they stay as they are.
    """
    weight = found.weight
    constant = weight.buffer in fixed_tensors(sch.func)
    contiguous = weight.indices[-1] is found.vector.var
    short = bool(found.batch) or math.prod(axis.extent for axis in found.rows) < PACK_ROWS
    if points == 1 and (width == 1 or (contiguous and not constant and short)):
        return None
    block = sch.cache_read(found.block.name, weight.buffer.name, f"{weight.buffer.name}_packed")
    names = [f"i{axis}" for axis in range(len(weight.indices))]
    columns = next(
        n for n, item in zip(names, weight.indices, strict=True) if item is found.vector.var
    )
    position = {var: rank for rank, var in enumerate(order)}
    others = [
        (position.get(i, -1) if isinstance(i, Var) else -1, n)
        for n, i in zip(names, weight.indices, strict=True)
    ]
    batch = [
        n
        for n, item in zip(names, weight.indices, strict=True)
        if any(item is axis.var for axis in found.batch)
    ]
    kept = [n for _, n in sorted(others) if n != columns and n not in batch]
    if part is not None and len(order) > 1:  # the taps of a part lie together
        kept = [f"{kept[-1]} // {part}", *kept[:-1], f"{kept[-1]} % {part}"]
    walked = [*kept, f"{columns} % {width}"]
    if points > 1:
        inner = kept[-1] if "//" not in kept[-1] and "%" not in kept[-1] else f"({kept[-1]})"
        walked = [*kept[:-1], f"{inner} // {points}", walked[-1], f"{inner} % {points}"]
    layout = ", ".join([*batch, f"{columns} // {width}", *walked])
    loops = sch.transform_layout(block, f"lambda {', '.join(names)}: ({layout})")
    shared = next((loop for loop in loops[:-1] if sch.extent(loop) != 1), loops[0])
    if sch.extent(shared) > 1:
        sch.parallel(shared)
    if contiguous and points == 1:
        sch.vectorize(loops[-1])
    return block


def reduction_order(found: Contraction) -> list[Var]:
    """The reduction axes: taps of windows first, the one that walks the data contiguously last.

    What neighbouring windows share is read again, and not kept: with taps innermost gcc carries it
    from step to step in scalar registers, which took 3x3 and 7x7 sums 1.4 times as long.
    """
    kept = {axis.var for axis in found.rows}
    mixed = [used for used in map(free_vars, found.data.indices) if used & kept]
    last = free_vars(found.data.indices[-1])
    return sorted(
        (axis.var for axis in found.reduced),
        key=lambda var: (not any(var in used for used in mixed), var in last),
    )


def _part_of_axis(found: Contraction, points: int) -> int | None:
    """Points of the innermost reduction axis in one part of a long sum; None for a short one.

    The rounding error of a sum grows with the root of its length: parts of at most `PART` steps
    keep it near that of the peers, at the cost of an addition per element and part. A part is a
    number of steps of `points`.
    """
    steps = math.prod(axis.extent for axis in found.reduced)
    inner = next(a.extent for a in found.reduced if a.var is reduction_order(found)[-1])
    taps = steps // max(1, inner)
    sizes = range(8, inner // 2 + 1)
    fitting = [d for d in sizes if inner % d == 0 and d % points == 0 and taps * d <= PART]
    return max(fitting) if steps >= LONG_SUM and fitting else None


def _nest(
    sch: Schedule,
    found: Contraction,
    panel: Panel,
    packed: str | None,
    order: Sequence[Var],
    part: int | None,
    target: Target,
    unit: TensorIntrinsic | None,
    in_blocks: bool,
) -> LoopRef | None:
    """in_blocks: cut loops over rows into blocks, where they stand outermost. Returns the loop over
    these.
    """
    lanes = target.lanes(found.total)
    name, width = found.block.name, panel.width
    short = is_grouped(found) and has_short_end(width, lanes)
    loops = tile_loops(sch, found.block, panel.tile, width, lanes, order, short=short, unit=unit)
    batch, rows = list(loops.rows[: len(found.batch)]), list(loops.rows[len(found.batch) :])
    panels_first = _panels_first(sch, found, rows, loops.panel, target)
    points = 1 if unit is None else unit.points
    around = list(batch)
    if panels_first and len(rows) == 1 and _row_blocks(found, target):
        size = _block_size(found, panel.tile, target)
        blocks, rows[0] = sch.split(rows[0], (None, size), tail="partition")
        around.append(blocks)
    row_tiles, place = math.prod(sch.extent(loop) for loop in rows), None
    high = block_size(found, panel.tile, sch.extent(rows[-2]), target) if in_blocks else 0
    if high and not panels_first:
        rows[-2:-1] = sch.split(rows[-2], (None, high), tail="partition")
        place = rows[-3]
    row_bytes = width * points * found.weight.buffer.type.bytes
    apart, least, walked = spacing(row_bytes, row_tiles), 4 * PREFETCH_STEPS, rows_of(sch, found)
    far = not (panels_first or batch or place) and walked.bytes > target.l2_bytes // 2
    if far:
        steps = row_tiles * math.prod(sch.extent(x) for x in (loops.panel, *loops.reduced))
        apart = min(apart, spacing(walked.bytes, steps, LEAST_STEPS))
        least = 2 * apart
    part = part and part // points
    parts, block, reduced = _cut(sch, loops.reduced, part, row_tiles, apart, least)
    blocked = [] if block is None else [block]
    if panels_first:
        outer = [loops.panel, *blocked, *rows]
    elif len(rows) > 1:
        outer = [*rows[:-1], loops.panel, *blocked, rows[-1]]
    else:
        outer = [*rows, loops.panel, *blocked]
    finish_tile(sch, name, loops, [*around, *outer], reduced, target, parts=parts)
    inside = [loop for loop in reduced[:-1] if sch.extent(loop) > 1]
    if packed is not None and panels_first and len(reduced) > 1:
        at = loops.panel if block is None else block
        tiled = [row for row in rows if sch.extent(row) > 1]
        size = math.prod(sch.extent(loop) for loop in reduced) * row_bytes
        fetch_weights(sch, packed, at, [*tiled, *inside], size)
    if panels_first and parts is None and inside and _streams(found, target):
        fetch_results(sch, walked, outer[-1], inside)
    if far:
        level = 1 if len(order) == 1 else 2
        fetch_rows(sch, walked, rows, [*outer, *inside], target, level)
    return place


def _block_size(found: Contraction, tile: Tile, target: Target) -> int:
    """Tiles of rows in a block whose data stays in the level-2 cache while all panels pass.

    What a panel adds up in parts stays near as well: a block of rows times a panel.
    """
    steps = math.prod(axis.extent for axis in found.reduced)
    fitting = target.l2_bytes // (4 * steps * found.data.buffer.type.bytes)
    most = -(-max(ROW_BLOCK, fitting) // tile.rows)
    tiles = -(-found.rows[-1].extent // tile.rows)
    return min(range(most, most // 2, -1), key=lambda size: _busiest(tiles, size, target))


def _cut(
    sch: Schedule,
    reduced: Sequence[LoopRef],
    part: int | None,
    row_tiles: int,
    apart: int,
    least: int,
) -> tuple[LoopRef | None, LoopRef | None, list[LoopRef]]:
    """Cut a long sum into parts of `part` steps, or into blocks whose panels the level-2 cache
    holds. Where several tiles of rows share a panel, cut what is left of a sum along one axis into
    chunks of `apart` steps, if the whole has `least`.

    Returns (loop over the parts, loop over parts or blocks, loops inside).
    """
    *taps, inside = reduced
    parts = None
    if part is not None:
        parts, inside = sch.split(inside, (None, part))
    elif taps or row_tiles < 2 or sch.extent(inside) < least:
        return None, None, list(reduced)
    if taps or row_tiles < 2:
        return parts, parts, [*taps, inside]
    block = parts
    if parts is None and sch.extent(inside) > REDUCTION_BLOCK:
        block, inside = sch.split(inside, (None, REDUCTION_BLOCK), tail="partition")
    return parts, block, chunks(sch, inside, apart)


def _panels_first(
    sch: Schedule, found: Contraction, rows: Sequence[LoopRef], panel: LoopRef, target: Target
) -> bool:
    """Whether the loop over panels stands outside: where all weights together do not stay in the
    level-2 cache.
    """
    most_rows = max((sch.extent(row) for row in rows), default=1)
    if most_rows < target.threads or sch.extent(panel) < target.threads:
        return sch.extent(panel) >= most_rows
    return _streams(found, target)


def _streams(found: Contraction, target: Target) -> bool:
    """Whether all weights together do not stay in the level-2 cache."""
    steps = math.prod(axis.extent for axis in found.reduced)
    weights = steps * found.vector.extent * found.weight.buffer.type.bytes
    return weights > 3 * target.l2_bytes // 4


def _row_blocks(found: Contraction, target: Target) -> bool:
    """Whether the data that all rows have for one part of a sum does not stay there."""
    steps = math.prod(axis.extent for axis in found.reduced)
    data = found.rows[-1].extent * min(steps, PART) * found.data.buffer.type.bytes
    return 2 * data > target.l2_bytes
