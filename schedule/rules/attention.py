"""Rule for two products of matrices with a function of whole rows between them: attention.

For each head the keys are packed once, in panels of the tile's width. A block of rows then passes
through both products: its scores, their largest, powers and sum stay in the thread's caches, and
the values are read where they lie. What divides by the sum runs on the accumulators of the second
product.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from ...tir.func import PrimFunc
from ...tir.stmt import Block, IterKind
from ...tir.target.target import CpuTarget, Target
from ..nest import fixed_tensors, is_reduction, read_indices, readers, target_of, writers
from ..schedule import Schedule
from ..trace.references import LoopRef
from .elementwise import square_tiles
from .knobs.knobs import choose, choose_copies, choose_tile
from .knobs.lanes import vector_lanes
from .knobs.tiles import Tile, candidates
from .rows import Parts, RowsRule, cut_rows, schedule_rows
from .shape.last_axis import turned_axis
from .shape.row_groups import RowGroup, row_axis
from .shape.structure import (
    Contraction,
    contraction,
    inline_chains,
    is_plain_store,
    is_pointwise,
    pointwise_output,
    reductions,
)
from .staged import StagedRule
from .tiled import TiledLoops, finish_tile

BLOCKS = (128, 64, 32, 16)  # rows, about, that may pass through both products together
FEWEST_ROWS = 4  # below which the keys are not worth packing


@dataclass(frozen=True, slots=True)
class _Stages:
    """Two products and what stands around them.

    keys: the block that makes the weights of the first product and nothing else; between: blocks of
    whole rows, from the first product to the data of the second one, and those that belong to them;
    last: what is made of the second product.
    """

    first: Contraction
    second: Contraction
    keys: Block
    between: tuple[Block, ...]
    last: Block

    @property
    def axes(self) -> int:
        """The number of axes that count the rows."""
        return len(self.second.batch) + 1

    @property
    def epilogue(self) -> Block | None:
        """The block between that runs on the accumulators of the first product: the only one that
        reads it, each element at its own place.
        """
        made = target_of(self.first.block)
        found = [b for b in self.between if read_indices(b, made)]
        if len(found) != 1 or not is_pointwise(found[0]):
            return None
        own = tuple(it.var for it in found[0].iters)
        return found[0] if all(at == own for at in read_indices(found[0], made)) else None

    @property
    def matrices(self) -> tuple[str, ...]:
        """The tensors made here whose rows are as long as those of the first product."""
        wide = [b for b in self.between if is_pointwise(b) and len(b.iters) > self.axes]
        first = [self.first.block] if self.epilogue is None else []
        return tuple(target_of(b).name for b in (self.keys, *first, *wide))

    def groups(self, func: PrimFunc) -> tuple[RowGroup, ...]:
        """The blocks between, last first; a reduction that one element of each row is made of, and
        nothing else, belongs to that.
        """
        ends = {b.name: pointwise_output(func, b) for b in self.between if is_reduction(b)}
        found = {name: b.name for name, b in ends.items() if b and len(b.iters) == self.axes}
        return tuple(
            RowGroup(b.name, tuple(n for n, end in found.items() if end == b.name), self.axes)
            for b in reversed(self.between)
            if b.name not in found
        )


@dataclass(frozen=True, slots=True)
class AttentionRule(StagedRule[_Stages]):
    """A product whose rows, changed row by row, are the data of a second one.

    in_order: each sum keeps the order of its definition.
    """

    name: ClassVar[str] = "attention"
    keeps_order: ClassVar[bool] = True

    def recognise(self, sch: Schedule) -> _Stages | None:
        """The two products and what stands around them."""
        _prepare(sch)
        return _stages(sch.func)

    def schedule_stages(self, sch: Schedule, stages: _Stages, target: Target) -> None:
        """Take the steps."""
        target = CpuTarget.of(target)
        if stages.second.rows[0].extent < FEWEST_ROWS:
            sch.compute_inline(stages.keys.name)
            RowsRule(in_order=self.in_order).apply(sch, target)
            return
        tile = _tile(sch, stages.second, stages.second.rows[0].extent, target)
        together = _rows_together(sch, stages, tile, target)
        groups = stages.groups(sch.func)
        names = () if self.in_order else [b.name for b in stages.between if is_reduction(b)]
        cut = cut_rows(sch, names, target)
        head, rows = _second_product(sch, stages, tile, together, target)
        for group in groups:
            _between(sch, stages, group, rows, cut, target)
        sch.compute_at(stages.first.block.name, rows)
        sch.set_scope(target_of(stages.first.block).name, "thread")
        _first_product(sch, stages, together, target)
        _pack(sch, stages, head, target)
        lanes = target.lanes(stages.first.weight.buffer.type)
        fixed = {buffer.name for buffer in fixed_tensors(sch.func)}
        for tensor in stages.matrices if lanes > 1 else ():
            if tensor not in fixed:
                sch.storage_align(tensor, stages.axes - 1, lanes)
        if sch.extent(head) > 1:
            sch.parallel(head)


def _pack(sch: Schedule, stages: _Stages, head: LoopRef, target: CpuTarget) -> None:
    """Make the keys of a head once, and a copy of its values that lies together. Keys made of
    constants alone are made once for all heads and calls; such values are read where they lie.
    """
    keys = stages.keys
    fixed = fixed_tensors(sch.func)
    if target_of(keys) in fixed:
        loops = sch.loops(keys.name)
    else:
        loops = sch.compute_at(keys.name, head)
        sch.set_scope(target_of(keys).name, "thread")
    turned = turned_axis(keys)
    if turned is not None:
        square_tiles(sch, keys.name, loops, turned, target)
    else:
        _in_vectors(sch, keys, target)
    if stages.second.weight.buffer in fixed:
        return
    values = sch.cache_read(stages.second.block.name, stages.second.weight.buffer.name)
    sch.compute_at(values, head)
    sch.set_scope(target_of(sch.func.block(values)).name, "thread")
    _in_vectors(sch, sch.func.block(values), target)


def _in_vectors(sch: Schedule, block: Block, target: CpuTarget) -> None:
    lanes = vector_lanes(block, target)
    _, lane = sch.split(sch.loops(block.name)[-1], (None, lanes), tail="mask")
    sch.vectorize(lane)


def _between(
    sch: Schedule, stages: _Stages, group: RowGroup, rows: LoopRef, cut: Parts, target: CpuTarget
) -> None:
    """Compute blocks between the products for a block of rows."""
    block = sch.func.block(group.anchor)
    sch.compute_at(block.name, rows)
    sch.set_scope(target_of(block).name, "thread")
    if group.members or is_reduction(block):
        schedule_rows(sch, group, target, cut=cut)
    elif stages.epilogue is None or block.name != stages.epilogue.name:
        _in_vectors(sch, block, target)


def _products(func: PrimFunc) -> list[Contraction]:
    """The products of matrices, one for each head."""
    found = [contraction(block) for block in reductions(func)]
    return [one for one in found if one is not None and one.batch and len(one.rows) == 1]


def _prepare(sch: Schedule) -> None:
    """Bring the function into the form that `_stages` reads: keys that are an input are copied by a
    block of their own, and so is a second product that is the output.
    """
    inline_chains(sch, repeated=False)
    products = _products(sch.func)
    if len(products) != 2 or products[0].rows[0].extent < FEWEST_ROWS:
        return
    first, second = products
    if not writers(sch.func, first.weight.buffer):
        sch.cache_read(first.block.name, first.weight.buffer.name)
    if target_of(second.block) in sch.func.outputs:
        sch.cache_write(second.block.name)


def _stages(func: PrimFunc) -> _Stages | None:
    products = _products(func)
    if len(products) != 2:
        return None
    first, second = products
    makers = writers(func, first.weight.buffer)
    last = pointwise_output(func, second.block)
    if len(makers) != 1 or not is_pointwise(makers[0]) or last is None:
        return None
    ends = (first.block, second.block, makers[0], last)
    between = tuple(b for b in func.blocks if not any(b is one for one in ends))
    stages = _Stages(first, second, makers[0], between, last)
    alone = len(readers(func, first.weight.buffer)) == 1
    rows = all(_keeps_rows(func, stages, block) for block in (*between, first.block))
    data = any(target_of(b) is second.data.buffer for b in between)
    whole = target_of(last) in func.outputs
    return stages if alone and rows and data and whole else None


def _keeps_rows(func: PrimFunc, stages: _Stages, block: Block) -> bool:
    """Whether a row of a block is made of the same row of blocks before it, and is not an
    output.
    """
    spatial = [it for it in block.iters if it.kind is IterKind.SPATIAL]
    own = spatial[: stages.axes]
    wanted = [*stages.second.batch, *stages.second.rows]
    if [it.extent for it in own] != [it.extent for it in wanted]:
        return False
    if not is_plain_store(block, spatial) or target_of(block) in func.outputs:
        return False
    product = block is stages.first.block
    if not (product or is_pointwise(block) or row_axis(block) is not None):
        return False
    first = tuple(it.var for it in own)
    made = [target_of(b) for b in (stages.first.block, *stages.between)]
    return all(at[: stages.axes] == first for tensor in made for at in read_indices(block, tensor))


def _rows_together(sch: Schedule, stages: _Stages, tile: Tile, target: CpuTarget) -> int:
    """Rows that pass through both products together: all of them where their scores and powers
    have room in half of the level-2 cache, else a number of whole tiles.
    """
    extent = stages.second.rows[0].extent
    row = 2 * stages.first.vector.extent * stages.first.weight.buffer.type.bytes
    whole = {max(1, size // tile.rows) * tile.rows for size in BLOCKS}
    sizes = [extent, *sorted((size for size in whole if size < extent), reverse=True)]
    fitting = [n for n, size in enumerate(sizes) if size * row <= target.l2_bytes // 2]
    default = sizes[fitting[0] if fitting else -1]
    return choose(sch, "rows together", stages.second.block.name, sizes, default)


def _tile(
    sch: Schedule, product: Contraction, rows: int, target: CpuTarget, *, whole: bool = False
) -> Tile:
    """A tile of a product; whole: one whose rows divide the `rows` that there are."""
    dtype = product.weight.buffer.type
    steps = math.prod(axis.extent for axis in product.reduced)
    tiles = candidates(1, rows, product.vector.extent, steps, dtype, target)
    found = [tile for tile in tiles if not whole or rows % tile.rows == 0]
    return choose_tile(sch, product.block.name, found)


def _tiled(
    sch: Schedule, product: Contraction, row: LoopRef, tile: Tile, target: CpuTarget
) -> TiledLoops:
    """The loops of a product below the loop over blocks of rows, tiled."""
    lanes = target.lanes(product.weight.buffer.type)
    own = sch.loops(product.block.name)
    reduced = own[-len(product.reduced) :]
    column = own[-len(product.reduced) - 1]
    outer, inner = sch.split(row, (None, tile.rows), tail="partition")
    panel, columns = sch.split(column, (None, tile.vectors * lanes), tail="mask")
    vectors, lane = sch.split(columns, (None, lanes), tail="mask")
    return TiledLoops((outer,), panel, (inner, vectors, lane), tuple(reduced))


def _second_product(
    sch: Schedule, stages: _Stages, tile: Tile, together: int, target: CpuTarget
) -> tuple[LoopRef, LoopRef]:
    """Schedule the second product and what follows it. Returns the loops over heads and, inside,
    over blocks of rows.
    """
    product = stages.second
    *heads, row = sch.loops(product.block.name)[: stages.axes]
    rows, row = sch.split(row, (None, together), tail="partition")
    loops = _tiled(sch, product, row, tile, target)
    head = sch.fuse(*heads) if len(heads) > 1 else heads[0]
    outer = (*loops.rows, loops.panel)
    finish_tile(sch, product.block.name, loops, outer, loops.reduced, target)
    choose_copies(sch, product.block.name, loops.reduced[-1])
    return head, rows


def _first_product(sch: Schedule, stages: _Stages, together: int, target: CpuTarget) -> None:
    """Pack the keys and schedule the first product."""
    product = stages.first
    blocks = together < product.rows[0].extent
    tile = _tile(sch, product, together, target, whole=blocks)
    row = sch.loops(product.block.name)[-len(product.block.iters) :][stages.axes - 1]
    loops = _tiled(sch, product, row, tile, target)
    outer = (loops.panel, *loops.rows)
    alone = stages.epilogue is None
    name = product.block.name
    finish_tile(sch, name, loops, outer, loops.reduced, target, alone=alone)
    choose_copies(sch, name, loops.reduced[-1])
