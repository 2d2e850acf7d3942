"""Rule for functions that write where data say: a scatter, or a suppression, stays one step, and
what stands around it is scheduled as in rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...tir.extern import ExternFunction
from ...tir.func import PrimFunc
from ...tir.stmt import Block, Extern, IterKind
from ...tir.suppression import SuppressionFunction
from ...tir.target.target import CpuTarget, Target
from ...tir.work.work import points_of
from ..cost.passes import FORWARDING, Sweep
from ..legality.externs import extern_of
from ..nest import is_reduction, targets_of
from ..schedule import Schedule
from .long_sums import cut_axis
from .rows import RowsRule, schedule_rows
from .rule import Rule
from .shape.row_groups import RowGroup

LONG_CHECK = 2048  # indices, of which a maximum is made in parts
OVERLAP = 16  # cycles of a vector of boxes beside one of them
CHECK_PARTS = 16  # of it: enough for threads and vectors


@dataclass(frozen=True, slots=True)
class ScatterRule(Rule):
    """A function of which a block is a scatter or a suppression."""

    name: ClassVar[str] = "scatter"
    keeps_order: ClassVar[bool] = True

    def matches(self, func: PrimFunc) -> bool:
        """Whether a block of it is one."""
        return any(map(_is_step, func.blocks))

    def apply(self, sch: Schedule, target: Target) -> None:
        """Take the steps of the blocks around it."""
        own = CpuTarget.of(target)
        checks = [b for b in sch.func.blocks if is_reduction(b) and points_of(b) >= LONG_CHECK]
        made = [name for block in checks for name in _schedule_check(sch, block, own)]
        RowsRule(in_order=self.in_order).apply_around(sch, target, frozenset(made))

    def passes(self, func: PrimFunc, target: Target) -> Sequence[Sweep]:
        """Those of the blocks around it, and one for each step."""
        found = list(RowsRule(in_order=self.in_order).passes(func, target))
        return found + [step_sweep(b, CpuTarget.of(target)) for b in func.blocks if _is_step(b)]


def _schedule_check(sch: Schedule, block: Block, target: CpuTarget) -> list[str]:
    """Cut a maximum of all indices, where it is one, into parts, which threads share out and
    vectors make. Returns the blocks that have their schedule then.
    """
    if any(it.kind is not IterKind.REDUCE for it in block.iters) or not _is_whole(block):
        return []
    axis = max(block.iters[:-1] or block.iters, key=lambda it: it.extent)
    before = {one.name for one in sch.func.blocks}
    cut = cut_axis(sch, block, axis, min(CHECK_PARTS, axis.extent), target)
    if not cut.scheduled:
        schedule_rows(sch, RowGroup(cut.parts, (), 1), target)
    return [one.name for one in sch.func.blocks if one.name not in before]


def _is_whole(block: Block) -> bool:
    """Whether a reduction is of integers, which keep their value in any order."""
    return all(tensor.type.is_integer for tensor in targets_of(block))


def step_sweep(block: Block, target: CpuTarget) -> Sweep:
    """Of a scatter the copy, of which each element moves once, and each update: one after the
    other, since where one is written the next may be read.
    """
    call = extern_of(block)
    assert call is not None
    if isinstance(call.function, SuppressionFunction):
        return _suppression_sweep(call, target)
    _, updates, places, *_ = call.inputs
    row = updates.size // max(1, places.size)  # neighbours that go to one place
    vectors = -(-row // target.lanes(updates.type)) if row > 1 else 1
    moved = sum(b.size * b.type.bytes for b in (*call.inputs, *call.outputs))
    return Sweep(places.size * (FORWARDING + vectors), 1, moved, 0)


def _suppression_sweep(call: Extern, target: CpuTarget) -> Sweep:
    """Each box beside half of those that may be kept; an eighth of them is looked at."""
    boxes, kept = call.inputs[0], call.outputs[0]
    pairs = boxes.size * min(kept.shape[1], boxes.shape[1]) // 16
    moved = sum(b.size * b.type.bytes for b in (*call.inputs, *call.outputs))
    return Sweep(boxes.size + pairs * OVERLAP // target.lanes(boxes.type), 1, moved, 0)


def _is_step(block: Block) -> bool:
    call = extern_of(block)
    return call is not None and not isinstance(call.function, ExternFunction)
