"""The analytical time of a function on a GPU: seconds from the Target alone, to choose between
alternatives.

What is computed row by row, and a reduction with what is pointwise behind it, is one kernel; every
other block is one of its own, but for what only moves elements for another to read, and what
depends on constants alone. A kernel takes as long as the slower of its arithmetic, at the rate of
the architecture's largest board, and its traffic, each tensor once, at the bandwidth of that
board's memory; and what it costs to start it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..tir.buffer import Buffer
from ..tir.func import PrimFunc
from ..tir.stmt import Block
from ..tir.target import Target
from ..tir.visit import loads
from ..tir.work import block_operations, block_work
from .nest import is_reduction, targets_of
from .rules.row_groups import row_groups
from .rules.structure import inline_chains, pointwise_output
from .schedule import Schedule

KERNEL_SECONDS = 2.5e-6  # from one kernel of a graph to the next that waits for it


@dataclass(frozen=True, slots=True)
class Rates:
    """Nominal figures of an architecture's largest board: of float32 without tensor cores, and of
    its memory.
    """

    gflops: float
    gb_per_s: float


RATES = {
    "sm_80": Rates(19.5e3, 2039),
    "sm_86": Rates(40.0e3, 1008),
    "sm_89": Rates(91.6e3, 1008),
    "sm_90": Rates(67e3, 4800),
    "sm_90a": Rates(67e3, 4800),
    "sm_100": Rates(80e3, 8000),
    "sm_120": Rates(125e3, 1792),
}


def grid_seconds(func: PrimFunc, target: Target) -> float:
    """Seconds that a function takes on a GPU."""
    sch, rates = Schedule(func), RATES[target.isa]
    inline_chains(sch, repeated=False)
    return sum(_kernel_seconds(blocks, rates) for blocks in _kernels(sch.func))


def _kernels(func: PrimFunc) -> Iterator[tuple[Block, ...]]:
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


def _kernel_seconds(blocks: Sequence[Block], rates: Rates) -> float:
    inside = {target for block in blocks[:-1] for target in targets_of(block)}
    done = [block_work(block) for block in blocks]
    read: dict[Buffer, int] = {}
    for work in done:
        for buffer, count in work.read:
            read[buffer] = max(count, read.get(buffer, 0))
    moved = done[-1].written + sum(n for buffer, n in read.items() if buffer not in inside)
    flops = sum(work.operations for work in done)
    return KERNEL_SECONDS + max(flops / (rates.gflops * 1e9), moved / (rates.gb_per_s * 1e9))
