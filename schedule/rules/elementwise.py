"""Rule for pointwise blocks and data movement: one pass, rows in parallel, the last axis in
vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...tir.func import PrimFunc
from ...tir.stmt import Block
from ...tir.target import Target
from ...tir.visit import loads
from ..errors import ScheduleError
from ..nest import targets_of
from ..references import LoopRef
from ..schedule import Schedule
from .structure import inline_chains, is_elementwise

SERIAL_ELEMENTS = 4096  # below about 5 us of work, a barrier costs more than a second thread brings
VECTORS_PER_CHUNK = 64


@dataclass(frozen=True, slots=True)
class ElementwiseRule:
    """Every block is one expression per element."""

    name: str = "elementwise"

    def matches(self, func: PrimFunc) -> bool:
        """Whether all blocks are pointwise."""
        return all(map(is_elementwise, func.blocks))

    def apply(self, sch: Schedule, target: Target) -> None:
        """Take the steps."""
        inline_chains(sch)
        for name in sch.blocks():
            schedule_pointwise(sch, name, target)


def schedule_pointwise(sch: Schedule, name: str, target: Target) -> None:
    """Vectorise and parallelise a pointwise block in a nest of its own at the root."""
    block = sch.func.block(name)
    loops = sch.loops(name)
    if not loops:
        return
    lanes = vector_lanes(block, target)
    last = loops[-1]
    parallel = targets_of(block)[0].size >= SERIAL_ELEMENTS
    outer = [loop for loop in loops[:-1] if sch.extent(loop) > 1]
    if lanes > 1 and sch.extent(last) >= lanes // 2:
        if outer:
            _, lane = sch.split(last, (None, lanes), tail="mask")
        else:
            chunk, _, lane = sch.split(last, (None, VECTORS_PER_CHUNK, lanes), tail="mask")
            outer = [chunk]
        sch.vectorize(lane)
    elif not outer:
        outer = [last]
    if parallel:
        parallelize(sch, outer, target)


def parallelize(sch: Schedule, outer: Sequence[LoopRef], target: Target) -> None:
    """Run the first of nested loops in parallel, joined with the next where it is too short to
    share out.
    """
    first = outer[0]
    uneven = sch.extent(first) % target.threads != 0 and sch.extent(first) < 4 * target.threads
    if uneven and len(outer) > 1:
        first = fused_or_first(sch, first, outer[1])
    sch.parallel(first)


def fused_or_first(sch: Schedule, first: LoopRef, second: LoopRef) -> LoopRef:
    """The two loops joined, where one is directly inside the other; else the first."""
    try:
        return sch.fuse(first, second)
    except ScheduleError:
        return first


def vector_lanes(block: Block, target: Target) -> int:
    """Lanes for a block: those of its element type when all that it touches are floats of one size,
    indices that are data apart; else 1. What it computes along with a float may be an integer, as a
    place is: the widest counts.
    """
    inside = {inner for load in loads(block.body) for i in load.indices for inner in loads(i)}
    own = {buffer.type for buffer in targets_of(block)}
    types = own | {load.buffer.type for load in loads(block.body) if load not in inside}
    floats = {kind for kind in types if kind.is_float}
    beside = types - floats if len(own) > 1 else set()
    if types != floats | beside or len({kind.bits for kind in floats}) != 1:
        return 1
    return min(target.lanes(kind) for kind in types)
