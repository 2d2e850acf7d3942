"""Rule for sums of products on a GPU, matrix products and convolutions: a tile of the result for
each block, a part of it in the registers of each thread; the threads of a block fetch what the tile
needs together, a slice of the sum at a time.

A convolution is a product with the matrix of its windows, of which there is never more than a
slice: who fetches an element works out which one of the image it is; what is beyond its edge is 0.
Elements of a thread lie as far apart as there are threads, so that neighbours read neighbours, in
shared memory and beyond. What follows a product element by element is computed on the tile.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ....tir.analysis.threads import WARP
from ....tir.func import PrimFunc
from ....tir.stmt import IterKind
from ....tir.target.target import Target
from ...cost.grid import KernelPass
from ...nest import target_of
from ...schedule import Schedule
from ...trace.references import LoopRef
from ..anchored import only_reduction
from ..knobs.knobs import choose, choose_copies
from ..rule import Rule
from .elementwise import MOST_APART, VECTOR_BYTES, schedule_points
from .fetch import fetch_ahead, fetched
from .kernels import row_kernels
from .operands import Product, as_matrices, grouped_axis, narrow_operands, prepare, product
from .split_terms import FULL, split_terms
from .windows import has_small_windows

# threads along each side of a block, rows and columns of a thread, terms of a slice
TILES = ((16, 8, 8, 16), (16, 8, 4, 8), (16, 4, 4, 16), (16, 2, 2, 16), (8, 4, 4, 8), (8, 2, 2, 8))
STAGES = (2, 1, 3, 4)  # slices in shared memory, all but one of them on their way
# the model of a tile, from what an H100 takes for 256 schedules of seven products and convolutions
BUSY_WARPS = 20  # that keep a multiprocessor busy
FETCHED = 8  # elements that come to a multiprocessor in a cycle
FEWEST_ROWS = 8  # for which a tile pays
FEWEST_COLUMNS = 4  # for which it pays where windows are small


@dataclass(frozen=True, slots=True)
class GridProductsRule(Rule):
    """One sum of products of two tensors, with what is computed of it element by element; the other
    blocks are pointwise.

    in_order: the sum keeps the order of its definition, so it has one axis.
    """

    name: ClassVar[str] = "grid products"
    keeps_order: ClassVar[bool] = True

    def matches(self, func: PrimFunc) -> bool:
        """Whether there is one such product, of enough rows for tiles."""
        anchor = only_reduction(func)
        if anchor is None:
            return False
        several = sum(it.kind is IterKind.REDUCE for it in anchor.iters) > 1
        sch = Schedule(func)
        narrow_operands(sch)
        block = sch.func.block(anchor.name)
        if (product(block) or grouped_axis(block)) is None or (several and self.in_order):
            return False
        name, _ = prepare(sch)
        made = product(sch.func.block(name))
        if made is None or made.rows.extent < FEWEST_ROWS or made.products > MOST_APART:
            return False
        if made.columns.extent < FEWEST_COLUMNS and has_small_windows(anchor):
            return False
        open_batch = any(axis.dim is not None for axis in made.batch)
        return not func.dims or (made.is_matrices and not open_batch)

    def apply(self, sch: Schedule, target: Target) -> None:
        """Take the steps."""
        name, user = prepare(sch)
        done: set[str] = set()
        if not self.in_order:
            name, user, done = split_terms(sch, name, user, _least_cycles)
        found = product(sch.func.block(name))
        assert found is not None
        done |= _schedule_product(sch, found, user)
        for other in sch.blocks():
            if other not in done:
                schedule_points(sch, other)

    def passes(self, func: PrimFunc, target: Target) -> Sequence[KernelPass]:
        """The kernels of its rows."""
        return row_kernels(func, unpacks=True)


def _tile(found: Product) -> tuple[int, int, int, int]:
    """The cheapest tile by the model, of equals the largest."""
    return min(TILES, key=lambda tile: _cycles(found, *tile[:3]))


def _least_cycles(found: Product, parts: int) -> float:
    """Cycles of a product whose terms are dealt out in parts, with the tile that is best for it."""
    return min(_cycles(found, *tile[:3], parts) for tile in TILES) * found.depth / parts


def _cycles(found: Product, threads: int, height: int, width: int, parts: int = 1) -> float:
    """Cycles of one term on the busiest multiprocessor.

    A warp's multiply-adds of a term take a quarter of a cycle each, its loads of shared memory one,
    or two for a vector of four columns; with few warps neither is hidden behind another one. What a
    block fetches comes beside.
    """
    across = -(-found.columns.extent // (threads * width))
    down = -(-found.rows.extent // (threads * height))
    rounds = -(-across * down * found.products * parts // FULL)
    warps = rounds * threads**2 // WARP
    cycles = warps * max(height * width / 4, height + width / 2) / min(1.0, warps / BUSY_WARPS)
    return cycles + rounds * threads * (height + width) / FETCHED


def _schedule_product(sch: Schedule, found: Product, user: str) -> set[str]:
    """Take the steps for the product and for what is computed of its tile. Returns the names of the
    blocks that are done.
    """
    name = found.block.name
    threads, height, width, depth = choose(sch, "tile", name, TILES, _tile(found))
    as_matrices(sch, found, user)
    *batch, row, column, term = sch.loops(name)
    one = [sch.fuse(*batch)] if len(batch) > 1 else batch
    rows, part, ty = sch.split(row, (None, height, threads))
    lanes = _lanes(found, width)
    columns, width_part, tx, lane = sch.split(column, (None, width // lanes, threads, lanes))
    slices, inside = sch.split(term, (None, depth))
    sch.reorder(*one, rows, columns, slices, ty, tx, inside, part, width_part, lane)
    for loop in one:
        sch.bind(loop, "blockIdx.z")
    sch.bind(rows, "blockIdx.y")
    sch.bind(columns, "blockIdx.x")
    sch.bind(ty, "threadIdx.y")
    sch.bind(tx, "threadIdx.x")
    sch.unroll(part)
    sch.unroll(width_part)
    sch.vectorize(lane)
    choose_copies(sch, name, inside)
    made = {
        copy
        for operand in found.operands
        for copy in fetched(sch, found, operand, slices, threads, lanes)
    }
    fetch_ahead(sch, name, slices, STAGES)
    _finished(sch, user, columns, threads, lanes)
    sch.set_scope(target_of(sch.func.block(name)).name, "register")
    return {name, user, *made}


def _lanes(found: Product, width: int) -> int:
    """Neighbouring columns of a thread, which it reads of shared memory, and stores, at once."""
    most = VECTOR_BYTES // target_of(found.block).type.bytes
    return math.gcd(width, most, found.columns.extent)


def _finished(sch: Schedule, name: str, columns: LoopRef, threads: int, lanes: int) -> None:
    """Compute what follows on the tile, each thread on its own elements."""
    *others, row, column = sch.reverse_compute_at(name, columns)
    part, ty = sch.split(row, (None, threads))
    width, tx, lane = sch.split(column, (None, threads, lanes))
    sch.reorder(*others, ty, tx, part, width, lane)
    sch.bind(ty, "threadIdx.y")
    sch.bind(tx, "threadIdx.x")
    sch.unroll(part)
    sch.unroll(width)
    sch.vectorize(lane)
