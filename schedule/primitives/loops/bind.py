"""Primitive bind: iterations of a loop as the blocks of a grid, or as the threads of a block."""

from __future__ import annotations

from dataclasses import replace

from ....tir.buffer import Buffer
from ....tir.expr import Var
from ....tir.func import PrimFunc
from ....tir.stmt import ForKind
from ....tir.target.target import Target
from ...legality import dependence, grid
from ...legality.loops import check_independent, check_not_mirrored, check_serial
from ...nest import Rewrite, allocate_below, loop_of, replace_loop
from ..parameters import LOOP, PLAIN
from ..primitive import Primitive, nothing


def bind(func: PrimFunc, loop: Var, axis: str, target: Target | None) -> Rewrite:
    """Run each iteration of a loop as the block, or the thread, of that number along `axis`.

    for i in range(n): s   ->   for i in bound(n, axis="threadIdx.x"): s

    Loops of one axis in different places are the same threads; a nest that has no loop of an axis
    is run by the first thread along it. Lowering puts a barrier where threads depend on each other.
    Threads along threadIdx.x of a loop that a block reduces over join their values in a tree: a sum
    of 32 is one of 16 sums of two, 16 apart, and so on. Where the result is kept in registers, each
    of them has it.
    Requires: the loop is serial; loops of blocks stand outermost, no loop stands inside another one
    of its axis; no two iterations touch one element, one of them writing, but for a block that
    reduces over this loop alone, of 32, 16, 8, 4 or 2 iterations; the block of threads has no more
    of them than the target allows. Raises: ScheduleError.
    """
    node = loop_of(func, loop)
    grid.check_axis(func, node, axis)
    check_serial(func, node, "bind")
    check_not_mirrored(func, node, "bind")
    grid.check_place(func, node, axis)
    private: tuple[Buffer, ...] = ()
    if not grid.joins(func, node, axis):
        private = check_independent(func, node, "bind")
    dependence.check_reads_own(func, node, "bind")
    changed = replace_loop(func, node, replace(node, kind=ForKind.BOUND, axis=axis, annotations=()))
    grid.check_limits(changed, loop_of(changed, loop), target)
    for tensor in private:
        changed = allocate_below(changed, loop, tensor)
    return Rewrite(changed)


BIND = Primitive(
    "bind", bind, {"loop": LOOP, "axis": PLAIN}, gives=nothing, draw=None, asks_target=True
)
