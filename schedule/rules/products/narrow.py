"""Products of so few columns that many lanes would be masked: lanes along the steps of the sum.

Each element of a tile of rows and columns has a vector of partial sums, so no lane is masked, and
data and weights are both read in vectors along the steps. In the end the lanes of each vector are
added up, in the same order on any number of threads.
"""

from __future__ import annotations

import math

from ....tir.analysis.linear import linear
from ....tir.expr import Var
from ....tir.stmt import IterKind
from ....tir.target.target import CpuTarget
from ....tir.visit import free_vars
from ...nest import targets_of
from ...schedule import Schedule
from ...trace.references import LoopRef
from ..elementwise import schedule_pointwise
from ..knobs.knobs import choose_copies, choose_flag, choose_tile
from ..knobs.tiles import Tile, pieces, step_cycles
from ..shape.structure import Contraction, pointwise_output
from ..tiled import share_tiles
from .groups import is_grouped
from .sum_blocks import reduction_order

FEW = 4  # partial sums that are added one by one
MASKED = 2  # times the lanes that would be masked, where so many columns are narrow
LEAST_VECTORS = 2  # of steps, that are worth adding up their lanes
LONGEST_SUM = 512  # terms of one partial sum
MOST_ROWS = 8  # of a tile
JOIN = 6  # cycles, about, to add up the lanes of a vector


def choose_narrow(sch: Schedule, found: Contraction, target: CpuTarget) -> bool:
    """Whether lanes go along the steps; by default they go along the columns."""
    axis, lanes = reduction_order(found)[-1], target.lanes(found.total)
    steps = next(it.extent for it in found.reduced if it.var is axis)
    masked = -found.vector.extent % lanes
    fits = LEAST_VECTORS * lanes <= steps <= LONGEST_SUM * lanes
    fits = fits and masked * MASKED >= found.vector.extent
    plain = found.total.is_float and not (found.is_widened or found.batch or is_grouped(found))
    if not (fits and plain and found.rows and _is_along(found, axis)):
        return False
    return choose_flag(sch, "lanes along the steps", found.block.name, False)


def schedule_narrow(sch: Schedule, found: Contraction, target: CpuTarget) -> None:
    """Schedule a product with its lanes along the steps, and what follows it."""
    name, lanes = found.block.name, target.lanes(found.total)
    axis = reduction_order(found)[-1]
    epilogue = pointwise_output(sch.func, found.block)
    tile = choose_tile(sch, name, _tiles(found, axis, target))
    _turn_weights(sch, found, axis)
    loops = dict(zip((it.var for it in found.block.iters), sch.loops(name), strict=True))
    _, lane = sch.split(loops[axis], (None, lanes), tail="mask")
    sums = sch.rfactor(name, lane)
    _, few = sch.split(sch.loops(name)[-1], (None, FEW), tail="mask")
    joined = sch.rfactor(name, few)
    *rows, column, last = sch.loops(name)
    rows[-1], row = sch.split(rows[-1], (None, tile.rows), tail="partition")
    panel, column = sch.split(column, (None, tile.vectors), tail="partition")
    outer = [*rows, panel]
    sch.reorder(*outer, row, column, last)
    for block in (joined, sums):
        _compute_in_registers(sch, block, panel)
    for loop in (row, column, last):
        sch.unroll(loop)
    for tensor in targets_of(sch.func.block(name)):
        sch.stage(name, tensor.name, column, "register")
    if epilogue is not None:
        schedule_pointwise(sch, epilogue.name, target)
    long = [loop for loop in outer if sch.extent(loop) > 1]
    share_tiles(sch, sch.func.block(sums), long, target)


def _is_along(found: Contraction, axis: Var) -> bool:
    """Whether the data of neighbouring steps are neighbours, and each step has weights of its
    own.
    """
    *front, last = found.data.indices
    inside = [atom for atom, _ in linear(last).terms if axis in free_vars(atom)]
    beside = any(axis in free_vars(item) for item in front)
    along = not beside and inside == [axis] and linear(last).coefficient(axis) == 1
    return along and any(item is axis for item in found.weight.indices)


def _tiles(found: Contraction, axis: Var, target: CpuTarget) -> list[Tile]:
    """Tiles of rows and columns whose sums fit the registers, the cheapest first by the model."""
    lanes = target.lanes(found.total)
    steps = -(-math.prod(it.extent for it in found.reduced) // lanes)
    height, width = found.rows[-1].extent, found.vector.extent
    most = target.vector_registers - 2

    def cycles(tile: Tile) -> float:
        edges = [(a, b) for a in pieces(height, tile.rows) for b in pieces(width, tile.vectors)]
        return sum(
            rows * columns * (steps * step_cycles(r, c, target) + JOIN * r * c)
            for (rows, r), (columns, c) in edges
        )

    found_tiles = [
        Tile(1, rows, columns)
        for rows in range(1, min(height, MOST_ROWS) + 1)
        for columns in range(1, width + 1)
        if rows * columns + min(rows, columns) <= most
    ]
    return sorted(found_tiles, key=lambda tile: (cycles(tile), tile.to_json()))


def _turn_weights(sch: Schedule, found: Contraction, axis: Var) -> None:
    """Let the weights of neighbouring steps be neighbours."""
    weight = found.weight
    names = [f"i{number}" for number in range(len(weight.indices))]
    if weight.indices[-1] is axis:
        return
    along = next(n for n, item in zip(names, weight.indices, strict=True) if item is axis)
    block = sch.cache_read(found.block.name, weight.buffer.name, f"{weight.buffer.name}_packed")
    turned = ", ".join([*(name for name in names if name != along), along])
    first, *_ = sch.transform_layout(block, f"lambda {', '.join(names)}: ({turned})")
    if sch.extent(first) > 1:
        sch.parallel(first)


def _compute_in_registers(sch: Schedule, name: str, place: LoopRef) -> None:
    """Compute partial sums of a tile inside of a loop: the first of their axes are the lanes of a
    vector.
    """
    block = sch.func.block(name)
    lane, *others = sch.compute_at(name, place)
    for tensor in targets_of(block):
        sch.set_scope(tensor.name, "register")
    count = sum(it.kind is IterKind.SPATIAL for it in block.iters) - 1
    elements, steps = others[:count], others[count:]
    sch.reorder(*steps, *elements, lane)
    for loop in elements:
        sch.unroll(loop)
    sch.vectorize(lane)
    if sch.extent(steps[-1]) <= FEW:
        sch.unroll(steps[-1])
    else:
        choose_copies(sch, name, steps[-1])
