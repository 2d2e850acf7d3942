"""Rule for an attention that takes its keys tile by tile, on a GPU: a block of threads takes some
rows of queries of one head through all tiles, and nothing that is as long as the keys leaves it.

In each tile the scores of the block's rows are a product, of which each thread has a part in
registers; scores and powers then lie in shared memory, where each row's largest and sum are found
by parts. The product with the values stays in registers, where it is joined to that of the tiles
before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ....tir.buffer import Buffer
from ....tir.expr import Expr
from ....tir.func import PrimFunc
from ....tir.stmt import Block
from ....tir.target.target import Target
from ...cost.grid import KernelPass
from ...nest import buffers_read, read_indices, readers, target_of, targets_of, writers
from ...schedule import Schedule
from ...trace.references import LoopRef
from ..knobs.knobs import choose
from ..shape.structure import inline_chains, is_pointwise, reductions
from ..staged import StagedRule
from .elementwise import schedule_points
from .epilogue import moves
from .fetch import BANKS, deal_among, fetched
from .kernels import row_kernels
from .operands import Product, product

THREADS = 16  # along each side of a block
DEPTH = 16  # terms of a slice
ROWS = (4, 2, 1)  # of queries that a thread may have
MOST_RESULTS = 16  # of a thread
FEWEST_BLOCKS = 128  # that keep the multiprocessors of a large GPU busy
WIDEST = 128  # rows of values


@dataclass(frozen=True, slots=True)
class _Stages:
    """The blocks of such an attention, by what they do; names, since steps make them anew."""

    products: str
    scores: str
    largest: str
    powers: str
    sums: str
    mixed: str
    joined: str
    result: str


@dataclass(frozen=True, slots=True)
class GridAttentionRule(StagedRule[_Stages]):
    """Scores in tiles, the largest and the sum of each, what they make of the values, and one
    reduction that joins the tiles; what follows is one block.
    """

    name: ClassVar[str] = "grid attention"

    def may_match(self, func: PrimFunc) -> bool:
        """Whether there are as many reductions, of known sizes."""
        return len(reductions(func)) == 5 and not func.dims

    def recognise(self, sch: Schedule) -> _Stages | None:
        """The blocks of an attention by tiles."""
        inline_chains(sch, repeated=False)
        return _stages(sch.func)

    def schedule_stages(self, sch: Schedule, stages: _Stages, target: Target) -> None:
        """Take the steps."""
        rows, defined = _rows(sch, stages), sch.blocks()
        tiles = _join(sch, stages, rows)
        done = {*_mix(sch, stages, tiles), *_reduce(sch, stages.sums, tiles, rows)}
        deal_among(sch, sch.compute_at(stages.powers, tiles), (THREADS, THREADS), 1)
        _keep(sch, stages.powers, rows)
        done |= {*_reduce(sch, stages.largest, tiles, rows), *_score(sch, stages, tiles, rows)}
        done |= {stages.powers, stages.joined, stages.result}
        for other in sch.blocks():
            if other in defined and other not in done:
                schedule_points(sch, other)

    def passes(self, func: PrimFunc, target: Target) -> Sequence[KernelPass]:
        """The kernels of its rows."""
        return row_kernels(func)


def _stages(func: PrimFunc) -> _Stages | None:
    """The blocks of an attention by tiles; None where the function is something else."""
    joined = next((b for b in reductions(func) if len(targets_of(b)) == 3), None)
    made = [] if joined is None else [_maker(func, tensor) for tensor in buffers_read(joined)]
    if joined is None or len(made) != 3 or None in made:
        return None
    largest, sums, mixed = (block for block in made if block is not None)
    powers = _maker(func, buffers_read(sums)[0])
    scores = _maker(func, buffers_read(largest)[0])
    products = None if scores is None else _maker(func, buffers_read(scores)[0])
    ends = {user for target in targets_of(joined) for user in readers(func, target)}
    if products is None or scores is None or powers is None or len(ends) != 1:
        return None
    listed = (products, scores, largest, powers, sums, mixed, joined, ends.pop())
    others = [block for block in func.blocks if not any(block is one for one in listed)]
    plain = all(map(moves, others)) and is_pointwise(scores) and is_pointwise(powers)
    fits = _is_first(products, joined) and _is_second(mixed, powers) and _is_end(func, listed[-1])
    return _Stages(*(block.name for block in listed)) if plain and fits else None


def _maker(func: PrimFunc, tensor: Buffer) -> Block | None:
    found = writers(func, tensor)
    return found[0] if len(found) == 1 and tensor in func.allocations else None


def _is_first(block: Block, joined: Block) -> bool:
    """Whether a block multiplies rows of queries with the keys of all tiles."""
    found = product(block)
    if found is None or len(found.rows.axes) != 1 or len(found.columns.axes) != 2:
        return False
    tiles = joined.iters[-1].extent
    return found.columns.axes[0].extent == tiles and found.columns.axes[1].extent % THREADS == 0


def _is_second(block: Block, powers: Block) -> bool:
    """Whether a block multiplies powers with the values of a tile."""
    found = product(block)
    if found is None or found.rows.load.buffer is not target_of(powers):
        return False
    return len(found.columns.axes) == 1 and found.columns.extent <= WIDEST


def _is_end(func: PrimFunc, block: Block) -> bool:
    """Whether a block makes each element of the result of one of what was joined."""
    if not is_pointwise(block) or target_of(block) not in func.outputs:
        return False
    own = {it.var for it in block.iters}
    made = [tensor for tensor in buffers_read(block) if tensor in func.allocations]
    at = {indices for tensor in made for indices in read_indices(block, tensor)}
    return len(at) == 1 and all(set(indices[-2:]) <= own for indices in at)


def _rows(sch: Schedule, stages: _Stages) -> int:
    """Rows of a thread: as many as its registers hold results of, and as there are enough blocks
    of.
    """
    *batch, row, column, _ = sch.func.block(stages.joined).iters
    across = -(-column.extent // THREADS)
    fitting = [rows for rows in ROWS if rows * across <= MOST_RESULTS]
    blocks = math.prod(it.extent for it in batch)
    default = next(
        (n for n in fitting if blocks * -(-row.extent // (n * THREADS)) >= FEWEST_BLOCKS), 1
    )
    return choose(sch, "rows of a thread", stages.products, fitting, default)


def _join(sch: Schedule, stages: _Stages, rows: int) -> LoopRef:
    """Give each block of threads its rows, and what is made of them. Returns the loop over tiles of
    keys.
    """
    *batch, row, column, tiles = sch.loops(stages.joined)
    block, part, ty = sch.split(row, (None, rows, THREADS))
    across = -(-sch.extent(column) // THREADS)
    wide, tx = sch.split(column, (across, THREADS))
    heads = sch.fuse(*batch) if len(batch) > 1 else batch[0]
    sch.reorder(heads, block, tiles, ty, tx, part, wide)
    sch.bind(heads, "blockIdx.y")
    sch.bind(block, "blockIdx.x")
    _threads(sch, ty, tx, part, wide)
    result = sch.func.block(stages.result)
    tensor = next(x for x in buffers_read(result) if x in targets_of(sch.func.block(stages.joined)))
    own: list[Expr] = [it.var for it in result.iters]
    at = [own.index(index) for index in read_indices(result, tensor)[0][-2:]]
    loops = list(sch.reverse_compute_at(stages.result, block))
    _tile(sch, [x for n, x in enumerate(loops) if n not in at], loops[at[0]], loops[at[1]])
    for made in targets_of(sch.func.block(stages.joined)):
        sch.set_scope(made.name, "register")
    return tiles


def _threads(sch: Schedule, ty: LoopRef, tx: LoopRef, *inside: LoopRef) -> None:
    sch.bind(ty, "threadIdx.y")
    sch.bind(tx, "threadIdx.x")
    for loop in inside:
        sch.unroll(loop)


def _tile(
    sch: Schedule,
    around: Sequence[LoopRef],
    row: LoopRef,
    column: LoopRef,
    terms: tuple[LoopRef, ...] = (),
) -> None:
    """Deal a tile out to the threads: elements of one lie as far apart as there are threads.
    terms: the slices of a sum and the terms of one.
    """
    part, ty = sch.split(row, (None, THREADS))
    wide, tx = sch.split(column, (None, THREADS))
    slices, inside = terms[:1], terms[1:]
    sch.reorder(*around, *slices, ty, tx, *inside, part, wide)
    _threads(sch, ty, tx, part, wide)


def _multiply(sch: Schedule, name: str, tiles: LoopRef, kept: Buffer | None) -> set[str]:
    """One product of a tile, its result in registers. kept: the operand that is in shared memory
    already. Returns the blocks that are done.
    """
    found = product(sch.func.block(name))
    assert found is not None
    *batch, row, column, term = _in_order(sch, found, sch.compute_at(name, tiles))
    slices, inside = sch.split(term, (None, min(DEPTH, sch.extent(term))))
    _tile(sch, batch, row, column, (slices, inside))
    operands = [operand for operand in found.operands if operand.load.buffer is not kept]
    made = {copy for operand in operands for copy in fetched(sch, found, operand, slices, THREADS)}
    sch.set_scope(target_of(sch.func.block(name)).name, "register")
    return {name, *made}


def _in_order(sch: Schedule, found: Product, loops: Sequence[LoopRef]) -> list[LoopRef]:
    """The loops of a product: others, its row, its last column, its term."""
    place = dict(zip(found.block.iters, loops, strict=True))
    last = [place[found.rows.axes[0]], place[found.columns.axes[-1]], place[found.terms[0]]]
    return [*(loop for loop in loops if loop not in last), *last]


def _mix(sch: Schedule, stages: _Stages, tiles: LoopRef) -> set[str]:
    """The powers of a tile, which lie in shared memory, times its values."""
    return _multiply(sch, stages.mixed, tiles, target_of(sch.func.block(stages.powers)))


def _score(sch: Schedule, stages: _Stages, tiles: LoopRef, rows: int) -> set[str]:
    """The scores of a tile, in shared memory, each made of a product in registers."""
    *batch, row, tile, key = sch.compute_at(stages.scores, tiles)
    _tile(sch, [*batch, tile], row, key)
    _keep(sch, stages.scores, rows)
    return {stages.scores, *_multiply(sch, stages.products, tiles, None)}


def _keep(sch: Schedule, name: str, rows: int) -> None:
    """Keep a tile in shared memory. A warp finds the largest, or the sum, of 2*rows rows at once:
    they begin in banks as far apart as it reads elements of each.
    """
    tensor = target_of(sch.func.block(name))
    sch.set_scope(tensor.name, "shared")
    sch.storage_align(tensor.name, len(tensor.shape) - 3, BANKS, THREADS // rows)


def _reduce(sch: Schedule, name: str, tiles: LoopRef, rows: int) -> set[str]:
    """Reduce the rows of a tile: each in parts, one for each thread, which one of them joins."""
    parts = min(THREADS // rows, sch.extent(sch.loops(name)[-1]) // 2)
    _, part = sch.split(sch.loops(name)[-1], (None, parts))
    made = sch.rfactor(name, part)
    *batch, row, tile, terms = sch.compute_at(name, tiles)
    ty, tx = sch.split(row, (THREADS, rows))
    sch.reorder(*batch, tile, ty, tx, terms)
    _in_threads(sch, name, ty, tx)
    part, *batch, row, tile, terms = sch.compute_at(made, tiles)
    ty, each = sch.split(row, (THREADS, rows))
    sch.reorder(*batch, tile, ty, each, part, terms)
    sch.storage_align(target_of(sch.func.block(made)).name, 0, BANKS, 2 * rows)
    _in_threads(sch, made, ty, sch.fuse(each, part))
    return {name, made}


def _in_threads(sch: Schedule, name: str, ty: LoopRef, tx: LoopRef) -> None:
    """Let each thread reduce in a register, and leave the result in shared memory."""
    tensor = target_of(sch.func.block(name)).name
    _threads(sch, ty, tx)
    sch.set_scope(tensor, "shared")
    sch.stage(name, tensor, tx, "register")
