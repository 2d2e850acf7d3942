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
from typing import ClassVar

from ...tir.expr import Var
from ...tir.func import PrimFunc
from ...tir.linear import linear
from ...tir.stmt import Block
from ...tir.target import Target
from ...tir.tensor_intrinsics import TensorIntrinsic
from ..cost_pass import Sweep
from ..nest import is_reduction
from ..references import LoopRef
from ..schedule import Schedule
from .ahead import (
    LEAST_STEPS,
    PREFETCH_STEPS,
    Rows,
    fetch_results,
    fetch_rows,
    fetch_weights,
    rows_of,
    spacing,
)
from .anchored import anchored_passes, only_product
from .borders import block_size, border_of, copy_border
from .elementwise import schedule_pointwise
from .groups import Panel, choose_panel, group_cycles, has_short_end, is_grouped
from .narrow import ask_narrow, schedule_narrow
from .packing import pack_weights
from .questions import ask, ask_copies, ask_tile, ask_whether
from .reduction import schedule_window
from .row_groups import row_axis
from .rule import Rule
from .split_products import cut_product
from .structure import Contraction, inline_chains, pointwise_output
from .sum_blocks import PART, ask_part, cut_sum, reduction_order
from .tiled import finish_tile, share_tiles, tile_loops
from .tiles import Tile, candidates, least_cycles, tile_cycles

ROW_BLOCK = 64  # rows that a panel of weights serves at least, before the next panel comes
FEW_ROWS = 4  # up to which elements of a product are summed one by one, where that walks memory
SET_SPAN = 4096  # bytes after which the sets of a first cache repeat: a page


@dataclass(frozen=True, slots=True)
class ContractionRule(Rule):
    """One reduction that sums products of data and weights, pointwise blocks around it.

    in_order: each sum keeps the order of its definition.
    """

    name: ClassVar[str] = "contraction"
    keeps_order: ClassVar[bool] = True

    def matches(self, func: PrimFunc) -> bool:
        """Whether the function is one contraction with pointwise blocks around it."""
        found = only_product(func)
        return found is not None and not _is_dot(func, found)

    def apply(self, sch: Schedule, target: Target) -> None:
        """Take the steps."""
        schedule_contraction(sch, _product(sch), target, in_order=self.in_order)

    def passes(self, func: PrimFunc, target: Target) -> Sequence[Sweep]:
        """One for each block; what follows the product runs on its accumulators."""
        sch = Schedule(func)
        cycles = _product_cycles(_product(sch), target)
        return anchored_passes(sch.func, cycles, target)


def _product(sch: Schedule) -> Contraction:
    """Inline chains of pointwise blocks. Returns the sum of products that is left."""
    inline_chains(sch)
    found = only_product(sch.func)
    assert found is not None
    return found


def _product_cycles(found: Contraction, target: Target) -> float:
    """Cycles of the best register tile over all groups; without a fused multiply-add each step is
    two instructions.
    """
    outer, inner = found.last_rows
    if 0 in (outer, inner, found.vector.extent):
        return 0.0
    batch = math.prod(axis.extent for axis in (*found.batch, *found.rows[:-2]))
    if is_grouped(found):
        best = group_cycles(found, target)
    else:
        dtype = found.weight.buffer.type
        best = least_cycles(outer, inner, found.vector.extent, found.steps, dtype, target)
    return best * batch * (1 if target.has_fma else 2)


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
    whole = found.block.name
    free = unit is None and not in_order
    if free and ask_narrow(sch, found, target):
        _schedule_others(sch, (found.block, pointwise_output(sch.func, found.block)), target)
        schedule_narrow(sch, found, target)
        return
    if free:
        found = cut_product(sch, found, target)
    border = None if _streams(found, target) else border_of(sch, found, target)
    last = pointwise_output(sch.func, sch.func.block(whole))
    _schedule_others(sch, (found.block, last, border), target)
    points = 1 if unit is None else unit.points
    panel = _choose(sch, found, target, points)
    order = [it.var for it in found.reduced] if in_order else reduction_order(found)
    part = None if in_order or found.total.is_integer else ask_part(sch, found, points)
    packed = pack_weights(sch, found, panel.width, order, part, points)
    nest = _nest(sch, found, panel, packed, order, part, target, unit, border is not None)
    if border is not None:
        copy_border(sch, border, nest.place, target)
    share_tiles(sch, found.block, nest.ordered, target, nest.parts)
    if found.block.name != whole:
        schedule_window(sch, sch.func.block(whole), target)


def _schedule_others(sch: Schedule, own: Sequence[Block | None], target: Target) -> None:
    """Schedule the pointwise blocks that do not belong to the product."""
    for block in sch.func.blocks:
        if block not in own and not is_reduction(block):
            schedule_pointwise(sch, block.name, target)


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
    steps = -(-found.steps // points)
    sizes = (*found.last_rows, found.vector.extent, steps, found.total, target, points)
    tiles = candidates(*sizes)
    if len(found.rows) == 1 and _streams(found, target):
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


@dataclass(frozen=True, slots=True)
class _Nest:
    """The loops of a product.

    ordered: those around the tile; parts: that of them each of whose iterations sums anew; place:
    that over blocks of rows, where a border may be copied.
    """

    ordered: list[LoopRef]
    parts: LoopRef | None
    place: LoopRef | None


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
) -> _Nest:
    """in_blocks: cut loops over rows into blocks, where they stand outermost."""
    lanes = target.lanes(found.total)
    name, width = found.block.name, panel.width
    short = is_grouped(found) and has_short_end(width, lanes)
    loops = tile_loops(sch, found.block, panel.tile, width, lanes, order, short=short, unit=unit)
    batch, rows = list(loops.rows[: len(found.batch)]), list(loops.rows[len(found.batch) :])
    points = 1 if unit is None else unit.points
    inside, panels_first = _ask_place(sch, found, rows, loops.panel, target)
    around = list(batch)
    if panels_first and len(rows) == 1:
        size = _ask_block_size(sch, found, panel.tile, sch.extent(rows[0]), target)
        if size:
            blocks, rows[0] = sch.split(rows[0], (None, size), tail="partition")
            around.append(blocks)
    row_tiles, place = math.prod(sch.extent(loop) for loop in rows), None
    high = block_size(found, panel.tile, sch.extent(rows[-2]), target) if in_blocks else 0
    if high and len(rows) - inside <= 1:
        rows[-2:-1] = sch.split(rows[-2], (None, high), tail="partition")
        place, inside = rows[-3], inside + 1
    row_bytes = width * points * found.weight.buffer.type.bytes
    apart, least, walked = spacing(row_bytes, row_tiles), 4 * PREFETCH_STEPS, rows_of(sch, found)
    far = not (panels_first or batch or place) and _comes_from_far(sch, name, walked, target)
    if far:
        steps = row_tiles * math.prod(sch.extent(x) for x in (loops.panel, *loops.reduced))
        apart = min(apart, spacing(walked.bytes, steps, LEAST_STEPS))
        least = 2 * apart
    part = part and part // points
    cut = cut_sum(sch, name, loops.reduced, part, row_tiles, apart, least)
    blocked = [] if cut.block is None else [cut.block]
    outer = [*rows[:inside], loops.panel, *blocked, *rows[inside:]]
    ordered = finish_tile(sch, name, loops, [*around, *outer], cut.inside, target, parts=cut.parts)
    ask_copies(sch, name, cut.inside[-1])
    inner = [loop for loop in cut.inside[:-1] if sch.extent(loop) > 1]
    if packed is not None and panels_first and len(cut.inside) > 1:
        at = loops.panel if cut.block is None else cut.block
        tiled = [row for row in rows if sch.extent(row) > 1]
        size = math.prod(sch.extent(loop) for loop in cut.inside) * row_bytes
        fetch_weights(sch, packed, at, [*tiled, *inner], size)
    if panels_first and cut.parts is None and inner and _streams(found, target):
        fetch_results(sch, walked, outer[-1], inner)
    if far:
        level = 1 if len(order) == 1 else 2
        fetch_rows(sch, walked, rows, [*outer, *inner], target, level)
    return _Nest(ordered, cut.parts, place)


def _ask_place(
    sch: Schedule,
    found: Contraction,
    rows: Sequence[LoopRef],
    panel: LoopRef,
    target: Target,
) -> tuple[int, bool]:
    """How many of the loops over rows stand around that over panels, and whether that stands
    outside of all of them that have several iterations.
    """
    first = _panels_first(sch, found, rows, panel, target)
    default = 0 if first else len(rows) - (len(rows) > 1)
    long = [n for n, row in enumerate(rows) if sch.extent(row) > 1]
    places = [*long, len(rows)] if long and sch.extent(panel) > 1 else [default]
    if default not in places:
        default = next(place for place in places if place >= default)
    inside = ask(sch, "loops around panels", found.block.name, places, default)
    return inside, inside <= min(long, default=0) if len(places) > 1 else first


def _ask_block_size(
    sch: Schedule, found: Contraction, tile: Tile, count: int, target: Target
) -> int:
    """Tiles of rows in a block that meets all panels before the next one; 0 where there is one."""
    size = _block_size(found, tile, target)
    sizes = [n for n in (size // 2, size, 2 * size) if 1 < n < count]
    default = size if _row_blocks(found, target) else 0
    return ask(sch, "tiles of rows in a block", found.block.name, [0, *sizes], default)


def _comes_from_far(sch: Schedule, name: str, walked: Rows, target: Target) -> bool:
    """Whether the next rows are asked for early; not asked of what the first cache holds."""
    default = walked.bytes > target.l2_bytes // 2
    if walked.bytes <= target.l1_bytes:
        return default
    return ask_whether(sch, "early rows", name, default)


def _block_size(found: Contraction, tile: Tile, target: Target) -> int:
    """Tiles of rows in a block whose data stays in the level-2 cache while all panels pass.

    What a panel adds up in parts stays near as well: a block of rows times a panel.
    """
    fitting = target.l2_bytes // (4 * found.steps * found.data.buffer.type.bytes)
    most = -(-max(ROW_BLOCK, fitting) // tile.rows)
    tiles = -(-found.rows[-1].extent // tile.rows)
    return min(range(most, most // 2, -1), key=lambda size: _busiest(tiles, size, target))


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
    weights = found.steps * found.vector.extent * found.weight.buffer.type.bytes
    return weights > 3 * target.l2_bytes // 4


def _row_blocks(found: Contraction, target: Target) -> bool:
    """Whether the data that all rows have for one part of a sum does not stay there."""
    data = found.rows[-1].extent * min(found.steps, PART) * found.data.buffer.type.bytes
    return 2 * data > target.l2_bytes
