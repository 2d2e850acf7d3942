"""Rules for one reduction with pointwise blocks around it: sums of products, windows, whole axes.
Such a function takes a pass for each block; what follows the reduction is done in its pass.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...tir.func import PrimFunc
from ...tir.stmt import Block
from ...tir.target.target import CpuTarget, Target
from ..cost.passes import Sweep
from ..nest import is_reduction
from ..schedule import Schedule
from .elementwise import schedule_pointwise
from .rule import Rule
from .shape.structure import (
    Contraction,
    contraction,
    inline_chains,
    is_pointwise,
    pointwise_output,
    reductions,
)
from .shape.windows import inline_padding
from .sweeps import block_cycles, sweep_over


@dataclass(frozen=True, slots=True)
class AnchoredRule(Rule):
    """A rule for functions of one reduction, their anchor, whose other blocks are pointwise.

    takes_padding: the padding of windows is taken into the reduction.
    """

    takes_padding: ClassVar[bool] = False

    @abstractmethod
    def is_for(self, func: PrimFunc, anchor: Block) -> bool:
        """Whether the rule is for such a function with this reduction."""

    @abstractmethod
    def cycles(self, anchor: Block, target: CpuTarget) -> float:
        """Cycles of the arithmetic of the reduction."""

    def matches(self, func: PrimFunc) -> bool:
        """Whether the function has one such reduction."""
        anchor = only_reduction(func)
        return anchor is not None and self.is_for(func, anchor)

    def inline(self, sch: Schedule) -> Block:
        """Inline chains of pointwise blocks. Returns the reduction that is left."""
        inline_chains(sch)
        if self.takes_padding:
            inline_padding(sch)
        (anchor,) = reductions(sch.func)
        return anchor

    def passes(self, func: PrimFunc, target: Target) -> Sequence[Sweep]:
        """One for each block; what follows the reduction runs on its accumulators."""
        target = CpuTarget.of(target)
        sch = Schedule(func)
        anchor = self.inline(sch)
        return anchored_passes(sch.func, anchor, self.cycles(anchor, target), target)


def only_reduction(func: PrimFunc) -> Block | None:
    """The one reduction of a function whose other blocks are pointwise; None for others."""
    anchors = reductions(func)
    pointwise = all(is_pointwise(block) for block in func.blocks if not is_reduction(block))
    return anchors[0] if len(anchors) == 1 and pointwise else None


def only_product(func: PrimFunc) -> Contraction | None:
    """The one reduction of such a function as a sum of products; None for others."""
    anchor = only_reduction(func)
    return None if anchor is None else contraction(anchor)


def schedule_others(sch: Schedule, own: Sequence[Block | None], target: CpuTarget) -> None:
    """Schedule the pointwise blocks that do not belong to the reduction."""
    for block in sch.func.blocks:
        if block not in own and not is_reduction(block):
            schedule_pointwise(sch, block.name, target)


def anchored_passes(func: PrimFunc, anchor: Block, cycles: float, target: CpuTarget) -> list[Sweep]:
    """A pass for each block, the epilogue in that of the reduction, whose arithmetic takes
    `cycles`.
    """
    epilogue, found = pointwise_output(func, anchor), []
    for block in func.blocks:
        if block is anchor and epilogue is not None:
            both = cycles + block_cycles(epilogue, target)
            found.append(sweep_over(func, (block, epilogue), both, target))
        elif block is not epilogue:
            own = cycles if block is anchor else block_cycles(block, target)
            found.append(sweep_over(func, (block,), own, target))
    return found
