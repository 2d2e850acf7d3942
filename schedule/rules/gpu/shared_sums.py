"""Long sums of few elements on a GPU, as a product of one row of data with a matrix has them: the
warps of a block share the terms of neighbouring elements, and what they have is added up through
shared memory.

Neighbours along the last axis are read by neighbours of a warp, each term once for all rows of the
block. What follows element by element is computed by the threads that have the sums.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from ....tir.analysis.threads import WARP
from ....tir.expr import TRUE
from ....tir.stmt import Block, IterKind
from ...nest import is_reduction, loops_around, read_indices, target_of, targets_of
from ...primitives.storage.scope import Scope
from ...schedule import Schedule
from ...trace.references import LoopRef
from ..knobs.knobs import choose
from ..shape.structure import is_plain_store, pointwise_output
from .elementwise import MOST_APART

WARPS = (4, 8, 16, 32)  # of a block
FEW_BLOCKS = 64  # that have more warps
FEWEST_TERMS = 4  # of a warp
MOST_ELEMENTS = 1 << 15  # of which a thread each would leave a large GPU idle
MOST_ROWS = 8  # of a block: sums that a thread has
COPIES = 4  # of the body of the loop over terms, whose loads are under way at once


def has_shared_sums(block: Block) -> bool:
    """Whether a block sums many terms of each of few elements."""
    spatial = _extents(block, IterKind.SPATIAL)
    reduced = _extents(block, IterKind.REDUCE)
    axes = [it for it in block.iters if it.kind is IterKind.SPATIAL]
    plain = is_reduction(block) and block.init is not None and len(targets_of(block)) == 1
    plain = plain and block.counts == TRUE
    return (
        plain
        and bool(spatial)
        and is_plain_store(block, axes)
        and math.prod(spatial) <= MOST_ELEMENTS
        and max(reduced) >= WARPS[0] * FEWEST_TERMS
        and math.prod(spatial[:-1]) <= MOST_APART
    )


def schedule_shared_sums(sch: Schedule, name: str, plain: Collection[str]) -> set[str]:
    """Take the steps for a block, and for the one of the blocks `plain` that alone reads it element
    by element. Returns the names of those that are done.
    """
    block = sch.func.block(name)
    spatial, reduced = (_extents(block, kind) for kind in (IterKind.SPATIAL, IterKind.REDUCE))
    longest = reduced.index(max(reduced))
    choices = [n for n in WARPS if n * FEWEST_TERMS <= reduced[longest]]
    few_blocks = spatial[-1] < FEW_BLOCKS * WARP
    liked = choices if few_blocks else [n for n in choices if n < WARPS[-1]]
    whole = [n for n in liked if reduced[longest] % n == 0 and 2 * n >= liked[-1]]
    warps = choose(sch, "warps of a sum", name, choices, (whole or liked)[-1])
    terms = block.bindings[len(spatial) + longest]
    around = loops_around(sch.func, block)
    place = next(n for n, loop in enumerate(around) if loop.var is terms)
    _, warp = sch.split(sch.loops(name)[place], (None, warps))
    parts = sch.rfactor(name, warp)
    copy = sch.cache_read(name, parts)
    *rows, column, _ = sch.loops(name)
    few = math.prod(spatial[:-1]) <= MOST_ROWS
    columns, lane = sch.split(column, (None, min(WARP, spatial[-1])))
    outside, inside = ([], rows) if few else (rows, [])
    sch.reorder(*outside, columns, *inside, lane)
    if outside:
        sch.bind(sch.fuse(*outside) if len(outside) > 1 else outside[0], "blockIdx.y")
    sch.bind(columns, "blockIdx.x")
    _of_warps(sch, copy, columns, len(rows), "shared")
    _of_warps(sch, parts, columns, len(rows), "register")
    return {parts, copy, *finish_sums(sch, name, columns, inside, lane, plain)}


def finish_sums(
    sch: Schedule,
    name: str,
    columns: LoopRef,
    rows: Sequence[LoopRef],
    lane: LoopRef,
    plain: Collection[str] | None = None,
    across: int = WARP,
) -> set[str]:
    """Let a thread add up each element of a tile below the loop over columns, and compute what
    alone reads it element by element, which must be one of the blocks `plain`, where these are
    given. across: threads along threadIdx.x. Returns the names of those that are done.
    """
    block = sch.func.block(name)
    tensor = target_of(block)
    user = pointwise_output(sch.func, block)
    own = user is not None and (plain is None or user.name in plain)
    own = own and tensor not in sch.func.outputs
    if user is None or not own or not _reads_own_element(user, block):
        lane = _to_threads(sch, rows, lane, across)
        sch.stage(name, tensor.name, lane, "register")
        return {name}
    *others, last = sch.reverse_compute_at(user.name, columns)
    _to_threads(sch, rows, lane, across)
    _to_threads(sch, others, last, across)
    sch.set_scope(tensor.name, "register")
    return {name, user.name}


def _extents(block: Block, kind: IterKind) -> list[int]:
    return [it.extent for it in block.iters if it.kind is kind]


def _reads_own_element(user: Block, block: Block) -> bool:
    """Whether an element of a block is made of the same element of what another one computes."""
    own = tuple(it.var for it in user.iters)
    return all(indices == own for indices in read_indices(user, target_of(block)))


def _of_warps(sch: Schedule, name: str, columns: LoopRef, rows: int, scope: Scope) -> None:
    """What each warp has of a tile, all rows of it: a sum of terms, or a copy of that."""
    warp, *others = sch.compute_at(name, columns)
    own, lane, terms = others[:rows], others[rows], others[rows + 1 :]
    sch.reorder(warp, lane, *terms, *own)
    sch.bind(warp, "threadIdx.y")
    sch.bind(lane, "threadIdx.x")
    for loop in own:
        sch.unroll(loop)
    if terms and sch.extent(terms[-1]) > 1:
        sch.annotate(terms[-1], "unroll_hint", min(COPIES, sch.extent(terms[-1])))
    sch.set_scope(name, scope)


def _to_threads(sch: Schedule, rows: Sequence[LoopRef], lane: LoopRef, across: int) -> LoopRef:
    """A thread for each element: its row along threadIdx.y, its column along threadIdx.x, and along
    both where there are more columns than threads across. Returns the loop along threadIdx.x.
    """
    if sch.extent(lane) > across:
        more, lane = sch.split(lane, (None, across))
        rows = (*rows, more)
    if rows:
        sch.bind(sch.fuse(*rows) if len(rows) > 1 else rows[0], "threadIdx.y")
    sch.bind(lane, "threadIdx.x")
    return lane
