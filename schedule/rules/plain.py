"""Rule for what every other rule is refused: the plain nest of a function. It is slow and asks
nothing of the function: on a CPU it takes no step, on a GPU a thread computes each element.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...tir.func import PrimFunc
from ...tir.target.target import Target
from ..schedule import Schedule
from .gpu.elementwise import schedule_points
from .rule import Rule


@dataclass(frozen=True, slots=True)
class PlainRule(Rule):
    """Any function, block by block, as it is defined."""

    name: ClassVar[str] = "plain"
    keeps_order: ClassVar[bool] = True

    def matches(self, func: PrimFunc) -> bool:
        """Always."""
        return True

    def apply(self, sch: Schedule, target: Target) -> None:
        """Take the steps that the target cannot do without."""
        if not target.has_grid:
            return
        for name in sch.blocks():
            schedule_points(sch, name)
