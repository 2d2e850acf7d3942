"""Rule for data of bytes times weights of few bits: sums of integers of a block in an instruction,
each multiplied with the scales of its block, then added up.

The nest is that of `block_rows.py`, where there are few rows and where there are many: a tile keeps
the sums of a block and what they add up to in registers, and words of weights become operands by a
shift and a mask, once for all rows of the tile. Levels, scales and zeros are packed in panels of a
tile's width when a kernel is built.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from ....tir.analysis.linear import linear
from ....tir.buffer import Load
from ....tir.expr import BitAnd, Cast
from ....tir.func import PrimFunc
from ....tir.instructions.instructions import Instruction
from ....tir.instructions.tensor_intrinsics import TENSOR_INTRINSICS, TensorIntrinsic
from ....tir.instructions.word_bits import WORD_BITS, word_bits
from ....tir.stmt import Block, IterKind
from ....tir.target.target import CpuTarget, Target
from ....tir.visit import free_vars, loads
from ...nest import fixed_tensors, target_of
from ...schedule import Schedule
from ...trace.references import LoopRef
from ..knobs.tiles import Tile
from ..rule import Rule
from ..shape.structure import (
    factors_of,
    inline_chains,
    is_pointwise,
    reductions,
)
from .scaled_sums import FEW_PANELS, is_added_up, spatial_axes, tile_scaled_sums

TILE_ROWS = 8  # at most
MOST_VECTORS = 4  # of a tile
OTHERS = 6  # registers beside sums: words, two operands of them, a mask, scales, a zero


@dataclass(frozen=True, slots=True)
class ScaledDots:
    """Sums of integers of blocks, scaled and added up.

    outer, inner: the blocks of the two sums. fixed: the loads of what columns have, by the block
    that reads it. data: the load of rows. points, parts: the last two axes of the inner sum, the
    products that an instruction adds up at once, and how often it does for a word.
    """

    outer: Block
    inner: Block
    fixed: tuple[tuple[Block, Load], ...]
    data: Load
    points: int
    parts: int


def scaled_dots(func: PrimFunc) -> ScaledDots | None:
    """The two reductions of a function as such sums; None for others."""
    found = reductions(func)
    rest = [block for block in func.blocks if block not in found]
    if len(found) != 2 or not all(map(is_pointwise, rest)):
        return None
    inner, outer = found
    factors, scaled = factors_of(inner), factors_of(outer)
    if factors is None or scaled is None or not is_added_up(func, inner, outer):
        return None
    data, number = factors if isinstance(factors[1], BitAnd) else factors[::-1]
    reduced = [it for it in inner.iters if it.kind is IterKind.REDUCE]
    if len(reduced) != 3:
        return None
    _, part, point = reduced
    bits = word_bits(number, point.var, WORD_BITS // max(1, point.extent))
    if bits is None or not isinstance(data, Cast) or not isinstance(data.value, Load):
        return None
    *_, last = data.value.indices
    sums, (*_, column) = target_of(inner), spatial_axes(outer)
    if all(load.buffer is not sums for load in loads(scaled[0])):
        scaled = scaled[::-1]  # however the product is written
    own = [load for one in scaled for load in loads(one) if load.buffer is not sums]
    of_columns = [(outer, load) for load in own if column.var in free_vars(load)]
    fixed = [*of_columns, (inner, bits.word)]
    constants = fixed_tensors(func)
    for block, load in fixed:
        *front, end = load.indices
        mine = spatial_axes(block)[-1].var
        plain = end is mine and all(mine not in free_vars(item) for item in front)
        if not plain or load.buffer not in constants:
            return None
    if linear(last).coefficient(point.var) != 1 or spatial_axes(inner)[-1].var in free_vars(data):
        return None
    return ScaledDots(outer, inner, tuple(fixed), data.value, point.extent, part.extent)


@dataclass(frozen=True, slots=True)
class BlockDotsRule(Rule):
    """Sums of integers of blocks, scaled and added up; pointwise blocks around them."""

    name: ClassVar[str] = "block dots"
    keeps_order: ClassVar[bool] = True
    instructions: ClassVar[Mapping[str, Instruction]] = TENSOR_INTRINSICS

    def matches(self, func: PrimFunc) -> bool:
        """Whether the function has these two sums, and one of the instructions computes the first
        one.
        """
        found = scaled_dots(func)
        return found is not None and self._unit(found) is not None

    def apply(self, sch: Schedule, target: Target) -> None:
        """Take the steps."""
        target = CpuTarget.of(target)
        inline_chains(sch)
        found = scaled_dots(sch.func)
        assert found is not None
        unit = self._unit(found)
        assert unit is not None
        lanes = target.lanes(target_of(found.outer).type)
        axes = len(spatial_axes(found.outer))
        take = partial(_sum_blocks, axes=axes, lanes=lanes, unit=unit)
        tiles = _tiles(found, lanes, target)
        tile_scaled_sums(sch, (found.outer, found.inner), found.fixed, tiles, take, target)

    def _unit(self, found: ScaledDots) -> TensorIntrinsic | None:
        """The instruction that adds up products of such data and numbers of words."""
        for name in self.units:
            one = TENSOR_INTRINSICS[name]
            func = one.define(one.lanes[0])
            total = func.outputs[0].type == target_of(found.inner).type
            if total and one.points == found.points and func.inputs[-1].type == found.data.dtype:
                return one
        return None


def _tiles(found: ScaledDots, lanes: int, target: CpuTarget) -> list[Tile]:
    """Tiles that fit the registers, the one of the fewest instructions first; of few panels for the
    threads, narrower ones.
    """
    extents = [1, 1, *(it.extent for it in spatial_axes(found.outer)[:-1])]
    high, rows = extents[-2:]
    vectors = -(-spatial_axes(found.outer)[-1].extent // lanes)
    free = target.vector_registers - OTHERS

    def instructions(tile: Tile) -> float:
        count = tile.outer_rows * tile.rows
        dots = found.parts * count * tile.vectors
        operands = (2 * found.parts - 1) * tile.vectors + found.parts * count / 2
        several = -(-high // tile.outer_rows) * -(-rows // tile.rows) * -(-vectors // tile.vectors)
        return several * (dots + operands)

    fitting = [
        Tile(1, -(-rows // -(-rows // count)), wide)
        for count in range(1, min(rows, TILE_ROWS) + 1)
        for wide in range(1, min(vectors, MOST_VECTORS) + 1)
        if 2 * count * wide <= free
    ]
    shared = [t for t in fitting if -(-vectors // t.vectors) >= FEW_PANELS * target.threads]
    unique = list(dict.fromkeys(fitting)) or [Tile(1, 1, 1)]
    return sorted(unique, key=lambda tile: (tile not in shared, instructions(tile)))


def _sum_blocks(
    sch: Schedule, sums: str, block: LoopRef, axes: int, lanes: int, unit: TensorIntrinsic
) -> Sequence[LoopRef]:
    """Compute the sums of a block where they are scaled, in registers. axes: those of the result.
    Returns the loop over the words of a block.
    """
    loops = sch.compute_at(sums, block)
    sch.set_scope(sums, "register")
    spatial, (words, parts, points) = loops[: axes + 1], loops[axes + 1 :]
    vectors, lane = sch.split(spatial[-1], (None, lanes), tail="mask")
    tile = [*spatial[:-1], vectors]
    sch.reorder(words, parts, *tile, lane, points)
    for loop in (parts, *tile):
        sch.unroll(loop)
    sch.tensorize(lane, unit.name)
    return [words]
