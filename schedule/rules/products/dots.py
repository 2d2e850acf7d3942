"""Rule for sums of products of narrow types that one instruction takes in groups: bytes in int32,
bfloat16 in float32.

The nest is that of other contractions. The innermost reduction axis is cut into the points that an
instruction adds to a lane; the weights are packed so that these lie together, [N/w][K/p][w][p], or
are words of them, which another block makes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ....tir.analysis.linear import linear
from ....tir.dtype import dtype
from ....tir.func import PrimFunc
from ....tir.instructions.instructions import Instruction
from ....tir.instructions.tensor_intrinsics import TENSOR_INTRINSICS, TensorIntrinsic
from ....tir.stmt import Block
from ....tir.target.target import CpuTarget, Target
from ....tir.visit import free_vars
from ...cost.nest import nest_passes
from ...cost.passes import Sweep
from ...nest import fixed_tensors, target_of, targets_of
from ...schedule import Schedule
from ..anchored import anchored_passes
from ..reduction import schedule_window
from ..rule import Rule
from ..shape.structure import Contraction, contraction, inline_chains, is_pointwise, reductions
from ..shape.windows import is_window
from .contraction import product_cycles, schedule_contraction
from .groups import has_panels, is_grouped
from .packing import PACK_ROWS
from .sum_blocks import reduction_order

_OF_BYTES = (dtype("uint8"), dtype("int16"))  # operands that hold any byte of a word


@dataclass(frozen=True, slots=True)
class DotsRule(Rule):
    """One contraction whose operands are widened to the type of the sum, in an instruction;
    pointwise blocks around it, and reductions of constants alone.
    """

    name: ClassVar[str] = "dots"
    keeps_order: ClassVar[bool] = True
    instructions: ClassVar[Mapping[str, Instruction]] = TENSOR_INTRINSICS

    def matches(self, func: PrimFunc) -> bool:
        """Whether one of the instructions computes the function's one reduction."""
        anchors, others = _anchors(func)
        if len(anchors) != 1 or not all(map(is_pointwise, others)):
            return False
        found = contraction(anchors[0], widened=True)
        return found is not None and self._unit(func, found) is not None

    def apply(self, sch: Schedule, target: Target) -> None:
        """Take the steps."""
        target = CpuTarget.of(target)
        inline_chains(sch)
        ((anchor,), _) = _anchors(sch.func)
        fixed = [block.name for block in reductions(sch.func) if block is not anchor]
        found = contraction(anchor, widened=True)
        assert found is not None
        unit = self._unit(sch.func, found)
        assert unit is not None
        schedule_contraction(sch, found, target, unit=unit)
        for block in map(sch.func.block, fixed):
            if is_window(block):
                schedule_window(sch, block, target, alone=True)

    def passes(self, func: PrimFunc, target: Target) -> Sequence[Sweep]:
        """Those of its nest; of floats one for each block, what follows the reduction within it, at
        the rate that a processor has for such products.
        """
        cpu, sch = CpuTarget.of(target), Schedule(func)
        inline_chains(sch)
        ((anchor,), _) = _anchors(sch.func)
        if target_of(anchor).type.is_integer:
            return nest_passes(self.schedule(func, target).func, cpu)
        found = contraction(anchor, widened=True)
        unit = None if found is None else self._unit(sch.func, found)
        assert found is not None
        assert unit is not None
        cycles = product_cycles(found, cpu, unit.points) * cpu.fma_per_cycle / cpu.bf16_per_cycle
        return anchored_passes(sch.func, anchor, cycles, cpu)

    def _unit(self, func: PrimFunc, found: Contraction) -> TensorIntrinsic | None:
        """The instruction for a contraction whose data it can read as they are and whose weights
        are worth packing.
        """
        rows = math.prod(axis.extent for axis in found.rows)
        packs = rows >= PACK_ROWS or found.weight.buffer in fixed_tensors(func)
        if not (packs or found.in_word) or not found.reduced or not _is_walked(found):
            return None
        fitting = [TENSOR_INTRINSICS[n] for n in self.units if _fits(n, found)]
        if is_grouped(found):
            whole = found.total.is_integer and not found.in_word
            fitting = [unit for unit in fitting if whole and has_panels(found, unit)]
        return next((unit for unit in fitting if not unit.pairs_rows or _pays(unit, found)), None)


def _anchors(func: PrimFunc) -> tuple[list[Block], list[Block]]:
    """The reductions of what changes with a call, and the blocks that are no reductions."""
    fixed = fixed_tensors(func)
    found = reductions(func)
    anchors = [block for block in found if not fixed.issuperset(targets_of(block))]
    return anchors, [block for block in func.blocks if block not in found]


def _fits(name: str, found: Contraction) -> bool:
    """Whether an instruction sums products of these types."""
    func = TENSOR_INTRINSICS[name].define(TENSOR_INTRINSICS[name].lanes[0])
    wanted = [buffer.type for buffer in func.inputs]
    if func.outputs[0].type != found.total:
        return False
    if found.in_word:
        takes = wanted[0] in _OF_BYTES and wanted[1] == found.data.dtype
        return takes and TENSOR_INTRINSICS[name].points == found.in_word
    own = [found.data.dtype, found.weight.dtype]
    return own in (wanted, wanted[::-1])


def _pays(unit: TensorIntrinsic, found: Contraction) -> bool:
    """Whether an instruction for pairs of rows takes more products than one for a row: there are
    two, their elements are its first operand, and each sum is made of whole groups of points.
    """
    rows = math.prod(axis.extent for axis in found.rows)
    first = unit.define(unit.lanes[0]).inputs[0].type
    (steps,) = (it.extent for it in found.reduced if it.var is reduction_order(found)[-1])
    return rows > 1 and found.data.dtype == first and steps % unit.points == 0


def _is_walked(found: Contraction) -> bool:
    """Whether the data of neighbouring points of the innermost reduction axis are neighbours."""
    point = reduction_order(found)[-1]
    *front, last = found.data.indices
    form = linear(last)
    inside = [atom for atom, _ in form.terms if point in free_vars(atom)]
    apart = any(point in free_vars(item) for item in front)
    return not apart and inside == [point] and form.coefficient(point) == 1
