"""Rule for recurrences whose steps read other lines than they set, as those of a sorting network
do, and for what stands before, between and behind them.

Where all of it goes row by row, one loop over the rows holds it, so that a row and its states stay
in the first cache. The steps stand outside of the lines; two lines at once, which have what they
read in common, and the elements of a line in vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from ...tir.buffer import Buffer
from ...tir.expr import Const, Expr, FloorDiv
from ...tir.func import PrimFunc
from ...tir.stmt import Block, IterKind, IterVar
from ...tir.target.target import CpuTarget, Target
from ...tir.visit import found_in, free_vars, loads
from ...tir.work.work import points_of
from ..cost.passes import Sweep, arithmetic_cycles, values_of
from ..legality.recurrence import free_axes
from ..nest import is_reduction, read_indices, readers, targets_of
from ..schedule import Schedule
from ..trace.references import LoopRef
from .elementwise import schedule_pointwise
from .knobs.knobs import choose
from .knobs.threads import share_out
from .rule import Rule
from .scan import panel_axis
from .shape.structure import inline_chains, is_elementwise
from .sweeps import block_cycles, sweep_over

LINES = (1, 2, 4, 8)  # at once, of which a tuner may choose
TOGETHER = 2  # where nothing is said
ACCUMULATORS = (1, 2, 4, 8)  # vectors, of a reduction
DEFAULT_ACCUMULATORS = 4  # enough to hide the latency of a comparison
UNROLLED = 4  # vectors of a line that are written out


@dataclass(frozen=True, slots=True)
class NetworksRule(Rule):
    """A function with a recurrence that looks back at other lines, and that goes row by row up to
    blocks that are one expression per element.
    """

    name: ClassVar[str] = "networks"
    keeps_order: ClassVar[bool] = True

    def matches(self, func: PrimFunc) -> bool:
        """Whether it has the structure."""
        return _rows_of(func) is not None

    def apply(self, sch: Schedule, target: Target) -> None:
        """Take the steps."""
        target = CpuTarget.of(target)
        found = _inlined(sch)
        loops = sch.loops(found.anchor.name)[: found.axes]
        for block in reversed(found.members) if loops else ():
            sch.compute_at(block.name, loops[-1])
        for block in found.blocks:
            _schedule_inside(sch, sch.func.block(block.name), target)
        work = sum(map(points_of, found.blocks))
        rows = [loop for loop in loops if sch.extent(loop) > 1]
        share_out(sch, found.anchor.name, rows, target, work)
        for block in found.others:
            schedule_pointwise(sch, block.name, target)

    def passes(self, func: PrimFunc, target: Target) -> Sequence[Sweep]:
        """One for all that goes row by row, one for each block behind."""
        target = CpuTarget.of(target)
        sch = Schedule(func)
        found = _inlined(sch)
        cycles = sum(_cycles(block, target) for block in found.blocks)
        sweep = sweep_over(sch.func, found.blocks, cycles, target)
        threads = min([sweep.threads, *(it.extent for it in _spatial(found.anchor)[: found.axes])])
        rest = (
            sweep_over(sch.func, (block,), block_cycles(block, target), target)
            for block in found.others
        )
        return [replace(sweep, threads=threads if found.axes else 1), *rest]


def _inlined(sch: Schedule) -> _Rows:
    """What goes row by row once chains are inlined; but for the last block of it, which has the
    rows in their order.
    """
    found = _rows_of(sch.func)
    assert found is not None
    inline_chains(sch, repeated=False, kept={found.anchor.name})
    found = _rows_of(sch.func)
    assert found is not None
    return found


@dataclass(frozen=True, slots=True)
class _Rows:
    """Blocks of a function that share their first `axes` kept axes: `members`, of which each row is
    read where the same row of others is computed, and the `anchor`, which comes last; `others`
    stand behind it.
    """

    members: tuple[Block, ...]
    anchor: Block
    axes: int
    others: tuple[Block, ...]

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The members and the anchor."""
        return *self.members, self.anchor


def _rows_of(func: PrimFunc) -> _Rows | None:
    """As many blocks as go row by row; None where no recurrence looks back at other lines, or what
    is left is not one expression per element.
    """
    axes = [
        _spatial(block).index(line)
        for block in func.blocks
        for line in _lines(block)[:1]
        if panel_axis(block) is not None
    ]
    blocks = func.blocks
    for number in reversed(range(1, len(blocks)) if axes else ()):
        found = _Rows(blocks[:number], blocks[number], min(axes), blocks[number + 1 :])
        if not all(map(is_elementwise, found.others)) or any(b.is_ordered for b in found.others):
            return None
        if _go_together(func, found):
            return found
    return None


def _spatial(block: Block) -> list[IterVar]:
    return [it for it in block.iters if it.kind is IterKind.SPATIAL]


def _lines(block: Block) -> list[IterVar]:
    """The axes along which a recurrence looks back."""
    if not block.is_ordered:
        return []
    free = free_axes(block)
    return [it for it in _spatial(block) if it.extent > 1 and it not in free]


def _go_together(func: PrimFunc, rows: _Rows) -> bool:
    """Whether the blocks may share a loop over the rows."""
    if rows.anchor.is_ordered or is_reduction(rows.anchor):
        return False
    shapes = [[it.extent for it in _spatial(block)[: rows.axes]] for block in rows.blocks]
    if len(shapes[-1]) < rows.axes or any(shape != shapes[-1] for shape in shapes):
        return False
    if any(it.dim is not None for block in rows.members for it in block.iters):
        return False
    return all(
        target not in func.outputs and _is_read_by_row(func, block, target, rows)
        for block in rows.members
        for target in targets_of(block)
    )


def _is_read_by_row(func: PrimFunc, maker: Block, target: Buffer, rows: _Rows) -> bool:
    """Whether a row of a tensor is read where the same row of other members is computed, alone."""
    names = {block.name for block in rows.blocks}
    steps = [n for n, it in enumerate(maker.iters) if it.kind is IterKind.ORDERED]

    def row(at: Sequence[Expr]) -> tuple[Expr, ...]:
        return tuple(index for n, index in enumerate(at) if n not in steps)[: rows.axes]

    return all(
        user.name in names and row(at) == tuple(it.var for it in _spatial(user)[: rows.axes])
        for user in readers(func, target)
        for at in read_indices(user, target)
    )


def _schedule_inside(sch: Schedule, block: Block, target: CpuTarget) -> None:
    """The loops of a block below those over the rows."""
    own = sch.loops(block.name)[-len(block.iters) :]
    loops = dict(zip((it.var for it in block.iters), own, strict=True))
    last = _spatial(block)[-1]
    full = _lanes(block, target)
    lanes = min(full, last.extent)
    if is_reduction(block):
        reduced = [loops[it.var] for it in block.iters if it.kind is IterKind.REDUCE]
        _reduce(sch, block, loops[last.var], reduced, lanes)
        return
    chunk = lane = loops[last.var]
    in_vectors = lanes > 1 and 2 * lanes >= full and last not in _lines(block)
    if in_vectors:
        chunk, lane = sch.split(chunk, (None, lanes), tail="mask")
    for line in _lines(block)[:1]:
        sizes = [size for size in LINES if size <= line.extent]
        together = choose(sch, "lines at once", block.name, sizes, _together(block, line))
        outer, inner = sch.split(loops[line.var], (None, together), tail="partition")
        if in_vectors:
            sch.reorder(outer, chunk, inner, lane)
            if sch.extent(chunk) <= UNROLLED:
                sch.unroll(chunk)
        sch.unroll(inner)
    if in_vectors:
        sch.vectorize(lane)


def _together(block: Block, line: IterVar) -> int:
    """How many lines side by side are made of the same ones: of lines i // n, it is n."""
    own = targets_of(block)
    counts = {
        int(part.b.value)
        for load in loads(block.body)
        if load.buffer in own
        for index in load.indices
        for part in found_in(index, FloorDiv)
        if part.a is line.var and isinstance(part.b, Const)
    }
    return max((n for n in counts if n in LINES and n <= line.extent), default=TOGETHER)


def _reduce(
    sch: Schedule, block: Block, kept: LoopRef, reduced: Sequence[LoopRef], lanes: int
) -> None:
    """A reduction whose kept elements lie side by side: some vectors of them in registers."""
    most = max(1, sch.extent(kept) // lanes)
    sizes = [size for size in ACCUMULATORS if size <= most]
    vectors = choose(sch, "vectors", block.name, sizes, min(most, DEFAULT_ACCUMULATORS))
    outer, vector, lane = sch.split(kept, (None, vectors, lanes), tail="mask")
    sch.reorder(outer, *reduced, vector, lane)
    sch.unroll(vector)
    if lanes > 1:
        sch.vectorize(lane)
    for tensor in targets_of(block):
        sch.stage(block.name, tensor.name, outer, "register")


def _lanes(block: Block, target: CpuTarget) -> int:
    """Lanes of the widest type that a block touches."""
    types = {load.buffer.type for load in loads(block.body)} | {
        tensor.type for tensor in targets_of(block)
    }
    return min(target.lanes(kind) for kind in types)


def _cycles(block: Block, target: CpuTarget) -> float:
    """Of a vector at a time, but where data say what is read. Conditions on the step and the line
    of a recurrence are decided for all lanes.
    """
    looked_up = any(loads(index) for load in loads(block.body) for index in load.indices)
    last = _spatial(block)[-1]
    lanes = 1 if looked_up else min(_lanes(block, target), last.extent)
    if not _lines(block):
        return block_cycles(block, target, lanes)

    def decided(condition: Expr) -> bool:
        return last.var not in free_vars(condition)

    step = sum(arithmetic_cycles(value, target, decided) for value in values_of(block))
    return points_of(block) * max(step, 1.0) / lanes
