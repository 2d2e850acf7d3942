"""The kernels of a function on a GPU, from its blocks, before any step is taken.

What is computed row by row, and a reduction with what is pointwise behind it, is one kernel; every
other block is one of its own, but for what only moves elements for another to read, and what
depends on constants alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ....tir.buffer import Buffer
from ....tir.func import PrimFunc
from ....tir.instructions.warp_products import WarpProduct
from ....tir.stmt import Block
from ....tir.visit import loads
from ....tir.work.work import block_operations, block_work, points_of
from ...cost.grid import KernelPass, kernel_pass
from ...nest import is_reduction, targets_of
from ...schedule import Schedule
from ..products.made_panels import made_of_less
from ..shape.row_groups import row_groups
from ..shape.structure import inline_chains, pointwise_output

ROWS_OF_TILE = 64  # of a product, for which weights of few bits are unpacked once


def row_kernels(
    func: PrimFunc, unit: WarpProduct | None = None, *, unpacks: bool = False
) -> list[KernelPass]:
    """The kernels of a function whose rows are computed at once. unit: the instruction that its
    reductions become. unpacks: whether weights that are made of few bits are made where they are
    multiplied.
    """
    sch = Schedule(func)
    inline_chains(sch, repeated=False)
    listed = _blocks_of_kernels(sch.func)
    if not unpacks:
        return [_kernel(blocks, unit) for blocks in listed]
    return [_unpacking(sch.func, blocks, _kernel(blocks, unit)) for blocks in listed]


def _unpacking(func: PrimFunc, blocks: Sequence[Block], found: KernelPass) -> KernelPass:
    """A kernel that reads what weights are made of, and makes them for each tile of rows."""
    read = {load.buffer: block for block in blocks for load in loads(block.body)}
    for buffer, user in read.items():
        maker = made_of_less(func, buffer, user)
        if maker is None:
            continue
        tiles = -(-points_of(user) // (buffer.size * ROWS_OF_TILE))
        less = buffer.bytes - sum(count for _, count in block_work(maker).read)
        made = tiles * block_operations(maker)
        found = replace(found, operations=found.operations + made, moved=found.moved - less)
    return found


def _blocks_of_kernels(func: PrimFunc) -> Iterator[tuple[Block, ...]]:
    """The blocks of each kernel."""
    fixed = set(func.constants)
    taken: set[str] = set()
    for group in row_groups(func):
        names = (*group.members, group.anchor)
        for part in (names,) if group.rows else ((name,) for name in names):
            blocks = [func.block(name) for name in part if name not in taken]
            if all(_is_prepared(block, fixed) for block in blocks):
                fixed.update(*(targets_of(block) for block in blocks))
                continue
            if all(_only_moves(func, block) for block in blocks):
                continue
            last = blocks[-1]
            behind = pointwise_output(func, last) if is_reduction(last) else None
            if behind is not None:
                blocks.append(behind)
            taken.update(block.name for block in blocks)
            yield tuple(blocks)


def _only_moves(func: PrimFunc, block: Block) -> bool:
    """Whether a block computes nothing, and its result is no output."""
    return not block_operations(block) and not set(targets_of(block)) & set(func.outputs)


def _is_prepared(block: Block, fixed: set[Buffer]) -> bool:
    """Whether a block reads nothing but constants, and what is made of them."""
    own = set(targets_of(block))
    return all(load.buffer in fixed | own for load in loads(block.body))


def _kernel(blocks: Sequence[Block], unit: WarpProduct | None) -> KernelPass:
    inside = {target for block in blocks[:-1] for target in targets_of(block)}
    works = [block_work(block) for block in blocks]
    read: dict[Buffer, int] = {}
    for work in works:
        for buffer, count in work.read:
            read[buffer] = max(count, read.get(buffer, 0))
    moved = works[-1].written + sum(n for buffer, n in read.items() if buffer not in inside)
    return kernel_pass([(b, unit if is_reduction(b) else None) for b in blocks], moved)
