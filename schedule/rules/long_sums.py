"""Long reductions: their terms are cut into parts. A sum of floats rounds less then, for its error
grows with the number of terms that are added one after the other; and where there are few results,
threads have something to share out, and registers more sums than the latency of an addition.

How many parts there are is a choice of the schedule, never the number of threads of a run, so the
result has the same bits on any number of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...tir.analysis.update import read_update
from ...tir.conditions import dims_below
from ...tir.func import PrimFunc
from ...tir.stmt import Block, IterKind, IterVar
from ...tir.target.target import CpuTarget
from ...tir.work.work import points_of
from ..nest import is_reduction, targets_of
from ..schedule import Schedule
from ..trace.references import LoopRef
from .knobs.knobs import choose, choose_copies, choose_flag
from .knobs.lanes import vector_lanes
from .knobs.threads import SERIAL_ELEMENTS, share_out
from .shape.row_groups import row_axis
from .shape.windows import window_taps

LONGEST_CHAIN = 4096  # floats that are added one after the other in one sum
PARTS = (2, 4, 8, 16)  # of which a tuner may choose
LEAST_TERMS = 16  # of a part
MANY_SUMS = 16  # vectors of partial results, beyond which registers need no more
FEW_TASKS = 4  # to a thread, below which parts share out better
PIECE_VECTORS = 8  # of a row: accumulators that hide the latency of an addition


@dataclass(frozen=True, slots=True)
class Cut:
    """The block of partial results of a sum, and the blocks that have their schedule."""

    parts: str
    scheduled: frozenset[str] = frozenset()


def long_sums(func: PrimFunc, target: CpuTarget) -> frozenset[str]:
    """The blocks that add up more floats one after the other than they should."""
    return frozenset(b.name for b in func.blocks if is_reduction(b) and _is_long(b, target))


def cut_long_sum(sch: Schedule, name: str, target: CpuTarget) -> list[Cut]:
    """Cut the terms of a reduction into parts: so many that a sum of floats is no long chain, and
    these again where one axis is not enough; of a shorter one as many as is chosen, by default one.
    The parts of parts come last.
    """
    block = sch.func.block(name)
    if not _is_long(block, target):
        count = choose(sch, "parts", name, _part_counts(block, target), 1)
        first = next(it for it in block.iters if it.kind is IterKind.REDUCE)
        return [] if count == 1 else [cut_axis(sch, block, first, count, target)]
    cuts: list[Cut] = []
    while _is_long(block, target) and not (cuts and cuts[-1].scheduled):
        axis, count = _fewest_parts(block, _chain(block, target))
        cuts.append(cut_axis(sch, block, axis, count, target))
        block = sch.func.block(cuts[-1].parts)
    return cuts


def cut_axes(sch: Schedule, name: str, longest: int) -> str:
    """Cut a sum of floats along its axes, but that which walks memory, until a part has no more
    than `longest` terms. Returns the block of the parts; the block itself where it is as short.
    """
    block = sch.func.block(name)
    while is_reduction(block) and _adds_floats(block) and window_taps(block) > longest:
        axis, count = _fewest_parts(block, window_taps(block))
        if axis is row_axis(block):
            break
        loop = sch.loops(block.name)[-len(block.iters) :][block.iters.index(axis)]
        if count < axis.extent:
            _, loop = sch.split(loop, (None, count), tail="mask")
        made = _cut(sch, block.name, loop).parts
        block = sch.func.block(made)
    return block.name


def _is_long(block: Block, target: CpuTarget) -> bool:
    return _adds_floats(block) and _chain(block, target) > LONGEST_CHAIN


def _adds_floats(block: Block) -> bool:
    targets = targets_of(block)
    update = read_update(block) if len(targets) == 1 and targets[0].type.is_float else None
    return update is not None and update.reducer in ("sum", "prod")


def _chain(block: Block, target: CpuTarget) -> int:
    """Terms that are added one after the other in one sum: of a window whose size a call decides,
    as many as are usual, since parts of all that it may have would take memory for each.
    """
    reduced = [it for it in block.iters if it.kind is IterKind.REDUCE]
    dims = dims_below(block.counts) if len(reduced) > 1 else {}
    terms = [dims[it.var].usual if it.var in dims else it.extent for it in reduced]
    lanes = vector_lanes(block, target)
    if lanes > 1 and row_axis(block) is not None:
        terms[-1] = -(-terms[-1] // (PIECE_VECTORS * lanes))
    return math.prod(terms)


def _fewest_parts(block: Block, chain: int) -> tuple[IterVar, int]:
    """The axis to be cut, the longest: not the one that walks memory, as long as another one is
    long. About the root of the length of a chain, so that sums of parts, and the sum of these, are
    as long; a number nearby that divides the axis, where there is one.
    """
    reduced = [it for it in block.iters if it.kind is IterKind.REDUCE]
    row = row_axis(block)
    axis = max(reduced, key=lambda it: (it is not row and it.extent > 1, it.extent))
    wanted = min(axis.extent, math.isqrt(chain - 1) + 1)
    sizes = range(wanted, min(axis.extent, 4 * wanted) + 1)
    return axis, next((n for n in sizes if axis.extent % n == 0), wanted)


def cut_axis(sch: Schedule, block: Block, axis: IterVar, count: int, target: CpuTarget) -> Cut:
    """Cut the terms along one axis into so many parts."""
    name, number = block.name, block.iters.index(axis)
    loop = sch.loops(name)[-len(block.iters) :][number]
    along, even = row_axis(block) is axis, axis.extent % count == 0
    if count == axis.extent:
        return _cut(sch, name, loop)
    if even and (along or choose_flag(sch, "neighbours in a part", name, True)):
        return _cut(sch, name, sch.split(loop, (count, None))[0])
    if not along or vector_lanes(block, target) == 1:
        return _cut(sch, name, sch.split(loop, (None, count), tail="mask")[1])
    return _cut_in_pieces(sch, name, loop, count, target)


def _part_counts(block: Block, target: CpuTarget) -> list[int]:
    """The numbers of parts that may pay: each is worth a barrier, or all stay in registers."""
    if len(targets_of(block)) > 1:
        return [1]
    first = next(it for it in block.iters if it.kind is IterKind.REDUCE)
    *around, last = [1, *(it.extent for it in block.iters if it.kind is IterKind.SPATIAL)]
    lanes = vector_lanes(block, target)
    along = row_axis(block) is first
    vectors = PIECE_VECTORS * last if along else -(-last // lanes)
    vectors *= math.prod(around)
    terms = first.extent // (PIECE_VECTORS * lanes if along else 1)
    most = points_of(block) // SERIAL_ELEMENTS if target.threads > 1 else 1
    shares_out = vectors < FEW_TASKS * PIECE_VECTORS * target.threads

    def pays(count: int) -> bool:
        return count * vectors <= MANY_SUMS or (shares_out and count <= most)

    rounds = -(-first.extent // (PIECE_VECTORS * lanes)) if along else first.extent
    fitting = (n for n in PARTS if first.extent % n == 0 or rounds % n != 1)
    return [1, *(n for n in fitting if n * LEAST_TERMS <= terms and pays(n))]


def _cut(sch: Schedule, name: str, parts: LoopRef) -> Cut:
    """Make a part of each iteration of a loop, which comes to stand outside."""
    made = sch.rfactor(name, parts)
    around = sch.loops(made)
    sch.reorder(parts, *(loop for loop in around if loop != parts))
    return Cut(made)


def _cut_in_pieces(sch: Schedule, name: str, loop: LoopRef, count: int, target: CpuTarget) -> Cut:
    """Let each part take every `count`-th piece of a row, each lane of which is a sum of its own,
    and schedule that.
    """
    lanes = vector_lanes(sch.func.block(name), target)
    before = {block.name for block in sch.func.blocks}
    pieces, piece = sch.split(loop, (None, PIECE_VECTORS * lanes), tail="mask")
    sums = sch.rfactor(name, piece)
    steps, parts = sch.split(pieces, (None, count), tail="mask")
    made = sch.rfactor(sums, parts)
    vector, lane = sch.split(piece, (None, lanes))
    named = (parts, steps, vector, lane)
    others = [around for around in sch.loops(made) if around not in named]
    sch.reorder(parts, *others, steps, vector, lane)
    sch.unroll(vector)
    sch.vectorize(lane)
    for tensor in targets_of(sch.func.block(made)):
        sch.stage(made, tensor.name, [parts, *others][-1], "register")
    share_out(sch, made, [parts, *others], target, points_of(sch.func.block(made)))
    choose_copies(sch, made, steps)
    return Cut(made, frozenset({block.name for block in sch.func.blocks} - before))
