"""One reduction with pointwise blocks around it, as the rules for sums of products and for windows
recognise it, and the passes that it takes.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...tir.func import PrimFunc
from ...tir.stmt import Block
from ...tir.target import CpuTarget
from ..cost.passes import Sweep
from ..nest import is_reduction
from ..schedule import Schedule
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
class Anchored:
    """The blocks of a function of one reduction.

    anchor: the reduction; epilogue: the pointwise block that runs on its accumulators, if there is
    one; others: blocks that have nests of their own.
    """

    anchor: Block
    epilogue: Block | None
    others: tuple[Block, ...]


def only_reduction(func: PrimFunc) -> Block | None:
    """The one reduction of a function whose other blocks are pointwise; None for others."""
    anchors = reductions(func)
    pointwise = all(is_pointwise(block) for block in func.blocks if not is_reduction(block))
    return anchors[0] if len(anchors) == 1 and pointwise else None


def only_product(func: PrimFunc) -> Contraction | None:
    """The one reduction of such a function as a sum of products; None for others."""
    anchor = only_reduction(func)
    return None if anchor is None else contraction(anchor)


def anchored(func: PrimFunc) -> Anchored:
    """The blocks of a function of one reduction, by what they are to it."""
    (anchor,) = reductions(func)
    epilogue = pointwise_output(func, anchor)
    others = tuple(b for b in func.blocks if b is not anchor and b is not epilogue)
    return Anchored(anchor, epilogue, others)


def inline_around_windows(sch: Schedule) -> Anchored:
    """Inline chains of pointwise blocks, and the padding of windows. Returns what is left."""
    inline_chains(sch)
    inline_padding(sch)
    return anchored(sch.func)


def anchored_passes(func: PrimFunc, cycles: float, target: CpuTarget) -> list[Sweep]:
    """A pass for each block, the epilogue in that of the reduction, whose arithmetic takes
    `cycles`.
    """
    parts, found = anchored(func), []
    for block in func.blocks:
        if block is parts.anchor and parts.epilogue is not None:
            both = cycles + block_cycles(parts.epilogue, target)
            found.append(sweep_over(func, (block, parts.epilogue), both, target))
        elif block is not parts.epilogue:
            own = cycles if block is parts.anchor else block_cycles(block, target)
            found.append(sweep_over(func, (block,), own, target))
    return found
