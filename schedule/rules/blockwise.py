"""Rule of last resort: every block on its own, each as well as its structure allows. Softmax and
its kin come here.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...tir.func import PrimFunc
from ...tir.stmt import Block, IterKind
from ...tir.target import Target
from ..recurrence import is_ordered
from ..schedule import Schedule
from .elementwise import SERIAL_ELEMENTS, parallelize, schedule_pointwise
from .scan import schedule_scan
from .structure import inline_chains, is_elementwise


@dataclass(frozen=True, slots=True)
class BlockwiseRule:
    """Any function."""

    name: str = "blockwise"

    def matches(self, func: PrimFunc) -> bool:
        """Always."""
        return True

    def apply(self, sch: Schedule, target: Target) -> None:
        """Take the steps."""
        inline_chains(sch)
        for block in sch.func.blocks:
            if is_elementwise(block):
                schedule_pointwise(sch, block.name, target)
            elif is_ordered(block):
                schedule_scan(sch, block, target)
            else:
                schedule_rows(sch, block, target)


def schedule_rows(sch: Schedule, block: Block, target: Target) -> None:
    """Share out the kept axes of a reduction; each element is reduced by one thread, in order."""
    loops = sch.loops(block.name)
    spatial = [
        loop
        for loop, it in zip(loops, block.iters, strict=True)
        if it.kind is IterKind.SPATIAL and it.extent > 1
    ]
    work = 1
    for it in block.iters:
        work *= it.extent
    if spatial and work >= SERIAL_ELEMENTS:
        parallelize(sch, spatial, target)
