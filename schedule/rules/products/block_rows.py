"""Rule for a few rows times weights of few bits: sums of blocks, each multiplied with the scales of
its block, then added up.

The weights are read once, from memory as a rule, so that their bytes are what a call takes. Levels,
scales and zeros are packed in panels of a tile's width when a kernel is built. A tile has all rows,
or as many as its registers hold, and unpacks a vector of levels once for them. The sums of a block
and what they add up to stay in registers. For many rows it takes fewer instructions to make numbers
of the weights first, which is another function (`block_panels.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from ....tir.buffer import Load
from ....tir.expr import Expr, Var
from ....tir.func import PrimFunc
from ....tir.stmt import Block, IterKind, IterVar
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

TILE_ROWS = 8  # at most: their sums are held twice
MOST_VECTORS = 4  # of a tile: enough sums that a multiply-add never waits for the one before it


@dataclass(frozen=True, slots=True)
class ScaledSums:
    """out[..., n] = sum over b of scale[b, n] * sum over others of data[..., b, ...] * number[n].

    outer, inner: the blocks of the two sums; what inner computes is read by outer alone. fixed: the
    loads of what columns have, by the block that reads it, each with the column as its last index.
    """

    outer: Block
    inner: Block
    fixed: tuple[tuple[Block, Load], ...]

    @property
    def spatial(self) -> tuple[IterVar, ...]:
        """The axes of the result: rows, then columns."""
        return tuple(it for it in self.outer.iters if it.kind is IterKind.SPATIAL)


def scaled_sums(func: PrimFunc) -> ScaledSums | None:
    """The two reductions of a function as sums that are scaled and added up; None for others."""
    found = reductions(func)
    rest = [block for block in func.blocks if block not in found]
    if len(found) != 2 or not all(map(is_pointwise, rest)):
        return None
    inner, outer = found
    scaled, summed = factors_of(outer), factors_of(inner)
    if scaled is None or summed is None or not is_added_up(func, inner, outer):
        return None
    if any(it.dim is not None for it in (*spatial_axes(inner), *spatial_axes(outer))):
        return None
    sums, column = target_of(inner), spatial_axes(inner)[-1].var
    scale = _other(scaled, lambda e: isinstance(e, Load) and e.buffer is sums)
    number = _other(summed, lambda e: column not in free_vars(e))
    if scale is None or number is None:
        return None
    fixed = [(outer, load) for load in loads(scale)] + [(inner, load) for load in loads(number)]
    constants = fixed_tensors(func)
    rows = {it.var for it in (*spatial_axes(inner)[:-2], *spatial_axes(outer)[:-1])}
    for block, load in fixed:
        of_columns = _is_of_columns(load, spatial_axes(block)[-1].var, rows)
        if not of_columns or load.buffer not in constants:
            return None
    return ScaledSums(outer, inner, tuple(fixed))


def _other(factors: tuple[Expr, Expr], is_one: Callable[[Expr], bool]) -> Expr | None:
    """The factor beside the one that is sought; None where it is not there."""
    return next((b for a, b in (factors, factors[::-1]) if is_one(a)), None)


def _is_of_columns(load: Load, column: Var, rows: AbstractSet[Var]) -> bool:
    """Whether the last index is the column, and no other is made of it or of a row."""
    *front, last = load.indices
    used = frozenset[Var]().union(*map(free_vars, front))
    return last is column and column not in used and used.isdisjoint(rows)


@dataclass(frozen=True, slots=True)
class BlockRowsRule(Rule):
    """Sums of blocks of a few rows, scaled and added up; pointwise blocks around them."""

    name: ClassVar[str] = "block rows"
    keeps_order: ClassVar[bool] = True

    def matches(self, func: PrimFunc) -> bool:
        """Whether the function has these two sums."""
        return scaled_sums(func) is not None

    def apply(self, sch: Schedule, target: Target) -> None:
        """Take the steps."""
        target = CpuTarget.of(target)
        inline_chains(sch)
        found = scaled_sums(sch.func)
        assert found is not None
        lanes = target.lanes(target_of(found.outer).type)
        take = partial(_sum_blocks, axes=len(found.spatial), lanes=lanes)
        tiles = _tiles(found, lanes, target)
        tile_scaled_sums(sch, (found.outer, found.inner), found.fixed, tiles, take, target)


def _tiles(found: ScaledSums, lanes: int, target: CpuTarget) -> list[Tile]:
    """Tiles of all rows, or of an even part of them, the widest first that fits the registers and
    leaves panels enough.
    """
    extents = [1, 1, *(it.extent for it in found.spatial[:-1])]
    high, rows = extents[-2:]
    most = min(TILE_ROWS, (target.vector_registers - 4) // 2)
    if high * rows > most:
        high, rows = 1, -(-rows // -(-rows // most))
    vectors = -(-found.spatial[-1].extent // lanes)
    fitting = [
        count
        for count in range(1, MOST_VECTORS + 1)
        if count <= vectors and (2 * high * rows + 1) * count + 3 <= target.vector_registers
    ] or [1]
    wide = [n for n in fitting if -(-vectors // n) >= FEW_PANELS * target.threads]
    default = max(wide, default=1)
    return [Tile(high, rows, n) for n in sorted(fitting, key=lambda n: (n != default, -n))]


def _sum_blocks(
    sch: Schedule, sums: str, block: LoopRef, axes: int, lanes: int
) -> Sequence[LoopRef]:
    """Compute the sums of a block where they are scaled, in registers. axes: those of the result.
    Returns the loops over the steps of a block that remain.
    """
    loops = sch.compute_at(sums, block)
    sch.set_scope(sums, "register")
    spatial, steps = loops[: axes + 1], loops[axes + 1 :]
    vectors, lane = sch.split(spatial[-1], (None, lanes), tail="mask")
    tile = [*spatial[:-1], vectors]
    sch.reorder(*steps, *tile, lane)
    for loop in (*steps[-1:], *tile):
        sch.unroll(loop)
    sch.vectorize(lane)
    return steps[:-1]
