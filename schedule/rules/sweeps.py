"""What blocks cost on a CPU, from what they are, before any step is taken: for rules that can tell
what becomes of a block.

Arithmetic goes in vectors where a rule runs them along a contiguous axis, one by one for the rest;
it is shared out over the threads when it is long enough. Each tensor moves once.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...tir.buffer import Buffer
from ...tir.func import PrimFunc
from ...tir.stmt import Block, IterKind
from ...tir.target.target import CpuTarget
from ...tir.visit import loads
from ...tir.work.work import block_work, points_of
from ..cost.passes import FORWARDING, LATENCY, Sweep, arithmetic_cycles, values_of
from ..legality.recurrence import free_axes
from ..nest import is_reduction, targets_of
from .knobs.lanes import transposed_lanes, vector_lanes
from .knobs.threads import SERIAL_ELEMENTS
from .scan import CHAINS, panel_axis
from .shape.last_axis import turned_axis
from .shape.structure import is_elementwise
from .shape.windows import is_window


def sweep_over(func: PrimFunc, blocks: Sequence[Block], cycles: float, target: CpuTarget) -> Sweep:
    """One sweep that computes blocks, the last of which makes its result."""
    inside = {target for block in blocks[:-1] for target in targets_of(block)}
    read: dict[Buffer, int] = {}
    for block in blocks:
        for buffer, count in block_work(block).read:
            read[buffer] = max(count, read.get(buffer, 0))
    fixed = set(func.constants)
    moved = block_work(blocks[-1]).written
    moved += sum(n for buffer, n in read.items() if buffer not in fixed | inside)
    constant = sum(n for buffer, n in read.items() if buffer in fixed)
    points = sum(map(points_of, blocks))
    rows = max((a.extent for a in blocks[0].iters if a.kind is IterKind.SPATIAL), default=1)
    threads = min(target.threads, rows) if points >= SERIAL_ELEMENTS else 1
    return Sweep(cycles, threads, moved, constant)


def block_cycles(block: Block, target: CpuTarget, lanes: int = 0) -> float:
    """Cycles of a block that is no register tile; lanes: of its vectors, where a rule has its own
    way with it.
    """
    lanes = lanes or _lanes(block, target)
    values = values_of(block)
    chains = (CHAINS if free_axes(block) else 1) if block.is_ordered else 0
    own = targets_of(block)
    read = sum(1 for load in loads(block.body) if load.buffer not in own)
    step = max(sum(arithmetic_cycles(value, target) for value in values), read / 2, 1.0)
    if is_reduction(block) and lanes == 1:
        step = max(step, LATENCY)
    if chains and lanes == 1:
        step = max(step, (LATENCY + FORWARDING) / chains)
    return points_of(block) * step / lanes


def _lanes(block: Block, target: CpuTarget) -> int:
    if is_elementwise(block) and turned_axis(block) is not None:
        lanes = transposed_lanes(block, target)  # elements one by one where it is 1
        return lanes // max(1, lanes.bit_length() - 1)  # a shuffle of each vector for each bit
    vectors = panel_axis(block) is not None if block.is_ordered else is_window(block)
    return vector_lanes(block, target) if vectors else 1
