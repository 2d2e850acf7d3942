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

from ....tir.func import PrimFunc
from ....tir.stmt import IterKind
from ....tir.target import Target
from ...library import deal_out
from ...nest import fixed_tensors, is_reduction, target_of
from ...references import LoopRef
from ...schedule import Schedule
from ..questions import ask
from ..structure import is_pointwise
from .points import neighbours, schedule_points
from .readers import with_reader
from .sides import Product, Side, as_matrices, grouped_axis, inline_moves, product
from .windows import has_small_windows

# threads along each side of a block, rows and columns of a thread, terms of a slice
TILES = ((16, 8, 8, 8), (16, 8, 4, 8), (16, 4, 4, 16), (16, 2, 2, 16), (8, 4, 4, 8), (8, 2, 2, 8))
FEWEST_BLOCKS = 128  # that keep the multiprocessors of a large GPU busy
FEWEST_ROWS = 8  # for which a tile pays
FEWEST_COLUMNS = 4  # for which it pays where windows are small
MOST_APART = 65535  # blocks along an axis of a grid but the first
BANKS = 32  # of shared memory, of four bytes each


@dataclass(frozen=True, slots=True)
class GridProductsRule:
    """One sum of products of two tensors, with what is computed of it element by element; the other
    blocks are pointwise.

    in_order: the sum keeps the order of its definition, so it has one axis.
    """

    name: str = "grid products"
    in_order: bool = False

    def matches(self, func: PrimFunc) -> bool:
        """Whether there is one such product, of enough rows for tiles."""
        found = [block for block in func.blocks if is_reduction(block)]
        if len(found) != 1 or not all(is_pointwise(b) for b in func.blocks if b not in found):
            return False
        several = sum(it.kind is IterKind.REDUCE for it in found[0].iters) > 1
        if (product(found[0]) or grouped_axis(found[0])) is None or (several and self.in_order):
            return False
        sch = Schedule(func)
        name, _ = _prepare(sch)
        made = product(sch.func.block(name))
        if made is None or made.rows.extent < FEWEST_ROWS or made.products > MOST_APART:
            return False
        if made.columns.extent < FEWEST_COLUMNS and has_small_windows(found[0]):
            return False
        return not func.dims or made.is_matrices

    def apply(self, sch: Schedule, target: Target) -> None:
        """Take the steps."""
        name, user = _prepare(sch)
        found = product(sch.func.block(name))
        assert found is not None
        done = _schedule_product(sch, found, user)
        for other in sch.blocks():
            if other not in done:
                schedule_points(sch, other)


def _prepare(sch: Schedule) -> tuple[str, str]:
    """Let one block read the result of the only reduction element by element, and make two axes of
    one that counts groups. Returns the names of the reduction and of that block.
    """
    name, user = with_reader(sch)
    grouped = grouped_axis(sch.func.block(name))
    if grouped is not None:
        for counted in (name, user):
            sch.split_axis(counted, *grouped)
    return name, user


def _tile(found: Product) -> tuple[int, int, int, int]:
    """The largest tile of which there are enough; the smallest where there are never enough."""
    for threads, height, width, depth in TILES:
        across = -(-found.columns.extent // (threads * width))
        down = -(-found.rows.extent // (threads * height))
        if across * down * found.products >= FEWEST_BLOCKS:
            return threads, height, width, depth
    return TILES[-1]


def _schedule_product(sch: Schedule, found: Product, user: str) -> set[str]:
    """Take the steps for the product and for what is computed of its tile. Returns the names of the
    blocks that are done.
    """
    name = found.block.name
    threads, height, width, depth = ask(sch, "tile", name, TILES, _tile(found))
    as_matrices(sch, found, user)
    *apart, row, column, term = sch.loops(name)
    one = [sch.fuse(*apart)] if len(apart) > 1 else apart
    rows, part, ty = sch.split(row, (None, height, threads))
    columns, width_part, tx = sch.split(column, (None, width, threads))
    slices, inside = sch.split(term, (None, depth))
    sch.reorder(*one, rows, columns, slices, ty, tx, inside, part, width_part)
    for loop in one:
        sch.bind(loop, "blockIdx.z")
    sch.bind(rows, "blockIdx.y")
    sch.bind(columns, "blockIdx.x")
    sch.bind(ty, "threadIdx.y")
    sch.bind(tx, "threadIdx.x")
    sch.unroll(part)
    sch.unroll(width_part)
    made = {copy for side in found.sides for copy in _fetched(sch, found, side, slices, threads)}
    _finished(sch, user, columns, threads)
    sch.set_scope(target_of(sch.func.block(name)).name, "register")
    return {name, user, *made}


def _fetched(sch: Schedule, found: Product, side: Side, slices: LoopRef, threads: int) -> set[str]:
    """Let the threads of a block fetch what a slice needs of an operand, neighbours what lies side
    by side, in vectors where each of them gets some. Returns the blocks that do.

    Shared memory has a row for each term, along which the threads of a row of columns read; or one
    for each row of the tile, of which few are read at once, where terms lie side by side.
    """
    name = found.block.name
    copy = sch.reindex(name, side.load.buffer.name)
    inline_moves(sch, copy)
    made, lanes = {copy}, 1
    along_terms = side.lies_along(found.walked)
    by_rows = along_terms and side is found.rows
    if along_terms and side.load.buffer.name in {b.name for b in fixed_tensors(sch.func)}:
        _turned(sch, copy)
        deal_out(sch, copy)
        copy, along_terms = sch.cache_read(name, copy), False
        lanes = neighbours(sch.func.block(copy))
        made.add(copy)
    elif by_rows:
        lanes = side.lanes(found.walked[-1])
    else:
        _turned(sch, copy)
        lanes = 1 if along_terms else side.lanes(side.axes[-1])
    each = list(sch.compute_at(copy, slices))
    if along_terms and not by_rows:
        depth = sch.extent(each[-2])
        sch.storage_align(copy, len(each) - 2, BANKS, max(1, BANKS // depth))
        each[-2:] = each[:-3:-1]
        sch.reorder(*each)
    _dealt_out(sch, each, threads, lanes)
    sch.set_scope(copy, "team")
    return made


def _dealt_out(sch: Schedule, each: Sequence[LoopRef], threads: int, most: int) -> None:
    """Deal the elements of a tile out to the threads of a block, up to `most` neighbours at once,
    as far as each thread gets some.
    """
    size = math.prod(sch.extent(loop) for loop in each)
    lanes = math.gcd(most, sch.extent(each[-1]), size // threads**2)
    *_, last = around = list(each)
    if lanes > 1:
        around[-1], lane = sch.split(last, (None, lanes))
        sch.vectorize(lane)
    _, y, x = sch.split(sch.fuse(*around), (None, threads, threads))
    sch.bind(y, "threadIdx.y")
    sch.bind(x, "threadIdx.x")


def _turned(sch: Schedule, copy: str) -> None:
    """Let the terms of a copy of an operand come before the axis of its side."""
    count = len(sch.func.block(copy).iters)
    axes = [f"i{number}" for number in range(count)]
    order = [*axes[:-2], axes[-1], axes[-2]]
    sch.transform_layout(copy, f"lambda {', '.join(axes)}: ({', '.join(order)})")


def _finished(sch: Schedule, name: str, columns: LoopRef, threads: int) -> None:
    """Compute what follows on the tile, each thread on its own elements."""
    *others, row, column = sch.reverse_compute_at(name, columns)
    part, ty = sch.split(row, (None, threads))
    width, tx = sch.split(column, (None, threads))
    sch.reorder(*others, ty, tx, part, width)
    sch.bind(ty, "threadIdx.y")
    sch.bind(tx, "threadIdx.x")
    sch.unroll(part)
    sch.unroll(width)
