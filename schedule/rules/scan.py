"""Rule for a recurrence: the axes along which it does not look back stand outside of the steps and
are shared out; inside a step, vectors or several chains of steps at once.

Where the last axis is such an axis, a panel of it runs through the steps in vectors: what the step
before has set is still in the cache. Where the steps themselves lie side by side in memory, each
chain waits for its own last sum, so CHAINS of them go on together.
"""

from __future__ import annotations

from ...tir.stmt import Block, IterKind, IterVar
from ...tir.target.target import CpuTarget
from ...tir.visit import stores
from ...tir.work.work import points_of
from ..legality.recurrence import free_axes
from ..schedule import Schedule
from ..trace.references import LoopRef
from .knobs.knobs import choose, choose_copies
from .knobs.lanes import vector_lanes
from .knobs.threads import share_out

PANEL_VECTORS = 256  # of a step: long runs through memory, and the step before is still in the L2
PANELS = (4, 16, 64, 256)  # vectors, of which a tuner may choose
CHAINS = 4  # each reads and writes a row: more of them meet in one set of the cache
SIZES = (1, 2, 4, 8)  # chains, of which a tuner may choose


def schedule_scan(sch: Schedule, block: Block, target: CpuTarget) -> None:
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
        most = max(1, min(PANEL_VECTORS, shared))
        sizes = [size for size in PANELS if size < vectors]
        size = choose(sch, "vectors of a panel", block.name, sizes, most)
        outer[-1], *inner = sch.split(loops[panel.var], (None, size, lanes), tail="mask")
        choose_copies(sch, block.name, inner[0])
        sch.vectorize(inner[-1])
    elif free and steps.extent > 1:
        sizes = [size for size in SIZES if size <= sch.extent(outer[-1])]
        chains = choose(sch, "chains", block.name, sizes, CHAINS)
        outer[-1], chain = sch.split(outer[-1], (None, chains), tail="partition")
        inner = [chain]
        sch.unroll(chain)
    sch.reorder(*outer, loops[steps.var], *inner)
    share_out(sch, block.name, outer, target, points_of(block))


def panel_axis(block: Block) -> IterVar | None:
    """The free axis whose points lie side by side in memory."""
    last = {store.indices[-1] for store in stores(block.body)}
    return next((it for it in free_axes(block) if last == {it.var}), None)
