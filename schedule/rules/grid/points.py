"""What any block of a GPU's rule may do: a thread computes an element, all alone."""

from __future__ import annotations

from ...library import deal_out
from ...nest import is_reduction, targets_of
from ...schedule import Schedule
from ..questions import ask

THREADS = (64, 128, 256, 512)
DEFAULT_THREADS = 256


def schedule_points(sch: Schedule, name: str) -> None:
    """Let each thread compute one element of a block; a reduction in order, in a register."""
    block = sch.func.block(name)
    deal_out(sch, name, ask(sch, "threads of a block", name, THREADS, DEFAULT_THREADS))
    if is_reduction(block):
        thread = sch.loops(name)[1]
        for tensor in targets_of(block):
            sch.stage(name, tensor.name, thread, "register")
