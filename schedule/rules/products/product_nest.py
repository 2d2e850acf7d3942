"""The loops of a tiled product, in three decisions: in which order those around a tile stand, where
its sum is cut, what is asked for before it is needed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ....tir.expr import Var
from ....tir.instructions.tensor_intrinsics import TensorIntrinsic
from ....tir.target.target import CpuTarget
from ...schedule import Schedule
from ...trace.references import LoopRef
from ..knobs.knobs import choose, choose_copies, choose_flag
from ..knobs.tiles import Tile
from ..shape.structure import Contraction
from ..tiled import TiledLoops, finish_tile, tile_loops
from .groups import Panel, has_short_end, is_grouped, unit_lanes
from .halo import block_size
from .prefetching import (
    LEAST_STEPS,
    PREFETCH_STEPS,
    Rows,
    chunks,
    fetch_results,
    fetch_rows,
    fetch_weights,
    rows_of,
    spacing,
)
from .sum_blocks import PART, Sum, cut_sum

STREAM_BYTES = 4096  # of weights that are asked for while as many are used; measured
ROW_BLOCK = 64  # rows that a panel of weights serves at least, before the next panel comes


@dataclass(frozen=True, slots=True)
class TiledProduct:
    """A sum of products, and what is decided of it before its loops are.

    packed: the block that packs its weights in panels, if one does; order: of the reduction axes;
    part: points of the innermost one in one part of a long sum; unit: the instruction that computes
    some of these points at once. is_made: whether each panel of weights is computed before it is
    used, so that all rows, or a block of them, meet it then.
    """

    contraction: Contraction
    panel: Panel
    packed: str | None
    order: tuple[Var, ...]
    part: int | None
    unit: TensorIntrinsic | None
    is_made: bool = False

    @property
    def name(self) -> str:
        """The name of its block."""
        return self.contraction.block.name

    @property
    def points(self) -> int:
        """Points of the innermost reduction axis that are one step."""
        return 1 if self.unit is None else self.unit.points

    @property
    def step_bytes(self) -> int:
        """Bytes of weights that a step of a panel reads."""
        elements = 1 if self.contraction.in_word else self.points
        return self.panel.width * elements * self.contraction.weight.buffer.type.bytes


@dataclass(frozen=True, slots=True)
class ProductLoops:
    """The loops of a product.

    ordered: those around the tile; parts: that of them each of whose iterations sums anew; place:
    that over blocks of rows, where a border may be copied; panel: the innermost one over panels of
    weights or blocks of them.
    """

    ordered: list[LoopRef]
    parts: LoopRef | None
    place: LoopRef | None
    panel: LoopRef


@dataclass(frozen=True, slots=True)
class _Order:
    """The loops around a tile, outermost first.

    around: over the batch, and over blocks of rows that meet all panels; outer, inner: over rows,
    outside and inside of that over panels. panels_first: whether that stands outside of all of them
    that have several iterations; row_tiles: tiles that share a panel; place: as in ProductLoops.
    """

    around: tuple[LoopRef, ...]
    outer: tuple[LoopRef, ...]
    panel: LoopRef
    inner: tuple[LoopRef, ...]
    panels_first: bool
    row_tiles: int
    place: LoopRef | None

    @property
    def rows(self) -> tuple[LoopRef, ...]:
        """The loops over rows."""
        return *self.outer, *self.inner


def nest_product(
    sch: Schedule, product: TiledProduct, target: CpuTarget, *, in_blocks: bool
) -> ProductLoops:
    """Take the steps for the loops of a product.

    in_blocks: cut loops over rows into blocks, where they stand outermost.
    """
    found, name, width = product.contraction, product.name, product.panel.width
    lanes = target.lanes(found.total)
    tile, unit = product.panel.tile, product.unit
    if is_grouped(found) and unit is not None:
        lanes = unit_lanes(width, unit, target)
    short = is_grouped(found) and has_short_end(width, lanes)
    loops = tile_loops(sch, found.block, tile, width, lanes, product.order, short=short, unit=unit)
    order = _order_loops(sch, product, loops, target, in_blocks=in_blocks)
    streamed = rows_of(sch, found)
    rows_first = not (order.panels_first or order.around or order.place)
    far = rows_first and _comes_from_far(sch, name, streamed, target)
    cut = _cut_steps(sch, product, loops, order, streamed if far else None, target)
    ahead = _steps_ahead(sch, product, order, cut, target)
    if ahead:
        cut = replace(cut, inside=(*cut.inside[:-1], *chunks(sch, cut.inside[-1], ahead)))
    outer = [*order.outer, *_panels_and_blocks(sch, product, order, cut, target), *order.inner]
    around = [*order.around, *outer]
    ordered = finish_tile(sch, name, loops, around, cut.inside, target, parts=cut.parts)
    choose_copies(sch, name, cut.inside[-1])
    pieces = [loop for loop in cut.inside[:-1] if sch.extent(loop) > 1]
    if ahead and product.packed is not None:
        fetch_weights(sch, product.packed, cut.inside[-2], cut.inside[-1:], STREAM_BYTES)
    elif order.panels_first:
        _fetch_panels(sch, product, order, cut, pieces)
        if cut.parts is None and pieces and streams(found, target):
            fetch_results(sch, streamed, outer[-1], pieces)
    elif far:
        level = 1 if len(product.order) == 1 else 2
        fetch_rows(sch, streamed, order.rows, [*outer, *pieces], target, level)
    panel = order.panel if cut.block is None else cut.block
    return ProductLoops(ordered, cut.parts, order.place, panel)


def _panels_and_blocks(
    sch: Schedule, product: TiledProduct, order: _Order, cut: Sum, target: CpuTarget
) -> tuple[LoopRef, ...]:
    """The loops over panels of weights and over blocks of the sum, if there are any.

    Weights that stream as they lie past one tile of rows are read a block of their rows at a time,
    the parts outside of the panels that a thread has: a panel of all rows is a few lines of each
    page. Measured: 2,048 x 2,048 floats took 0.79 ms by panels, 0.58 to 0.66 by blocks of rows.
    """
    if cut.block is None:
        return (order.panel,)
    lie = product.packed is None and not product.is_made and order.row_tiles == 1
    alone = cut.parts is not None and not order.around and streams(product.contraction, target)
    if not lie or not alone or sch.extent(order.panel) < target.threads:
        return order.panel, cut.block
    shares, panel = sch.split(order.panel, (target.threads, None), tail="partition")
    return shares, cut.block, panel


def _order_loops(
    sch: Schedule, product: TiledProduct, loops: TiledLoops, target: CpuTarget, *, in_blocks: bool
) -> _Order:
    """Decide where the loop over panels stands among those over rows, and which of these are cut
    into blocks.
    """
    found, tile = product.contraction, product.panel.tile
    around, rows = list(loops.rows[: len(found.batch)]), list(loops.rows[len(found.batch) :])
    outside, panels_first = 0, True
    if not product.is_made:
        outside, panels_first = _choose_place(sch, found, rows, loops.panel, target)
    if panels_first and len(rows) == 1:
        size = _choose_block_size(sch, found, tile, sch.extent(rows[0]), target)
        if size:
            blocks, rows[0] = sch.split(rows[0], (None, size), tail="partition")
            around.append(blocks)
    row_tiles, place = math.prod(sch.extent(loop) for loop in rows), None
    high = block_size(found, tile, sch.extent(rows[-2]), target) if in_blocks else 0
    if high and len(rows) - outside <= 1:
        rows[-2:-1] = sch.split(rows[-2], (None, high), tail="partition")
        place, outside = rows[-3], outside + 1
    outer, inner = tuple(rows[:outside]), tuple(rows[outside:])
    return _Order(tuple(around), outer, loops.panel, inner, panels_first, row_tiles, place)


def _cut_steps(
    sch: Schedule,
    product: TiledProduct,
    loops: TiledLoops,
    order: _Order,
    early: Rows | None,
    target: CpuTarget,
) -> Sum:
    """Decide where the steps of the sum are cut: into parts or blocks, and into chunks, between
    which the next panel is asked for. early: the rows that are as well, if any.
    """
    every, least = spacing(product.step_bytes, order.row_tiles), 4 * PREFETCH_STEPS
    if early is not None:
        steps = order.row_tiles * math.prod(sch.extent(x) for x in (loops.panel, *loops.reduced))
        every = min(every, spacing(early.bytes, steps, LEAST_STEPS))
        least = 2 * every
    part = product.part and product.part // product.points
    asks = order.panels_first
    return cut_sum(sch, product.name, loops.reduced, part, order.row_tiles, every, least, asks=asks)


def _steps_ahead(
    sch: Schedule, product: TiledProduct, order: _Order, cut: Sum, target: CpuTarget
) -> int:
    """The steps in a piece of the sum whose weights are asked for while the piece before it is
    summed; 0 where none are.

    For floats of 16 bits that stream from memory past one tile of rows: half the bytes leave the
    processor half the time to fetch ahead by itself.
    """
    found = product.contraction
    narrow = found.total.is_float and found.weight.dtype.bits < found.total.bits
    if product.packed is None or not narrow or order.row_tiles > 1 or not streams(found, target):
        return 0
    steps = STREAM_BYTES // product.step_bytes
    return steps if 1 < steps <= sch.extent(cut.inside[-1]) // 2 else 0


def _fetch_panels(
    sch: Schedule, product: TiledProduct, order: _Order, cut: Sum, chunks: Sequence[LoopRef]
) -> None:
    """Ask for the next panel of weights, or block of it, while this one is used."""
    if product.packed is None or len(cut.inside) == 1:
        return
    at = order.panel if cut.block is None else cut.block
    tiled = [row for row in order.rows if sch.extent(row) > 1]
    size = math.prod(sch.extent(loop) for loop in cut.inside) * product.step_bytes
    fetch_weights(sch, product.packed, at, [*tiled, *chunks], size)


def _choose_place(
    sch: Schedule,
    found: Contraction,
    rows: Sequence[LoopRef],
    panel: LoopRef,
    target: CpuTarget,
) -> tuple[int, bool]:
    """How many of the loops over rows stand around that over panels, and whether that stands
    outside of all of them that have several iterations.
    """
    first = _panels_first(sch, found, rows, panel, target)
    default = 0 if first else len(rows) - (len(rows) > 1)
    if first and _is_image_kept(
        found, sch.extent(rows[0]) if rows else 1, sch.extent(panel), target
    ):
        default = 1
    long = [n for n, row in enumerate(rows) if sch.extent(row) > 1]
    places = [*long, len(rows)] if long and sch.extent(panel) > 1 else [default]
    if default not in places:
        default = next(place for place in places if place >= default)
    inside = choose(sch, "loops around panels", found.block.name, places, default)
    return inside, inside <= min(long, default=0) if len(places) > 1 else first


def _choose_block_size(
    sch: Schedule, found: Contraction, tile: Tile, count: int, target: CpuTarget
) -> int:
    """Tiles of rows in a block that meets all panels before the next one; 0 where there is one."""
    size = rows_in_block(found, tile, target)
    sizes = [n for n in (size // 2, size, 2 * size) if 1 < n < count]
    default = size if has_row_blocks(found, target) else 0
    return choose(sch, "tiles of rows in a block", found.block.name, [0, *sizes], default)


def _comes_from_far(sch: Schedule, name: str, streamed: Rows, target: CpuTarget) -> bool:
    """Whether the next rows are asked for early; not asked of what the first cache holds."""
    default = streamed.bytes > target.l2_bytes // 2
    if streamed.bytes <= target.l1_bytes:
        return default
    return choose_flag(sch, "early rows", name, default)


def _panels_first(
    sch: Schedule, found: Contraction, rows: Sequence[LoopRef], panel: LoopRef, target: CpuTarget
) -> bool:
    """Whether the loop over panels stands outside: where all weights together do not stay in the
    level-2 cache; where the data of all rows stay in the first one, so that each panel is read
    once; where weights, which are asked for early then, are more than what threads read of each
    other's rows, so that data stay in the second one, and far more than panels read again; and
    where a call may have few rows, so that threads share out columns then.
    """
    most_rows = max((sch.extent(row) for row in rows), default=1)
    if most_rows < target.threads or sch.extent(panel) < target.threads:
        return sch.extent(panel) >= most_rows
    if may_have_few_rows(found) or streams(found, target):
        return True
    if found.batch or is_grouped(found):
        return False
    panels, data = sch.extent(panel), found.data.buffer.size * found.data.buffer.type.bytes
    if _data_bytes(found) <= target.l1_bytes and panels >= most_rows:
        return True
    weights = found.weight_bytes
    if data * panels >= 4 * weights or weights < rows_of(sch, found).bytes:
        return False
    if panels < 2 * target.threads:  # the last panel of a thread asks for what nobody reads
        return False
    return _unevenness(panels, target) <= _unevenness(most_rows, target)


def _unevenness(count: int, target: CpuTarget) -> float:
    """The iterations of the busiest thread over those that each has in the mean."""
    return -(-count // target.threads) * target.threads / count


def _is_image_kept(found: Contraction, images: int, panels: int, target: CpuTarget) -> bool:
    """Whether each of several images meets all panels before the next one: it then stays in the
    level-2 cache, to which all weights come for each image, where else the data of all images does
    for each panel. Of windows alone, whose sums in parts read pieces of pixels; whole pixels are
    fetched ahead better than weights are. Not where a call decides a size.

    Measured: 8 images of 28 x 28 x 256 under 3x3 windows in steps of 2 took 12.5 ms for 16.4; under
    1x1 windows, of 14 x 14 x 1,024, it would be 11.3 for 9.8.
    """
    several = len(found.rows) > 2 and images == found.rows[0].extent > 1
    if not several or len(found.reduced) < 2 or found.batch or is_grouped(found):
        return False
    if any(row.dim is not None for row in found.rows):
        return False
    data = found.data.buffer.size * found.data.buffer.type.bytes
    weights = found.weight_bytes
    stays = 2 * data // images <= target.l2_bytes < 2 * data
    return stays and data + weights * images < data * panels + weights


def _data_bytes(found: Contraction) -> int:
    """Bytes of the data of all rows, for each step of the sum."""
    rows = math.prod(axis.extent for axis in found.rows)
    return rows * found.steps * found.data.buffer.type.bytes


def rows_in_block(found: Contraction, tile: Tile, target: CpuTarget) -> int:
    """Tiles of rows in a block whose data stays in the level-2 cache while all panels pass.

    What a panel adds up in parts stays near as well: a block of rows times a panel.
    """
    fitting = target.l2_bytes // (4 * max(found.steps, 1) * found.data.buffer.type.bytes)
    most = -(-max(ROW_BLOCK, fitting) // tile.rows)
    tiles = -(-found.rows[-1].extent // tile.rows)
    return min(range(most, most // 2, -1), key=lambda size: busiest(tiles, size, target))


def busiest(pieces: int, size: int, target: CpuTarget) -> int:
    """Pieces of the busiest thread where so many are shared out in blocks of `size`."""
    return -(-pieces // (size * target.threads)) * size


def streams(found: Contraction, target: CpuTarget) -> bool:
    """Whether all weights together do not stay in the level-2 cache."""
    return found.weight_bytes > 3 * target.l2_bytes // 4


def has_row_blocks(found: Contraction, target: CpuTarget) -> bool:
    """Whether the data that all rows have for one part of a sum does not stay there; where a call
    may have few rows, a block may be all there are, for one thread.
    """
    if may_have_few_rows(found):
        return False
    data = found.rows[-1].extent * min(found.steps, PART) * found.data.buffer.type.bytes
    return 2 * data > target.l2_bytes


def may_have_few_rows(found: Contraction) -> bool:
    """Whether a call decides how many rows there are, and may have fewer than a panel of weights
    serves.
    """
    least = math.prod(row.extent if row.dim is None else row.dim.low for row in found.rows)
    return any(row.dim is not None for row in found.rows) and least < ROW_BLOCK
