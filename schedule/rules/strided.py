"""Rule for windows that slide along the contiguous axis in steps: pooling with channels first.

Lanes are neighbouring windows, whose elements a gather loads: a window's own row is too short to
fill a vector. A few rows of windows stay in registers and share the rows that they overlap in.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...tir.analysis.linear import linear
from ...tir.buffer import Load
from ...tir.expr import Var
from ...tir.func import PrimFunc
from ...tir.stmt import Block, IterKind
from ...tir.target.target import CpuTarget, Target
from ...tir.visit import free_vars, loads
from ...tir.work.work import points_of
from ..nest import targets_of
from ..schedule import Schedule
from .anchored import AnchoredRule, schedule_others
from .knobs.lanes import vector_lanes
from .reduction import schedule_window
from .rows import RowsRule
from .shape.structure import is_plain_store, pointwise_output, reductions
from .sweeps import block_cycles

SHORT_ROW = 7  # elements: vectors along a longer row of a window are faster than gathers
MOST_STEP = 7  # elements from a window to the next: beyond that each lane has a line of its own
GATHER_CYCLES = 0.5  # of each lane


@dataclass(frozen=True, slots=True)
class StridedRule(AnchoredRule):
    """One reduction of windows that move several elements as the last output axis advances,
    pointwise blocks around it; without vectors, it goes row by row.
    """

    name: ClassVar[str] = "strided"
    keeps_order: ClassVar[bool] = True
    takes_padding: ClassVar[bool] = True

    def is_for(self, func: PrimFunc, anchor: Block) -> bool:
        """Whether the windows are such."""
        return is_strided_window(anchor)

    def apply(self, sch: Schedule, target: Target) -> None:
        """Take the steps."""
        target = CpuTarget.of(target)
        if vector_lanes(reductions(sch.func)[0], target) == 1:
            RowsRule(in_order=self.in_order).apply(sch, target)
            return
        anchor = self.inline(sch)
        schedule_others(sch, (anchor, pointwise_output(sch.func, anchor)), target)
        schedule_window(sch, sch.func.block(anchor.name), target)

    def cycles(self, anchor: Block, target: CpuTarget) -> float:
        """Cycles of its block, with gathers for loads, which the price of a nest has not."""
        lanes = vector_lanes(anchor, target)
        gathers = GATHER_CYCLES * points_of(anchor) if lanes > 1 else 0.0
        return block_cycles(anchor, target, lanes) + gathers


def is_strided_window(block: Block) -> bool:
    """Whether what the block loads moves a few elements in memory, or none, as the last output axis
    advances, and some of it in short windows by more than one.
    """
    spatial = [it for it in block.iters if it.kind is IterKind.SPATIAL]
    if not spatial or not is_plain_store(block, spatial):
        return False
    reduced = {it.var: it.extent for it in block.iters if it.kind is IterKind.REDUCE}
    own, last = targets_of(block), spatial[-1].var
    read = [x for x in (*loads(block.body), *loads(block.counts)) if x.buffer not in own]
    steps = [_step(load, last, reduced) for load in read if load.indices]
    return None not in steps and any(step is not None and step > 1 for step in steps)


def _step(load: Load, last: Var, reduced: Mapping[Var, int]) -> int | None:
    """Elements by which a load moves along `last`; None where it is not for gathers."""
    *front, back = load.indices
    form = linear(back)
    nested = any(last in free_vars(atom) and atom is not last for atom, _ in form.terms)
    if nested or any(last in free_vars(item) for item in front):
        return None
    step = form.coefficient(last)
    row = math.prod(reduced.get(atom, 1) for atom, _ in form.terms if isinstance(atom, Var))
    if step > 1 and row > SHORT_ROW:
        return None
    return step if 0 <= step <= MOST_STEP else None
