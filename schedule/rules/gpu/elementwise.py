"""What any block of a GPU's rule may do: a thread computes an element all alone, or some neighbours
that go to memory at once.
"""

from __future__ import annotations

import math

from ....tir.stmt import Block, IterKind
from ....tir.visit import loads
from ...library import deal_out
from ...nest import is_reduction, readers, targets_of
from ...schedule import Schedule
from ..knobs.knobs import choose, choose_flag
from .transpose import is_turned, schedule_turned

THREADS = (64, 128, 256, 512)
DEFAULT_THREADS = 256
VECTOR_BYTES = 16  # that a thread moves at once
FEWEST_VECTORS = 1 << 13  # that keep a GPU busy
MOST_APART = 65535  # blocks along an axis of a grid but the first


def schedule_points(sch: Schedule, name: str) -> None:
    """Let each thread compute one element of a block, or a vector of neighbours; a reduction in
    order, in a register; a transposition by tiles.
    """
    block = sch.func.block(name)
    turned = not is_reduction(block) and is_turned(sch, block)
    if turned and choose_flag(sch, "tiles in shared memory", name, True):
        schedule_turned(sch, name)
        return
    threads = choose(sch, "threads of a block", name, THREADS, DEFAULT_THREADS)
    most = 1 if is_reduction(block) else neighbours(block)
    default = most if targets_of(block)[0].size >= most * FEWEST_VECTORS else 1
    lanes = choose(sch, "neighbours of a thread", name, (1, most), default)
    deal_out(sch, name, threads, lanes)
    if is_reduction(block):
        thread = sch.loops(name)[1]
        for tensor in targets_of(block):
            unread = tensor not in sch.func.outputs and not readers(sch.func, tensor)
            if unread and not tensor.shape:
                sch.set_scope(tensor.name, "register")  # it is the thread's own already
            else:
                sch.stage(name, tensor.name, thread, "register")


def neighbours(block: Block) -> int:
    """How many elements along its last axis a block may touch at once: a vector of the widest type,
    as far as the axis is made of whole ones.
    """
    spatial = [it.extent for it in block.iters if it.kind is IterKind.SPATIAL]
    inside = {inner for load in loads(block.body) for i in load.indices for inner in loads(i)}
    types = {load.buffer.type for load in loads(block.body) if load not in inside}
    types |= {tensor.type for tensor in targets_of(block)}
    lanes = VECTOR_BYTES // max(kind.bytes for kind in types)
    return math.gcd(lanes, spatial[-1]) if spatial else 1
