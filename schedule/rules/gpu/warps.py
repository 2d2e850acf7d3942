"""Rule for sums of products that a warp has an instruction for: a tile of the result for each warp,
in the registers of its threads; the warps of a block fetch what their tiles need together.

The block runs over whole tiles: what is beyond the end is fetched as 0, and what it computes there
goes nowhere. Slices are fetched ahead, while the warps compute. Rows in shared memory are swizzled,
so that eight pieces of them, which a warp loads at once, meet no bank twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ....tir.analysis.threads import WARP
from ....tir.func import PrimFunc
from ....tir.instructions.instructions import Instruction
from ....tir.instructions.tensor_match import Mismatch, match_update
from ....tir.instructions.warp_products import (
    COLUMNS,
    HALVES,
    PAIRS,
    ROWS,
    WARP_PRODUCTS,
    WarpProduct,
)
from ....tir.stmt import Block
from ....tir.target.target import Target
from ....tir.visit import stores
from ...cost.grid import KernelPass
from ...library import deal_out
from ...nest import fixed_tensors, is_reduction, target_of
from ...schedule import Schedule
from ...trace.references import LoopRef
from ..knobs.knobs import choose
from ..products.made_panels import made_of_less
from ..rule import Rule
from .elementwise import VECTOR_BYTES, schedule_points
from .fetch import deal_among, fetch_ahead, turned
from .kernels import row_kernels
from .operands import (
    Product,
    ProductOperand,
    as_matrices,
    inline_moves,
    narrow_operands,
    prepare,
    product,
)
from .products import GridProductsRule
from .split_terms import FULL, split_terms

# warps of a block down and across, tiles of an instruction down and across in a warp
TILES = ((2, 2, 4, 8), (2, 2, 4, 4), (2, 2, 2, 4), (2, 2, 1, 4), (1, 2, 1, 2), (1, 1, 1, 2))
SLICE_STEPS = (4, 2, 1)  # of an instruction, in a slice of the terms
STAGES = (3, 2, 4, 1)  # slices in shared memory, all but one of them on their way
# the model of a tile, from what an H100 takes for 281 schedules of five products and convolutions
STEP = 16  # terms, of 16 bits each
BUSY_WARPS = 6  # that keep a multiprocessor busy
LOADED = 2  # cycles in which a warp loads a fragment
FETCHED = 3  # rows and columns of a step that come to a multiprocessor in a cycle


@dataclass(frozen=True, slots=True)
class GridWarpsRule(Rule):
    """Products as `GridProductsRule` takes them, of types for which there is an instruction."""

    name: ClassVar[str] = "grid warps"
    keeps_order: ClassVar[bool] = True
    instructions: ClassVar[Mapping[str, Instruction]] = WARP_PRODUCTS

    def matches(self, func: PrimFunc) -> bool:
        """Whether there is one such product."""
        sch = Schedule(func)
        narrow_operands(sch)
        fits = _only_unit(self.units, sch.func) is not None
        return fits and not func.dims and GridProductsRule().matches(func)

    def apply(self, sch: Schedule, target: Target) -> None:
        """Take the steps."""
        name, user = prepare(sch)
        done: set[str] = set()
        if not self.in_order:
            name, user, done = split_terms(sch, name, user, _least_cycles)
        found = product(sch.func.block(name))
        unit = _unit(self.units, sch.func.block(name))
        assert found is not None
        assert unit is not None
        as_matrices(sch, found, user)
        done |= _Tiles(sch, found, user, unit).schedule()
        for other in sch.blocks():
            if other not in done:
                schedule_points(sch, other)

    def passes(self, func: PrimFunc, target: Target) -> Sequence[KernelPass]:
        """The kernels of its rows, with the instruction that it uses."""
        sch = Schedule(func)
        narrow_operands(sch)
        return row_kernels(func, _only_unit(self.units, sch.func), unpacks=True)


def _only_unit(units: Sequence[str], func: PrimFunc) -> WarpProduct | None:
    """The first instruction that adds what the only reduction of a function adds."""
    found = [block for block in func.blocks if is_reduction(block)]
    return _unit(units, found[0]) if len(found) == 1 else None


def _unit(units: Sequence[str], block: Block) -> WarpProduct | None:
    """The first instruction that adds what a block adds."""
    found = stores(block.body)
    for unit in (WARP_PRODUCTS[name] for name in units):
        if len(found) == 1 and not isinstance(match_update(unit.define(), found[0]), Mismatch):
            return unit
    return None


class _Tiles:
    """The steps for one product, whose block runs over the batch, a row, a column, a term."""

    def __init__(self, sch: Schedule, found: Product, user: str, unit: WarpProduct) -> None:
        self.sch = sch
        self.found = found
        self.name = found.block.name
        self.user = user
        self.unit = unit
        tile = choose(sch, "tile", self.name, TILES, _tile(found))
        self.down, self.across, self.high, self.wide = tile
        steps = choose(sch, "steps of a slice", self.name, SLICE_STEPS, SLICE_STEPS[0])
        self.rows = self.down * self.high * ROWS
        self.columns = self.across * self.wide * COLUMNS
        self.steps = steps
        self.depth = steps * unit.points

    def schedule(self) -> set[str]:
        """Take the steps. Returns the blocks that are done."""
        sch, found = self.sch, self.found
        sizes = (self.rows, self.columns)
        copies = [self._copied(s, n) for s, n in zip(found.operands, sizes, strict=True)]
        batch = [1] * len(found.batch)
        *others, row, column, term = sch.pad_axes(self.name, (*batch, *sizes, self.depth))
        outside, slices = self._bound(others, row, column, term)
        for made in copies:
            each = sch.compute_at(made.block, slices)
            deal_among(sch, each, (self.down, self.across, WARP), made.lanes)
            sch.set_scope(made.block, "shared")
            if made.by_rows:
                sch.swizzle(made.block)
            else:  # four rows of terms, of eight words each, meet no bank twice
                sch.storage_align(made.block, len(each) - 2, 2 * COLUMNS, COLUMNS)
        fetch_ahead(sch, self.name, slices, STAGES)
        self._finished(outside)
        sch.set_scope(target_of(sch.func.block(self.name)).name, "register")
        return {self.name, self.user, *(name for made in copies for name in made.blocks)}

    def _bound(
        self, batch: Sequence[LoopRef], row: LoopRef, column: LoopRef, term: LoopRef
    ) -> tuple[LoopRef, LoopRef]:
        """Deal the product out to blocks, warps and lanes. Returns the loop of columns of blocks
        and that of slices.
        """
        sch = self.sch
        one = [sch.fuse(*batch)] if len(batch) > 1 else list(batch)
        rows, wy, down, half, group = sch.split(row, (None, self.down, self.high, HALVES, 8))
        parts = (None, self.across, self.wide, 4, PAIRS)
        columns, wx, right, place, pair = sch.split(column, parts)
        slices, step, point = sch.split(term, (None, self.steps, self.unit.points))
        inner = (wy, wx, step, down, right, group, place, half, pair, point)
        sch.reorder(*one, rows, columns, slices, *inner)
        lane = sch.fuse(group, place)
        grid = [*zip(one, ("blockIdx.z",), strict=False), (rows, "blockIdx.y")]
        threads = [(wy, "threadIdx.z"), (wx, "threadIdx.y"), (lane, "threadIdx.x")]
        for loop, axis in (*grid, (columns, "blockIdx.x"), *threads):
            sch.bind(loop, axis)
        for loop in (step, down, right):
            sch.unroll(loop)
        sch.tensorize(half, self.unit.name)
        return columns, slices

    def _copied(self, operand: ProductOperand, size: int) -> _Copy:
        """A copy of an operand, with room for whole tiles. Of what is prepared once, another one
        is: there neighbours of a row are terms, so that they are fetched in vectors. What is made
        of few bits is not prepared, but made where it is fetched.
        """
        sch, found, bytes_ = self.sch, self.found, self.unit.element.bytes
        tensor = operand.load.buffer
        maker = made_of_less(sch.func, tensor, sch.func.block(self.name))
        fixed = maker is None and tensor.name in {b.name for b in fixed_tensors(sch.func)}
        copy = sch.reindex(self.name, tensor.name)
        if maker is None:
            inline_moves(sch, copy)
        else:
            sch.compute_inline(maker.name)
        batch = [1] * (len(sch.func.block(copy).iters) - 2)
        by_rows = True
        if fixed or operand.lies_along(found.reduction_order):
            sch.pad(copy, (*batch, size, self.depth))
            lanes = operand.lanes(found.reduction_order[-1])
        else:
            by_rows = bytes_ == 2
            turned(sch, copy)
            sch.pad(copy, (*batch, self.depth, size))
            lanes = operand.lanes(operand.axes[-1]) if maker is None else 1
        if not fixed:
            return _Copy(copy, lanes, by_rows, (copy,))
        deal_out(sch, copy)
        again = sch.cache_read(self.name, copy)
        return _Copy(again, VECTOR_BYTES // bytes_, by_rows, (copy, again))

    def _finished(self, columns: LoopRef) -> None:
        """Compute what follows on the tile, each thread on its own elements."""
        sch = self.sch
        *_, row, column = sch.reverse_compute_at(self.user, columns)
        wy, down, half, group = sch.split(row, (self.down, self.high, HALVES, 8))
        wx, right, place, pair = sch.split(column, (self.across, self.wide, 4, PAIRS))
        sch.reorder(wy, wx, down, right, group, place, half, pair)
        lane = sch.fuse(group, place)
        for loop, axis in ((wy, "threadIdx.z"), (wx, "threadIdx.y"), (lane, "threadIdx.x")):
            sch.bind(loop, axis)
        for loop in (down, right, half):
            sch.unroll(loop)
        sch.vectorize(pair)


@dataclass(frozen=True, slots=True)
class _Copy:
    """The block that fetches an operand, and all blocks made for it.

    lanes: neighbours that it fetches at once; by_rows: whether a warp loads it by rows of 16 bytes.
    """

    block: str
    lanes: int
    by_rows: bool
    blocks: tuple[str, ...]


def _tile(found: Product) -> tuple[int, int, int, int]:
    """The cheapest tile by the model, of equals the largest."""
    return min(TILES, key=lambda tile: _cycles(found, tile))


def _least_cycles(found: Product, parts: int) -> float:
    """Cycles of a product whose terms are dealt out in parts, with the tile that is best for it."""
    return min(_cycles(found, tile, parts) for tile in TILES) * found.depth / STEP / parts


def _cycles(found: Product, tile: tuple[int, int, int, int], parts: int = 1) -> float:
    """Cycles of one step on the busiest multiprocessor.

    An instruction takes one, beside the loads of fragments, of which those of two columns are one;
    with few warps neither is hidden behind another one. What a block fetches comes beside.
    """
    down, across, high, wide = tile
    rows, columns = down * high * ROWS, across * wide * COLUMNS
    blocks = -(-found.rows.extent // rows) * -(-found.columns.extent // columns)
    rounds = -(-blocks * found.products * parts // FULL)
    warps = rounds * down * across
    cycles = warps * max(high * wide, LOADED * (high + wide / 2)) / min(1.0, warps / BUSY_WARPS)
    return cycles + rounds * (rows + columns) / FETCHED
