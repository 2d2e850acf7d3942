"""Weights that a kernel computes of something smaller, a panel at a time, in place of packing them
when it is built.
"""

from __future__ import annotations

from ....tir.buffer import Buffer
from ....tir.expr import Const, FloorDiv, FloorMod
from ....tir.func import PrimFunc
from ....tir.stmt import Block
from ....tir.target.target import CpuTarget
from ....tir.visit import loads, walk
from ...nest import fixed_tensors, readers, target_of, writers
from ...schedule import Schedule
from ...trace.references import LoopRef
from ..elementwise import schedule_pointwise
from ..shape.structure import Contraction, is_pointwise
from .packing import pack_columns

SMALLER = 2  # times, what weights are made of: else they are kept as they are made
MOST_STEPS = 16  # of a word, that are written out


def maker_of(func: PrimFunc, found: Contraction) -> Block | None:
    """The block that computes the weights [..., column] of a product, element by element, of
    constants that are much smaller, for this product alone; None where there is none.
    """
    if found.weight.indices[-1] is not found.vector.var or found.batch:
        return None
    return made_of_less(func, found.weight.buffer, found.block)


def made_of_less(func: PrimFunc, weights: Buffer, user: Block) -> Block | None:
    """The block that computes a tensor, element by element, of constants that are much smaller, for
    one block alone; None where there is none.
    """
    made = writers(func, weights)
    if weights not in func.allocations or len(made) != 1 or not is_pointwise(made[0]):
        return None
    if readers(func, weights) != (user,):
        return None
    read = {load.buffer for load in loads(made[0].body)}
    size = sum(buffer.size * buffer.type.bytes for buffer in read)
    small = SMALLER * size <= weights.size * weights.type.bytes
    return made[0] if small and read <= fixed_tensors(func) else None


def make_panels(sch: Schedule, maker: Block, panel: LoopRef, width: int, target: CpuTarget) -> None:
    """Compute the weights of a panel, or of a block of it, where the loop comes to it. Steps that
    are read out of one word are written out, so that it is loaded once. Where there is one panel
    alone, it is made when the kernel is built, and kept.
    """
    if sch.extent(panel) == 1:
        schedule_pointwise(sch, maker.name, target)
        return
    columns = maker.iters[-1].var
    found = (load.buffer for load in loads(maker.body) if load.indices[-1] is columns)
    read = sorted(
        dict.fromkeys(found),
        key=lambda buffer: (-buffer.size * buffer.type.bytes, str(buffer.type)),
    )
    pack_columns(sch, ((maker.name, buffer) for buffer in read), width)
    *_, steps, column = sch.compute_at(maker.name, panel)
    sch.set_scope(target_of(maker).name, "thread")
    lanes = min(width, target.lanes(target_of(maker).type))
    vectors, lane = sch.split(column, (None, lanes), tail="mask")
    together = steps_of_word(maker)
    if together > 1 and sch.extent(steps) % together == 0:
        steps, inside = sch.split(steps, (None, together))
        sch.reorder(steps, vectors, inside, lane)
        sch.unroll(inside)
    sch.vectorize(lane)


def steps_of_word(maker: Block) -> int:
    """Steps that one index of what is read stands for: the least number that divides one."""
    steps = maker.iters[0].var
    found = [
        int(node.b.value)
        for node in walk(maker.body)
        if isinstance(node, FloorDiv | FloorMod) and node.a is steps
        if isinstance(node.b, Const)
    ]
    return min((count for count in found if count <= MOST_STEPS), default=1)
