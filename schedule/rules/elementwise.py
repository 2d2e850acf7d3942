"""Rule for pointwise blocks and data movement: one pass, rows in parallel, the last axis in
vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...tir.conditions import conjuncts
from ...tir.expr import LE, LT, Select, Var
from ...tir.func import PrimFunc
from ...tir.linear import linear
from ...tir.stmt import Block
from ...tir.target import Target
from ...tir.visit import free_vars, loads, walk
from ..errors import ScheduleError
from ..nest import targets_of
from ..references import LoopRef
from ..schedule import Schedule
from .structure import inline_chains, is_elementwise

SERIAL_ELEMENTS = 4096  # below about 5 us of work, a barrier costs more than a second thread brings
VECTORS_PER_CHUNK = 64
MOST_TURNS = 8


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
    points = turning_points(block) if lanes > 1 else ()
    for piece in sch.loop_partition(last, points) if points else (last,):
        around = list(outer)
        if lanes > 1 and sch.extent(piece) >= lanes // 2:
            if outer:
                _, lane = sch.split(piece, (None, lanes), tail="mask")
            else:
                chunk, _, lane = sch.split(piece, (None, VECTORS_PER_CHUNK, lanes), tail="mask")
                around = [chunk]
            sch.vectorize(lane)
        elif not outer:
            around = [piece]
        if parallel and not outer:
            parallelize(sch, around, target)
    if parallel and outer:
        parallelize(sch, outer, target)


def turning_points(block: Block) -> tuple[int, ...]:
    """Where, along the last axis of a block, the conditions of its selects change, if that is at
    a few places: between them no vector needs a mask.
    """
    axis = block.iters[-1]
    found = set()
    for node in walk(block.body):
        if not isinstance(node, Select):
            continue
        for condition in conjuncts(node.condition):
            if isinstance(condition, LT | LE) and free_vars(condition) == {axis.var}:
                found.add(_turn(condition, axis.var))
    return (
        tuple(sorted(n for n in found if 0 < n < axis.extent)) if len(found) <= MOST_TURNS else ()
    )


def _turn(condition: LT | LE, var: Var) -> int:
    """The first value of a variable for which a condition on it alone is not what it was before;
    0 where it does not say.
    """
    form = linear(condition.a) - linear(condition.b)
    step = form.coefficient(var)
    if step == 0 or form.without(var).terms:
        return 0
    below = form.constant + isinstance(condition, LT)  # step * var + below <= 0
    return -below // step + 1 if step > 0 else -(-below // -step)


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
    """Lanes for a block: those of the widest type that it touches, where all of them are floats, or
    integers of 32 or 64 bits; else 1. Indices that are data do not count; beside its floats a block
    may store integers, as places are.
    """
    inside = {inner for load in loads(block.body) for i in load.indices for inner in loads(i)}
    types = {buffer.type for buffer in targets_of(block)}
    types |= {load.buffer.type for load in loads(block.body) if load not in inside}
    wide = all(kind.is_float or (kind.is_integer and kind.bits >= 32) for kind in types)
    floats = {kind.bits for kind in types if kind.is_float}
    return min(target.lanes(kind) for kind in types) if wide and len(floats) <= 1 else 1
