"""Rule for sums of products: matrix product and direct convolution are one program.

Rows times columns are tiled for registers, the weights packed into panels of a tile's width, a long
reduction is cut into blocks, what follows runs on the accumulators, the next panel is prefetched
while this one is used. The structure follows Goto and van de Geijn, "Anatomy of High-Performance
Matrix Multiplication" (2008).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from ....tir.analysis.linear import linear
from ....tir.analysis.tile_parts import AT_ONCE, tile_parts
from ....tir.func import PrimFunc
from ....tir.instructions.tensor_intrinsics import TensorIntrinsic
from ....tir.stmt import Block
from ....tir.target.target import CpuTarget, Target
from ...nest import fixed_tensors
from ...schedule import Schedule
from ..anchored import AnchoredRule, schedule_others
from ..knobs.knobs import choose_tile
from ..knobs.tiles import Narrow, Tile, candidates, least_cycles, tile_cycles
from ..reduction import schedule_window
from ..shape.row_groups import row_axis
from ..shape.structure import Contraction, contraction, pointwise_output
from ..tiled import share_tiles
from .groups import Panel, choose_panel, group_cycles, is_grouped
from .halo import border_of, copy_border, copy_in_parts, is_copied_in_blocks
from .made_panels import make_panels
from .narrow import choose_narrow, schedule_narrow
from .packing import pack_weights, pad_words, panel_layout
from .product_nest import (
    TiledProduct,
    busiest,
    has_row_blocks,
    nest_product,
    rows_in_block,
    streams,
)
from .split_products import cut_product
from .sum_blocks import PART, PART_OF_ROWS, choose_part, reduction_order

FEW_ROWS = 4  # up to which elements of a product are summed one by one, where that walks memory
SET_SPAN = 4096  # bytes after which the sets of a first cache repeat: a page


@dataclass(frozen=True, slots=True)
class ContractionRule(AnchoredRule):
    """One reduction that sums products of data and weights, pointwise blocks around it.

    in_order: each sum keeps the order of its definition.
    """

    name: ClassVar[str] = "contraction"
    keeps_order: ClassVar[bool] = True

    def is_for(self, func: PrimFunc, anchor: Block) -> bool:
        """Whether it sums products, and packing their weights pays."""
        found = contraction(anchor)
        return found is not None and not _is_dot(func, found)

    def apply(self, sch: Schedule, target: Target) -> None:
        """Take the steps."""
        target = CpuTarget.of(target)
        found = contraction(self.inline(sch))
        assert found is not None
        schedule_contraction(sch, found, target, in_order=self.in_order)

    def cycles(self, anchor: Block, target: CpuTarget) -> float:
        """Cycles of the best register tile over all groups."""
        found = contraction(anchor)
        assert found is not None
        return product_cycles(found, target)


def product_cycles(found: Contraction, target: CpuTarget, points: int = 1) -> float:
    """Cycles of the best register tile over all groups; without a fused multiply-add each step is
    two instructions. points: products that an instruction takes at once, where there are no groups.
    """
    outer, inner = found.last_rows
    if 0 in (outer, inner, found.vector.extent):
        return 0.0
    batch = math.prod(axis.extent for axis in (*found.batch, *found.rows[:-2]))
    if is_grouped(found):
        best = group_cycles(found, target)
    else:
        work = (found.vector.extent, -(-found.steps // points), found.total, target, points)
        narrow = _narrow(found) if points == 1 else Narrow()
        best = least_cycles(outer, inner, *work, narrow)
    return best * batch * (1 if target.has_fma else 2)


def schedule_contraction(
    sch: Schedule,
    found: Contraction,
    target: CpuTarget,
    *,
    in_order: bool = False,
    unit: TensorIntrinsic | None = None,
    maker: Block | None = None,
) -> None:
    """Schedule a sum of products and the pointwise blocks around it.

    in_order: each sum keeps the order of its definition. unit: the instruction that computes some
    points of the innermost reduction axis at once. maker: the block that computes the weights, a
    panel of them at a time, for all rows that meet it.
    """
    whole = found.block.name
    free = unit is None and not in_order and maker is None
    if free and choose_narrow(sch, found, target):
        schedule_others(sch, (found.block, pointwise_output(sch.func, found.block)), target)
        schedule_narrow(sch, found, target)
        return
    if free:
        found = cut_product(sch, found, target)
    border = border_of(sch, found.data.buffer, found.block)
    by_rows = border is not None and len(found.rows) > 1 and not streams(found, target)
    in_blocks = by_rows and is_copied_in_blocks(found.data.buffer, target)
    last = pointwise_output(sch.func, sch.func.block(whole))
    schedule_others(sch, (found.block, last, border, maker), target)
    points = 1 if unit is None else unit.points
    panel = _choose(sch, found, target, unit)
    order = [it.var for it in found.reduced] if in_order else reduction_order(found)
    most = PART_OF_ROWS if _walks_rows(sch, found, panel, target) else PART
    part = None if in_order or found.total.is_integer else choose_part(sch, found, points, most)
    if border is not None and not in_blocks:
        copy_in_parts(sch, border, found, part, target)
    packed = None
    if maker is None:
        together = 1 if found.in_word else points
        packed = pack_weights(sch, found, panel.width, order, part, together)
        if found.in_word and packed is None:
            found = pad_words(sch, found, panel.width)
    else:
        sch.transform_layout(maker.name, panel_layout(found, panel.width, order, part))
    product = TiledProduct(found, panel, packed, tuple(order), part, unit, maker is not None)
    nest = nest_product(sch, product, target, in_blocks=in_blocks)
    if maker is not None:
        make_panels(sch, maker, nest.panel, panel.width, target)
    if border is not None and in_blocks:
        copy_border(sch, border, nest.place, target)
    share_tiles(sch, found.block, nest.ordered, target, nest.parts)
    if found.block.name != whole:
        schedule_window(sch, sch.func.block(whole), target)


def _is_dot(func: PrimFunc, found: Contraction) -> bool:
    """Whether few rows meet weights that change with every call and lie row by row: then each
    element is a sum along two rows, cheaper than packing.
    """
    few = math.prod(axis.extent for axis in found.rows) < FEW_ROWS
    return few and found.weight.buffer not in func.constants and row_axis(found.block) is not None


def _walks_rows(sch: Schedule, found: Contraction, panel: Panel, target: CpuTarget) -> bool:
    """Whether one tile of rows meets weights that stream as they lie, a block of their rows after
    the other: it takes as few rows of them as the processor has pages at hand.
    """
    rows = math.prod(axis.extent for axis in found.rows)
    alone = not found.batch and rows <= panel.tile.outer_rows * panel.tile.rows
    return alone and streams(found, target) and found.weight.buffer not in fixed_tensors(sch.func)


def _choose(
    sch: Schedule, found: Contraction, target: CpuTarget, unit: TensorIntrinsic | None
) -> Panel:
    if is_grouped(found):
        return choose_panel(sch, found, target, unit)
    tile = _choose_tile(sch, found, target, unit)
    return Panel(tile, tile.vectors * target.lanes(found.total))


def _choose_tile(
    sch: Schedule, found: Contraction, target: CpuTarget, unit: TensorIntrinsic | None
) -> Tile:
    """The cheapest tile that fits the registers; where a call decides how many rows there are, for
    as many as usual, and for half of them where what is left of a tile costs little: else a tile
    wins that fits the usual number alone.
    """
    points = 1 if unit is None else unit.points
    work = (found.vector.extent, -(-found.steps // points), found.total, target, points)
    outer, inner = found.last_rows
    narrow = _narrow(found) if points == 1 else Narrow()
    tiles = candidates(outer, inner, *work, narrow)
    if unit is not None and unit.pairs_rows:
        tiles = [tile for tile in tiles if _has_pairs(tile, target)] or tiles
    outer, inner = found.usual_rows
    is_open = bool(found.rows) and found.rows[-1].dim is not None
    parts = tile_parts(sch.func.dims) if is_open else None
    counts = {inner, -(-inner // 2)} if parts == AT_ONCE else {inner}
    is_streamed = len(found.rows) == 1 and streams(found, target)

    def price(tile: Tile) -> float:
        cycles = sum(
            tile_cycles(tile, outer, count, *work, parts=parts, narrow=narrow) for count in counts
        )
        return cycles * _uneven(found, tile, target) if is_streamed else cycles

    tiles.sort(key=price)
    if _rows_meet(found):
        most = target.l1_bytes // SET_SPAN + 1
        tiles.sort(key=lambda tile: tile.outer_rows * tile.rows > most)
    return choose_tile(sch, found.block.name, tiles)


def _has_pairs(tile: Tile, target: CpuTarget) -> bool:
    """Whether a tile is made of pairs of rows whose sums are in registers beside a pair of each
    vector of weights and the rows, all of which a compiler loads at once.
    """
    rows = tile.outer_rows * tile.rows
    registers = tile.accumulators + 2 * tile.vectors + rows // 2
    return rows % 2 == 0 and registers < target.vector_registers


def _narrow(found: Contraction) -> Narrow:
    """Which operands are converted to the type of the sum where they are read."""
    return Narrow(found.data.dtype != found.total, found.weight.dtype != found.total)


def _uneven(found: Contraction, tile: Tile, target: CpuTarget) -> float:
    """The share of the busiest thread over an equal one, of a matrix whose weights are streamed:
    threads share out blocks of rows, or else panels.
    """
    lanes = target.lanes(found.total)
    pieces, size = -(-found.vector.extent // (lanes * tile.vectors)), 1
    if has_row_blocks(found, target):
        pieces, size = -(-found.rows[-1].extent // tile.rows), rows_in_block(found, tile, target)
    return busiest(pieces, size, target) * target.threads / pieces


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
