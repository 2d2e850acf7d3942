"""Rule for rows: a softmax, a normalisation, a sum along the last axis, and functions of several
blocks in general.

What makes a row is computed row by row, in one loop, so that its intermediates stay close. A
reduction along the contiguous axis keeps a few vectors of partial results, which are then joined
vector by vector, then four by four, then one by one: in the same order whatever the number of
threads. All of them, and what there is one of for each row, live in registers. Where the row is
itself made just before, element by element, one loop makes and reduces it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import prod
from typing import ClassVar

from ...tir.buffer import Load
from ...tir.dtype import INT64
from ...tir.expr import Add, Expr
from ...tir.func import PrimFunc
from ...tir.stmt import Block, IterKind
from ...tir.target.target import CpuTarget, Target
from ...tir.visit import loads, stores
from ...tir.work.work import points_of
from ..cost.passes import Sweep
from ..legality.externs import extern_of
from ..nest import is_reduction, readers, targets_of
from ..schedule import Schedule
from ..trace.references import LoopRef
from .elementwise import choose_streaming, memory_cycles, schedule_pointwise, vector_cycles
from .knobs.knobs import choose, choose_copies, choose_flag
from .knobs.lanes import vector_lanes
from .knobs.threads import share_out
from .long_sums import cut_long_sum, long_sums
from .reduction import schedule_window
from .rule import Rule
from .scan import schedule_scan
from .shape.row_groups import RowGroup, row_axis, row_groups
from .shape.structure import inline_chains, is_elementwise
from .shape.windows import is_window
from .sweeps import block_cycles, sweep_over

MOST_VECTORS = 8  # of partial results
LONGEST_SUM = 512  # terms of one partial result that stands alone
FEW = 4  # partial results that are joined one by one

Parts = Mapping[str, tuple[str, ...]]  # blocks of partial results, by the block that joins them


@dataclass(frozen=True, slots=True)
class RowsRule(Rule):
    """Any function.

    in_order: a sum is one chain in the order of its definition, never in parts.
    """

    name: ClassVar[str] = "rows"
    keeps_order: ClassVar[bool] = True

    def matches(self, func: PrimFunc) -> bool:
        """Always."""
        return True

    def apply(self, sch: Schedule, target: Target) -> None:
        """Take the steps."""
        self.apply_around(sch, target, frozenset())

    def apply_around(self, sch: Schedule, target: Target, made: frozenset[str]) -> None:
        """Take the steps of all blocks but those that are `made` already."""
        target = CpuTarget.of(target)
        inline_chains(sch, repeated=False)
        done = set(made)
        for group in () if self.in_order else row_groups(sch.func, long_sums(sch.func, target)):
            alone = not group.members and group.anchor not in done
            if alone and is_reduction(sch.func.block(group.anchor)):
                cuts = cut_long_sum(sch, group.anchor, target)
                done = done.union(*(cut.scheduled for cut in cuts))
        for group in row_groups(sch.func):
            block = sch.func.block(group.anchor)
            if block.name in done or extern_of(block) is not None:
                continue
            if group.rows:
                schedule_rows(sch, group, target, in_order=self.in_order)
            elif is_elementwise(block):
                schedule_pointwise(sch, block.name, target)
            elif block.is_ordered:
                schedule_scan(sch, block, target)
            elif is_window(block):
                schedule_window(sch, block, target, alone=True)
            else:
                _share_out(sch, block, target)

    def passes(self, func: PrimFunc, target: Target) -> Sequence[Sweep]:
        """One for each group of blocks that are computed row by row."""
        target = CpuTarget.of(target)
        sch = Schedule(func)
        inline_chains(sch, repeated=False)
        groups = row_groups(sch.func)
        alone = {block.name for block in sch.func.blocks if extern_of(block) is not None}
        return [_sweep(sch.func, group, target) for group in groups if group.anchor not in alone]


def _sweep(func: PrimFunc, group: RowGroup, target: CpuTarget) -> Sweep:
    own = [func.block(name) for name in (*group.members, group.anchor)]
    cycles = sum(block_cycles(block, target, _in_vectors(block, target)) for block in own)
    return sweep_over(func, own, cycles, target)


def cut_rows(
    sch: Schedule, names: Sequence[str], target: CpuTarget, makers: Mapping[str, str] | None = None
) -> Parts:
    """Cut the reductions along a row among these blocks: the blocks of partial results of each.

    makers: of a reduction, the block that makes its row in the same loop; "" for none.
    """
    alone = makers or {}
    return {name: _in_parts(sch, name, target, alone=bool(alone.get(name))) for name in names}


def schedule_rows(
    sch: Schedule,
    group: RowGroup,
    target: CpuTarget,
    *,
    in_order: bool = False,
    cut: Parts | None = None,
) -> None:
    """Compute the blocks of a group in one loop over the rows; in_order: no reduction in parts.

    cut: what cut_rows made of them, inside of a loop that threads share out; None where both is
    still to do.
    """
    names = [*group.members, group.anchor]
    made_by = [sch.func.block(name) for name in names]
    work = sum(map(points_of, made_by))
    makers = {}
    if cut is None:
        makers = {name: _maker(sch, name, before, target) for before, name in pairwise(names)}
    parts = cut_rows(sch, () if in_order else names, target, makers) if cut is None else cut
    listed = [part for name in names for part in (*parts.get(name, ()), name)]
    own = sch.loops(group.anchor)[-len(sch.func.block(group.anchor).iters) :]
    *_, row = rows = own[: group.rows]
    below = {name: sch.compute_at(name, row) for name in reversed(listed[:-1])}
    inside = len(own) - group.rows
    below[group.anchor] = sch.loops(group.anchor)[-inside:] if inside else ()
    chunks: dict[str, LoopRef] = {}  # of elements: the loop over their vectors
    for name in listed:
        block = sch.func.block(name)
        partial = any(name in made for made in parts.values())
        number = all(sch.extent(loop) == 1 for loop in below[name])  # one, of each row
        if partial or (name != group.anchor and (is_reduction(block) or number)):
            for tensor in targets_of(block):
                if partial or readers(sch.func, tensor):  # else `_joined` keeps it there
                    sch.set_scope(tensor.name, "register")
            block = sch.func.block(name)
        if partial:
            joins = all(name != made[0] for made in parts.values() if made)
            steps = _partial(sch, block, below[name], target, joins=joins)
            for reduction, maker in makers.items():
                if maker and parts[reduction][:1] == (name,):
                    together = sch.merge(chunks[maker], steps)
                    _choose_prefetch(sch, sch.func.block(maker), row, together, target)
        elif is_reduction(block):
            _joined(sch, block, below[name], row)
        else:
            chunk = _elements(sch, block, below[name], target)
            if chunk is not None:
                chunks[name] = chunk
                if name == group.anchor and choose_streaming(sch, made_by, target):
                    sch.annotate(chunk, "stream", 1)
    outer = [loop for loop in rows if sch.extent(loop) > 1]
    if cut is None:
        share_out(sch, group.anchor, outer, target, work)


def _in_vectors(block: Block, target: CpuTarget) -> int:
    """The lanes of a reduction that runs in vectors along its row; 0 for others."""
    axis, lanes = row_axis(block), vector_lanes(block, target)
    alone = len(targets_of(block)) == 1
    if not target.has_long_vectors and any(_is_long(store.value) for store in stores(block.body)):
        return 0
    return lanes if axis and alone and 1 < lanes <= 2 * axis.extent else 0


def _is_long(expr: Expr) -> bool:
    """Whether integers of 64 bits are data here and do more than to be added. Indices that become
    data are not: vectors hold them in 32 bits.
    """
    if isinstance(expr, Load) or not loads(expr):
        return False
    parts = [child for child in expr.children() if isinstance(child, Expr)]
    kinds = {part.dtype.scalar for part in (expr, *parts)}
    return (INT64 in kinds and not isinstance(expr, Add)) or any(map(_is_long, parts))


def _maker(sch: Schedule, name: str, before: str, target: CpuTarget) -> str:
    """The block `before` a reduction along a row that makes, in vectors as long, the row that it
    reads; "" where it does not.

    The two then share a loop: each vector is reduced as it is made, into one vector of partial
    results, since the making takes longer than an addition waits for the one before it.
    """
    block, made = sch.func.block(name), sch.func.block(before)
    axis, lanes = row_axis(block), _in_vectors(block, target)
    if axis is None or not lanes or not is_elementwise(made) or vector_lanes(made, target) != lanes:
        return ""
    read = {load.buffer for load in loads(block.body)}
    others = [it for it in block.iters if it.kind is IterKind.REDUCE and it is not axis]
    whole = made.iters[-1].extent == axis.extent and all(it.extent == 1 for it in others)
    fits = lanes <= axis.extent <= LONGEST_SUM * lanes
    if not (whole and fits and read & set(targets_of(made))):
        return ""
    return before if choose_flag(sch, "one loop with what it reads", name, True) else ""


def _in_parts(sch: Schedule, name: str, target: CpuTarget, *, alone: bool) -> tuple[str, ...]:
    """Cut a reduction along a row into the blocks of partial results: vectors, or one `alone`; one
    vector; few.
    """
    block = sch.func.block(name)
    axis, lanes = row_axis(block), _in_vectors(block, target)
    if axis is None or not lanes:
        return ()
    made: list[str] = []
    count = -(-axis.extent // lanes)
    times = prod(it.extent for it in block.iters if it.kind is IterKind.REDUCE and it is not axis)
    vectors = 1 if alone else _choose_vectors(sch, name, count, times)
    for size in (vectors * lanes, lanes, FEW):
        steps = sch.loops(block.name)[-1]
        if not made or size < sch.extent(steps):
            _, part = sch.split(steps, (None, size), tail="mask")
            made.append(sch.rfactor(block.name, part))
    return tuple(made)


def _choose_vectors(sch: Schedule, name: str, count: int, times: int) -> int:
    """How many vectors of partial results a row of `count` vectors has, of which each result takes
    `times` ones: never so few that a sum grows longer than by default, and longer than one that may
    stand alone.
    """
    default = _vectors(count, times)
    longest = max(LONGEST_SUM, -(-count // default))
    sizes = [n for n in range(1, min(count, MOST_VECTORS) + 1) if -(-count // n) <= longest]
    return choose(sch, "vectors", name, sizes, default)


def _vectors(count: int, times: int) -> int:
    """How many vectors of partial results shorten the way through `count` vectors, `times` over,
    the most: as many steps as rounds, and one for each that is joined; of equals the one with the
    least beyond the end.
    """
    sizes = range(1, min(count, MOST_VECTORS) + 1)
    return min(sizes, key=lambda n: (-(-count // n) * times + n, -(-count // n) * n))


def _partial(
    sch: Schedule, block: Block, loops: Sequence[LoopRef], target: CpuTarget, *, joins: bool
) -> LoopRef:
    """Partial results in vectors, which live in registers; joins: of partial results, all of whose
    registers are named in the code. Returns the loop over the steps.
    """
    part, *others, steps = loops
    lanes = min(vector_lanes(block, target), sch.extent(part))
    vector, lane = sch.split(part, (None, lanes))
    longer = [loop for loop in others if sch.extent(loop) > 1]  # memory is read as it lies
    sch.reorder(*longer, steps, *(x for x in others if x not in longer), vector, lane)
    sch.unroll(vector)
    sch.vectorize(lane)
    if joins:
        sch.unroll(steps)
    else:
        choose_copies(sch, block.name, steps)
    return steps


def _choose_prefetch(
    sch: Schedule, maker: Block, row: LoopRef, steps: LoopRef, target: CpuTarget
) -> None:
    """While vectors of a row are made, ask for the next row of what they are made of: where making
    one takes longer than memory takes to bring one, and the whole does not stay in the first cache.
    """
    read = {load.buffer for load in loads(maker.body)} & {p.buffer for p in sch.func.parameters}
    large = [buffer.name for buffer in read if buffer.size * buffer.type.bytes > target.l1_bytes]
    pays = vector_cycles(maker, target) >= memory_cycles(target)
    if large and sch.extent(row) > 1 and choose_flag(sch, "early rows", maker.name, pays):
        for tensor in sorted(large):
            sch.attempt(partial(Schedule.prefetch, buffer=tensor, at=row, spread=(steps,)))


def _joined(sch: Schedule, block: Block, loops: Sequence[LoopRef], row: LoopRef) -> None:
    """One element of a reduction, in a register while it grows."""
    if sch.extent(loops[-1]) <= FEW:
        sch.unroll(loops[-1])
    spatial = [it for it in block.iters if it.kind is IterKind.SPATIAL]
    place = loops[0] if len(loops) > len(block.iters) - len(spatial) else row
    for tensor in targets_of(block):
        sch.stage(block.name, tensor.name, place, "register")


def _elements(
    sch: Schedule, block: Block, loops: Sequence[LoopRef], target: CpuTarget
) -> LoopRef | None:
    """The elements of a row in vectors; returns the loop over these, if there is one."""
    lanes = vector_lanes(block, target)
    if not loops or lanes == 1 or sch.extent(loops[-1]) < lanes // 2:
        return None
    chunk, lane = sch.split(loops[-1], (None, lanes), tail="mask")
    sch.vectorize(lane)
    if all(sch.extent(loop) == 1 for loop in loops[:-1]):
        sch.reorder(chunk, *loops[:-1], lane)
    return chunk


def _share_out(sch: Schedule, block: Block, target: CpuTarget) -> None:
    """Share out the kept axes of a reduction; each element is reduced by one thread, in order, in a
    register where it lies inside all of them.
    """
    loops = zip(sch.loops(block.name), block.iters, strict=True)
    kept = [loop for loop, it in loops if it.kind is IterKind.SPATIAL]
    spatial = [loop for loop in kept if sch.extent(loop) > 1]
    for tensor in targets_of(block) if is_reduction(block) and kept else ():
        held = partial(Schedule.stage, buffer=tensor.name, loop=kept[-1], scope="register")
        sch.attempt(partial(held, block=block.name))
    share_out(sch, block.name, spatial, target, points_of(block))
