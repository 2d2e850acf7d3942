"""Rule for products of many rows with weights that are made of few bits: a panel of weights becomes
floating-point numbers in a cache, then all rows meet it as they meet packed weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ....tir.func import PrimFunc
from ....tir.stmt import Block
from ....tir.target.target import CpuTarget, Target
from ...schedule import Schedule
from ..anchored import AnchoredRule
from ..shape.structure import contraction
from .contraction import product_cycles, schedule_contraction
from .groups import is_grouped
from .made_panels import maker_of


@dataclass(frozen=True, slots=True)
class BlockPanelsRule(AnchoredRule):
    """One sum of products whose weights are computed of smaller constants, pointwise blocks around
    it.
    """

    name: ClassVar[str] = "block panels"
    keeps_order: ClassVar[bool] = True

    def is_for(self, func: PrimFunc, anchor: Block) -> bool:
        """Whether it sums products with such weights."""
        found = contraction(anchor)
        return found is not None and not is_grouped(found) and maker_of(func, found) is not None

    def apply(self, sch: Schedule, target: Target) -> None:
        """Take the steps."""
        target = CpuTarget.of(target)
        found = contraction(self.inline(sch))
        assert found is not None
        maker = maker_of(sch.func, found)
        schedule_contraction(sch, found, target, in_order=self.in_order, maker=maker)

    def cycles(self, anchor: Block, target: CpuTarget) -> float:
        """Cycles of the best register tile."""
        found = contraction(anchor)
        assert found is not None
        return product_cycles(found, target)
