"""Rule for products on a GPU: a tile of the result for each block, a part of it in the registers of
each thread; the threads of a block fetch what the tile needs together, a slice of the sum at a
time.

Elements of a thread lie as far apart as there are threads, so that neighbours read neighbours, in
shared memory and beyond. What follows a product element by element is computed on the tile.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ....tir.buffer import Buffer, Load
from ....tir.expr import Var
from ....tir.func import PrimFunc
from ....tir.stmt import Block, IterVar
from ....tir.target import Target
from ...nest import is_reduction, read_indices, target_of
from ...references import LoopRef
from ...schedule import Schedule
from ..questions import ask
from ..structure import Contraction, contraction, inline_chains, is_pointwise, pointwise_output
from .points import neighbours, schedule_points

# threads along each side of a block, rows and columns of a thread, terms of a slice
TILES = ((16, 8, 8, 8), (16, 8, 4, 8), (16, 4, 4, 16), (16, 2, 2, 16), (8, 4, 4, 16), (8, 2, 2, 16))
FEWEST_BLOCKS = 128  # that keep the multiprocessors of a large GPU busy
FEWEST_ROWS = 8  # for which a tile pays
MOST_APART = 65535  # blocks along an axis of a grid but the first


@dataclass(frozen=True, slots=True)
class GridProductsRule:
    """One product of two tensors at plain indices, with what is computed of it element by element;
    the other blocks are pointwise.
    """

    name: str = "grid products"

    def matches(self, func: PrimFunc) -> bool:
        """Whether there is one such product, of enough rows for tiles."""
        found = [block for block in func.blocks if is_reduction(block)]
        if len(found) != 1 or not all(is_pointwise(b) for b in func.blocks if b not in found):
            return False
        product = _product(func)
        if product is None or not product.rows:
            return False
        return product.rows[-1].extent >= FEWEST_ROWS and _extent(_apart(product)) <= MOST_APART

    def apply(self, sch: Schedule, target: Target) -> None:
        """Take the steps."""
        inline_chains(sch)
        product = _product(sch.func)
        assert product is not None
        others = set(sch.blocks()) - _schedule_product(sch, product)
        for name in sch.blocks():
            if name in others:
                schedule_points(sch, name)


def _product(func: PrimFunc) -> Contraction | None:
    """The product of a function, where both operands are tensors of their own, read at plain
    variables.
    """
    for block in func.blocks:
        found = contraction(block)
        if found is None or found.data.buffer is found.weight.buffer:
            continue
        plain = all(
            isinstance(index, Var) for load in (found.data, found.weight) for index in load.indices
        )
        if plain and found.group == found.vector.extent:
            return found
    return None


def _apart(product: Contraction) -> tuple[IterVar, ...]:
    """The axes of which each value has tiles of its own: all rows but the last, too, since a tile
    of several axes would have no rectangle of registers.
    """
    return (*product.batch, *product.rows[:-1])


def _extent(axes: Sequence[IterVar]) -> int:
    size = 1
    for axis in axes:
        size *= axis.extent
    return size


def _tile(product: Contraction) -> tuple[int, int, int, int]:
    """The largest tile of which there are enough; the smallest where there are never enough."""
    rows, columns = product.rows[-1].extent, product.vector.extent
    for threads, height, width, depth in TILES:
        across, down = -(-columns // (threads * width)), -(-rows // (threads * height))
        if across * down * _extent(_apart(product)) >= FEWEST_BLOCKS:
            return threads, height, width, depth
    return TILES[-1]


def _schedule_product(sch: Schedule, product: Contraction) -> set[str]:
    """Take the steps for the product and for what is computed of its tile. Returns the names of the
    blocks that are done.
    """
    name = product.block.name
    threads, height, width, depth = ask(sch, "tile", name, TILES, _tile(product))
    apart, row, column, term = _axes(sch, product)
    rows, part, ty = sch.split(row, (None, height, threads))
    columns, width_part, tx = sch.split(column, (None, width, threads))
    slices, inside = sch.split(term, (None, depth))
    sch.reorder(*apart, rows, columns, slices, ty, tx, inside, part, width_part)
    for loop in apart:
        sch.bind(loop, "blockIdx.z")
    sch.bind(rows, "blockIdx.y")
    sch.bind(columns, "blockIdx.x")
    sch.bind(ty, "threadIdx.y")
    sch.bind(tx, "threadIdx.x")
    sch.unroll(part)
    sch.unroll(width_part)
    for load in (product.data, product.weight):
        _fetched(sch, name, load, slices, threads)
    tensor = target_of(sch.func.block(name))
    user = pointwise_output(sch.func, sch.func.block(name))
    if user is None or tensor in sch.func.outputs or not _reads_own_element(user, tensor):
        sch.stage(name, tensor.name, columns, "register")
        return {name}
    _finished(sch, user.name, columns, threads)
    sch.set_scope(tensor.name, "register")
    return {name, user.name}


def _reads_own_element(user: Block, tensor: Buffer) -> bool:
    """Whether an element of the block is made of the same element of the tensor."""
    own = tuple(it.var for it in user.iters)
    return all(indices == own for indices in read_indices(user, tensor))


def _axes(sch: Schedule, product: Contraction) -> tuple[list[LoopRef], LoopRef, LoopRef, LoopRef]:
    """The loops of what is apart as one, of the rows, of the columns, of the terms as one."""
    loops = list(sch.loops(product.block.name))
    count = len(_apart(product))
    apart, (row, column, *terms) = loops[:count], loops[count:]
    one = [sch.fuse(*apart)] if len(apart) > 1 else apart
    return one, row, column, sch.fuse(*terms) if len(terms) > 1 else terms[0]


def _fetched(sch: Schedule, name: str, load: Load, slices: LoopRef, threads: int) -> None:
    """Let the threads of a block fetch what a slice needs of an operand, in vectors where each of
    them gets some.
    """
    copy = sch.cache_read(name, load.buffer.name)
    most = neighbours(sch.func.block(copy))
    each = sch.compute_at(copy, slices)
    row = sch.extent(each[-1])
    one = sch.fuse(*each) if len(each) > 1 else each[0]
    lanes = math.gcd(most, row, sch.extent(one) // threads**2)
    _, y, x, *lane = sch.split(one, (None, threads, threads, *([lanes] if lanes > 1 else [])))
    sch.bind(y, "threadIdx.y")
    sch.bind(x, "threadIdx.x")
    for piece in lane:
        sch.vectorize(piece)
    sch.set_scope(copy, "team")


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
