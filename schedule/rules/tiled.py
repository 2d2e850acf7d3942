"""The program that contraction and window rules share: a register tile of rows times vectors,
reduced in place.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from ...tir.analysis.linear import linear
from ...tir.expr import Var
from ...tir.instructions.tensor_intrinsics import TensorIntrinsic
from ...tir.stmt import Block, IterKind
from ...tir.target.target import CpuTarget
from ...tir.work.work import points_of
from ..nest import read_indices, target_of, targets_of
from ..primitives.loops.loops import TailName
from ..schedule import Schedule
from ..trace.references import LoopRef
from .elementwise import schedule_pointwise
from .knobs.knobs import choose, choose_tile
from .knobs.lanes import vector_lanes
from .knobs.threads import share_out
from .knobs.tiles import Tile
from .shape.structure import pointwise_output


@dataclass(frozen=True, slots=True)
class TiledLoops:
    """The loops of a block after tiling.

    rows: the row loops outside the tile, outermost first; panel: the loop over panels of columns.
    inner: the loops of the tile, rows, vectors, lanes; reduced: the reduction loops in the order
    asked for. short: whether the last vector is as long as what is left, not masked. unit: the
    instruction that computes, for each lane, the points of the loop `points`.
    """

    rows: tuple[LoopRef, ...]
    panel: LoopRef
    inner: tuple[LoopRef, ...]
    reduced: tuple[LoopRef, ...]
    short: bool = False
    unit: TensorIntrinsic | None = None
    points: tuple[LoopRef, ...] = ()


def tile_loops(
    sch: Schedule,
    block: Block,
    tile: Tile,
    width: int,
    lanes: int,
    reduced: Sequence[Var],
    *,
    short: bool = False,
    unit: TensorIntrinsic | None = None,
) -> TiledLoops:
    """Split the row axes and the last spatial axis of a block for a tile of `width` columns.

    short: let the last vector be as long as what is left. unit: an instruction that computes some
    points of the last one of the axes `reduced` at once.
    """
    own = sch.loops(block.name)[-len(block.iters) :]
    loops = dict(zip((it.var for it in block.iters), own, strict=True))
    spatial = [it.var for it in block.iters if it.kind.value == "spatial"]
    rows = [loops[var] for var in spatial[:-1]]
    inner: list[LoopRef] = []
    for depth, size in ((1, tile.rows), (2, tile.outer_rows)):
        if len(rows) >= depth:
            rows[-depth], inside = sch.split(rows[-depth], (None, size), tail="partition")
            inner.insert(0, inside)
    panel, columns = sch.split(loops[spatial[-1]], (None, width), tail="mask")
    ends: TailName = "partition" if short else "mask"
    vectors, lane = sch.split(columns, (None, min(lanes, width)), tail=ends)
    steps, points = [loops[var] for var in reduced], []
    if unit is not None:
        steps[-1], *points = sch.split(steps[-1], (None, unit.points), tail="mask")
    return TiledLoops(
        tuple(rows), panel, (*inner, vectors, lane), tuple(steps), short, unit, tuple(points)
    )


def choose_tile_loops(
    sch: Schedule, block: Block, tiles: Sequence[Tile], target: CpuTarget
) -> TiledLoops:
    """Choose a tile of vectors, the first by default, and split the axes for it; the reduction
    keeps its order.
    """
    lanes = vector_lanes(block, target)
    tile = choose_tile(sch, block.name, tiles)
    order = [it.var for it in block.iters if it.kind is IterKind.REDUCE]
    return tile_loops(sch, block, tile, tile.vectors * lanes, lanes, order)


def panels_between(sch: Schedule, block: str, loops: TiledLoops, inside: int) -> list[LoopRef]:
    """The loops around a tile in the order that is chosen: by default `inside` of the loops over
    rows that have several iterations stand around that over panels.
    """
    rows = [row for row in loops.rows if sch.extent(row) > 1]
    sizes = range(len(rows) + 1) if sch.extent(loops.panel) > 1 else ()
    place = choose(sch, "loops around panels", block, sizes, min(inside, len(rows)))
    around = list(loops.rows)
    around.insert(around.index(rows[place]) if place < len(rows) else len(around), loops.panel)
    return around


def shared_first(sch: Schedule, outer: Sequence[LoopRef], target: CpuTarget) -> list[LoopRef]:
    """Nested loops, the longest outermost where the first has too few iterations to share out."""
    if sch.extent(outer[0]) >= target.threads:
        return list(outer)
    widest = max(outer, key=sch.extent)
    return [widest, *(loop for loop in outer if loop is not widest)]


def finish_tile(
    sch: Schedule,
    name: str,
    loops: TiledLoops,
    outer: Sequence[LoopRef],
    reduced: Sequence[LoopRef],
    target: CpuTarget,
    *,
    parts: LoopRef | None = None,
    alone: bool = False,
) -> list[LoopRef]:
    """Order the loops, keep the tile in registers and run what follows on it, where that has the
    tile's vectors and reads it element by element; else it has a nest of its own. alone: leave
    what follows as it is.

    outer: the loops around the tile, which are returned in their order; reduced: the loops inside,
    around the tile's own. parts: the loop of `outer` each of whose iterations sums anew in
    registers; the sums are added up in memory, which rounds less than one long sum.
    """
    epilogue = None if alone else pointwise_output(sch.func, sch.func.block(name))
    lanes = sch.extent(loops.inner[-1])
    forwards = epilogue is not None and _reads_forwards(epilogue, sch.func.block(name), lanes)
    ordered = [*(x for x in outer if sch.extent(x) > 1), *(x for x in outer if sch.extent(x) == 1)]
    sch.reorder(*ordered, *reduced, *loops.inner, *loops.points)
    for loop in loops.inner[:-1]:
        sch.unroll(loop)
    if loops.unit is None:
        sch.vectorize(loops.inner[-1])
    else:
        sch.tensorize(loops.inner[-1], loops.unit.name)
    place = ordered[-1]
    summed = name if parts is None else sch.rfactor(name, parts)
    for tensor in targets_of(sch.func.block(summed)):
        sch.stage(summed, tensor.name, place, "register")
    if parts is not None:
        *tile, part = sch.reverse_compute_at(name, place, at="each")
        sch.reorder(part, *tile)
        _vectors(sch, tile, lanes, short=loops.short)
    if epilogue is None:
        return ordered
    own = epilogue.name
    moved: list[LoopRef] = []
    if (
        forwards
        and _shares_vectors(epilogue, sch.func.block(name), loops, target)
        and sch.attempt(lambda s: moved.extend(s.reverse_compute_at(own, place, at="last")))
    ):
        _vectors(sch, moved, lanes, short=loops.short)
    else:
        schedule_pointwise(sch, own, target)
    return ordered


def share_tiles(
    sch: Schedule,
    block: Block,
    ordered: Sequence[LoopRef],
    target: CpuTarget,
    parts: LoopRef | None = None,
) -> None:
    """Run the first of the loops around the tiles of a block in parallel, unless it is `parts`."""
    free = list(itertools.takewhile(lambda loop: loop != parts, ordered))
    if free and sch.extent(free[0]) > 1:
        share_out(sch, block.name, free, target, points_of(block), default=1)


def _reads_forwards(epilogue: Block, block: Block, lanes: int) -> bool:
    """Whether what the epilogue reads of a block runs forwards, by single steps, along its columns:
    a vector of registers is read whole, never one element of it.
    """
    column = epilogue.iters[-1].var
    for tensor in targets_of(block):
        for *front, last in read_indices(epilogue, tensor):
            steps = [linear(item).coefficient(column) for item in (*front, last)]
            if any(step not in (0, 1) for step in steps) or (lanes > 1 and steps[-1] == 0):
                return False
    return True


def _shares_vectors(epilogue: Block, block: Block, loops: TiledLoops, target: CpuTarget) -> bool:
    if loops.unit is None:
        lanes = vector_lanes(block, target)
    else:  # those of the accumulators alone
        lanes = target.lanes(target_of(block).type)
    return vector_lanes(epilogue, target) == lanes


def _vectors(sch: Schedule, loops: Sequence[LoopRef], lanes: int, *, short: bool = False) -> None:
    """Run a block over a tile in the tile's own vectors."""
    *rows, columns = loops
    ends: TailName = "partition" if short else "mask"
    vectors, lane = sch.split(columns, (None, lanes), tail=ends)
    for loop in (*rows, vectors):
        sch.unroll(loop)
    sch.vectorize(lane)
