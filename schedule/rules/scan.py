"""Rule for a recurrence: the axes along which it does not look back stand outside of the steps and
are shared out; inside a step, vectors or several chains of steps at once.

Where the last axis is such an axis, a panel of it runs through the steps in vectors: what the step
before has set is still in the cache. Where the steps themselves lie side by side in memory, each
chain waits for its own last sum, so CHAINS of them go on together.
"""

from __future__ import annotations

from ...tir.stmt import Block, IterKind, IterVar
from ...tir.target import Target
from ...tir.visit import free_vars, loads, stores
from ..references import LoopRef
from ..schedule import Schedule
from .elementwise import SERIAL_ELEMENTS, parallelize, vector_lanes

PANEL_VECTORS = 256  # of a step: long runs through memory, and the step before is still in the L2
CHAINS = 4  # each reads and writes a row: more of them meet in one set of the cache


def schedule_scan(sch: Schedule, block: Block, target: Target) -> None:
    """Schedule one recurrence in a nest of its own at the root."""
    loops = dict(zip((it.var for it in block.iters), sch.loops(block.name), strict=True))
    steps = next(it for it in block.iters if it.kind is IterKind.ORDERED)
    free = free_axes(block)
    outer = [loops[it.var] for it in free]
    lanes = vector_lanes(block, target)
    panel = panel_axis(block)
    inner: list[LoopRef] = []
    if panel is not None and lanes > 1 and panel.extent >= lanes // 2:
        vectors = -(-panel.extent // lanes)
        shared = vectors if len(free) > 1 else -(-vectors // target.threads)
        factors = (None, max(1, min(PANEL_VECTORS, shared)), lanes)
        outer[-1], *inner = sch.split(loops[panel.var], factors, tail="mask")
        sch.vectorize(inner[-1])
    elif free and steps.extent > 1:
        outer[-1], chain = sch.split(outer[-1], (None, CHAINS), tail="partition")
        inner = [chain]
        sch.unroll(chain)
    sch.reorder(*outer, loops[steps.var], *inner)
    if outer and _points(block) >= SERIAL_ELEMENTS:
        parallelize(sch, outer, target)


def free_axes(block: Block) -> tuple[IterVar, ...]:
    """The spatial axes of several points along which a recurrence reads its own tensor at the very
    place that it sets.
    """
    (own,) = stores(block.body)
    read = [load.indices for load in loads(block.body) if load.buffer is own.buffer]

    def free(it: IterVar) -> bool:
        axes = [n for n, at in enumerate(own.indices) if it.var in free_vars(at)]
        return all(at[n] == own.indices[n] for at in read for n in axes)

    spatial = (it for it in block.iters if it.kind is IterKind.SPATIAL and it.extent > 1)
    return tuple(it for it in spatial if free(it))


def panel_axis(block: Block) -> IterVar | None:
    """The free axis whose points lie side by side in memory."""
    last = stores(block.body)[0].indices[-1]
    return next((it for it in free_axes(block) if it.var is last), None)


def _points(block: Block) -> int:
    points = 1
    for it in block.iters:
        points *= it.extent
    return points
