"""The analytical time of a function or a schedule: seconds from the Target alone, nothing measured,
so plans are reproducible.

A function runs as passes over memory, one after the other with a barrier between: each block is
one, but what follows a contraction or a windowed reduction runs on its accumulators. A pass takes
as long as the slower of
- its arithmetic: register tiles for a contraction (rules/tiles.py), vectors for what runs along a
  contiguous axis, one by one for the rest, shared out over the threads when it is long enough;
- its traffic: each tensor once, at the bandwidth of the smallest cache level that holds the pass;
  constants come from memory. The figures are for choosing between alternatives, not for prediction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

from ..tir.buffer import Buffer
from ..tir.dtype import DType
from ..tir.func import PrimFunc
from ..tir.stmt import Block, IterKind
from ..tir.target import Target
from ..tir.visit import loads
from ..tir.work import block_work, points_of
from .cost_grid import grid_seconds
from .cost_nest import nest_passes
from .cost_pass import FORWARDING, LATENCY, Pass, arithmetic_cycles, pass_seconds, values_of
from .nest import is_reduction, targets_of
from .rules.attention import AttentionRule
from .rules.contraction import ContractionRule
from .rules.default import Rule, default_schedule, rule_for
from .rules.depthwise import DepthwiseRule, window_cycles
from .rules.dots import DotsRule
from .rules.groups import group_cycles, is_grouped
from .rules.lanes import vector_lanes
from .rules.last_axis import turned_axis
from .rules.reduction import ReductionRule
from .rules.row_groups import row_groups
from .rules.rows import RowsRule, in_vectors
from .rules.scan import CHAINS, free_axes, panel_axis
from .rules.structure import (
    Contraction,
    contraction,
    inline_chains,
    is_elementwise,
    pointwise_output,
    reductions,
)
from .rules.threads import SERIAL_ELEMENTS
from .rules.tiles import candidates, tile_cycles
from .rules.windows import inline_padding, is_window
from .rules.winograd import WinogradRule
from .schedule import Schedule

LAUNCH_SECONDS = 3e-7  # to enter a kernel and leave it


def estimate(what: PrimFunc | Schedule, target: Target) -> float:
    """Seconds that a function takes with the schedule of its rule, or that a schedule takes, on
    `target`.
    """
    if isinstance(what, PrimFunc) and target.gpu is not None:
        return grid_seconds(what, target)
    passes = nest_passes(what.func, target) if isinstance(what, Schedule) else _passes(what, target)
    return LAUNCH_SECONDS + sum(pass_seconds(item, target) for item in passes)


def _passes(func: PrimFunc, target: Target) -> list[Pass]:
    rule = rule_for(func, target)
    if isinstance(rule, WinogradRule | AttentionRule | DotsRule):
        return nest_passes(default_schedule(func, target).func, target)
    sch = Schedule(func)
    inline_chains(sch, repeated=not isinstance(rule, RowsRule))
    if isinstance(rule, DepthwiseRule | ReductionRule):
        inline_padding(sch)
    inlined = sch.func
    if isinstance(rule, RowsRule):
        groups = [(*group.members, group.anchor) for group in row_groups(inlined)]
        return [_row_pass(inlined, tuple(map(inlined.block, names)), target) for names in groups]
    tiled = isinstance(rule, ContractionRule | DepthwiseRule | ReductionRule)
    anchor = reductions(inlined)[0] if tiled else None
    epilogue = pointwise_output(inlined, anchor) if anchor is not None else None
    found = []
    for block in inlined.blocks:
        if block is epilogue:
            continue
        own = [block, epilogue] if block is anchor and epilogue is not None else [block]
        cycles = _anchor_cycles(block, rule, target) if block is anchor else None
        if cycles is None:
            cycles = _block_cycles(block, target, _lanes(block, target))
        if len(own) == 2:
            cycles += _block_cycles(own[1], target, _lanes(own[1], target))
        found.append(_pass(inlined, own, cycles, target))
    return found


def _anchor_cycles(block: Block, rule: Rule, target: Target) -> float | None:
    """Cycles of what a rule keeps in a register tile; None for what goes vector by vector."""
    if isinstance(rule, DepthwiseRule):
        return window_cycles(block, target)
    product = contraction(block) if isinstance(rule, ContractionRule) else None
    return None if product is None else _contraction_cycles(product, target)


def _row_pass(func: PrimFunc, own: Sequence[Block], target: Target) -> Pass:
    """Blocks that are computed row by row, in one loop."""
    rows = [in_vectors(block, target) for block in own]
    cycles = sum(
        _block_cycles(block, target, lanes or _lanes(block, target))
        for block, lanes in zip(own, rows, strict=True)
    )
    return _pass(func, own, cycles, target)


def _lanes(block: Block, target: Target) -> int:
    if is_elementwise(block) and turned_axis(block) is not None:
        return 1  # elements one by one: see square_tiles
    vectors = panel_axis(block) is not None if block.is_ordered else is_window(block)
    return vector_lanes(block, target) if vectors else 1


def _pass(func: PrimFunc, blocks: Sequence[Block], cycles: float, target: Target) -> Pass:
    inside = {target for block in blocks[:-1] for target in targets_of(block)}
    read: dict[Buffer, int] = {}
    for block in blocks:
        for buffer, count in block_work(block).read:
            read[buffer] = max(count, read.get(buffer, 0))
    fixed = set(func.constants)
    moved = block_work(blocks[-1]).written
    moved += sum(n for buffer, n in read.items() if buffer not in fixed | inside)
    constant = sum(n for buffer, n in read.items() if buffer in fixed)
    points = sum(map(points_of, blocks))
    rows = max((a.extent for a in blocks[0].iters if a.kind is IterKind.SPATIAL), default=1)
    threads = min(target.threads, rows) if points >= SERIAL_ELEMENTS else 1
    return Pass(cycles, threads, moved, constant)


def _contraction_cycles(found: Contraction, target: Target) -> float:
    """Cycles of the best register tile over all groups; without a fused multiply-add each step is
    two instructions.
    """
    rows = found.rows
    outer = rows[-2].extent if len(rows) > 1 else 1
    inner = rows[-1].extent if rows else 1
    batch = math.prod(axis.extent for axis in (*found.batch, *rows[:-2]))
    steps = math.prod(axis.extent for axis in found.reduced)
    if 0 in (outer, inner, found.vector.extent):
        return 0.0
    if is_grouped(found):
        best = group_cycles(found, target)
    else:
        dtype = found.weight.buffer.type
        best = _best_tile_cycles(outer, inner, found.vector.extent, steps, dtype, target)
    return best * batch * (1 if target.has_fma else 2)


@cache
def _best_tile_cycles(
    outer: int, inner: int, columns: int, steps: int, dtype: DType, target: Target
) -> float:
    best = candidates(outer, inner, columns, steps, dtype, target)[0]
    return tile_cycles(best, outer, inner, columns, steps, dtype, target)


def _block_cycles(block: Block, target: Target, lanes: int) -> float:
    """Cycles of a block that is no register tile."""
    values = values_of(block)
    chains = (CHAINS if free_axes(block) else 1) if block.is_ordered else 0
    own = targets_of(block)
    read = sum(1 for load in loads(block.body) if load.buffer not in own)
    step = max(sum(arithmetic_cycles(value, target) for value in values), read / 2, 1.0)
    if is_reduction(block) and lanes == 1:
        step = max(step, LATENCY)
    if chains and lanes == 1:
        step = max(step, (LATENCY + FORWARDING) / chains)
    return points_of(block) * step / lanes
