"""What branches and loops leave to be decided, repeated and taken in is made less."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..ir.ir import Graph, has_regions
from .branch_taking import BranchTaking
from .constant_folding import ConstantFolding
from .invariant_hoisting import InvariantHoisting
from .loop_unrolling import LoopUnrolling
from .region_inputs import RegionInputs


@dataclass(frozen=True, slots=True)
class ControlFlow:
    """Tell regions the constants around them; take the branches that constants decide for; unroll
    short loops; move out of loops what does not depend on the iteration; fold what is constant now.
    """

    keeps_rounding: ClassVar[bool] = True
    concerns = staticmethod(has_regions)

    def __call__(self, graph: Graph) -> Graph:
        for one in (
            RegionInputs(),
            BranchTaking(),
            LoopUnrolling(),
            InvariantHoisting(),
            # constants of regions that are ones of this graph now
            ConstantFolding(),
        ):
            graph = one(graph)
        return graph
