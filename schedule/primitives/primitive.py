"""Primitive: one step that rewrites a loop nest, declared once.

    SWIZZLE = Primitive(
        "swizzle", swizzle, {"buffer": TENSOR}, gives=nothing, draw=draw_intermediate
    )

Recording, replay, steps as lines and random steps all follow from the declaration; the table of
primitives (table.py) is what the modules of the folders here declare. `Schedule` has a method of
the same name for each, which says how people call it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from ...tir.target.target import Target
from ..drawing import Draw
from ..nest import Rewrite
from ..trace.references import LoopRef
from .parameters import StepSite
from .step_form import StepForm

Made = TypeVar("Made", covariant=True)
LoopRefs = tuple[LoopRef, ...]
BlockNames = tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Primitive(StepForm[Rewrite], Generic[Made]):
    """A step that rewrites a function.

    function: the rewrite, which resolves nothing, asks legality and builds. It gets the function
    and the arguments by name, each as its kind resolves it.
    gives: what a caller gets of the loops and the blocks that the step made.
    draw: random arguments; None where random schedules leave the primitive out.
    weight: how often it is drawn, beside one that is drawn once.
    asks_target: the rewrite gets the `target` of the schedule, too.
    """

    gives: Callable[[LoopRefs, BlockNames], Made]
    draw: Draw | None
    weight: int = 1
    asks_target: bool = False

    def rewrite(
        self, site: StepSite, arguments: Mapping[str, object], target: Target | None
    ) -> Rewrite:
        """The function after the step, and what it made. Raises: ScheduleError."""
        resolved = {
            name: kind.resolve(arguments[name], site) for name, kind in self.parameters.items()
        }
        if self.asks_target:
            resolved["target"] = target
        return self.function(site.func, **resolved)


def nothing(loops: LoopRefs, blocks: BlockNames) -> None:
    """The caller gets nothing: what there was goes on under its handles and names."""


def one_loop(loops: LoopRefs, blocks: BlockNames) -> LoopRef:
    """The caller gets the loop that was made."""
    return loops[0]


def all_loops(loops: LoopRefs, blocks: BlockNames) -> LoopRefs:
    """The caller gets the loops that were made."""
    return loops


def one_block(loops: LoopRefs, blocks: BlockNames) -> str:
    """The caller gets the block that was made."""
    return blocks[0]


def all_blocks(loops: LoopRefs, blocks: BlockNames) -> BlockNames:
    """The caller gets the blocks that were made."""
    return blocks
