"""The border around the data of a convolution, copied with a few rows of it at a time.

A copy of the whole image goes to the last-level cache and comes back. Where rows stand outermost, a
block of them copies what it reads, which stays in the level-2 cache; the rows that two blocks share
are copied twice.
"""

from __future__ import annotations

import math

from ....tir.analysis.linear import linear
from ....tir.stmt import Block
from ....tir.target.target import CpuTarget
from ....tir.visit import free_vars
from ...nest import readers, writers
from ...schedule import Schedule
from ...trace.references import LoopRef
from ..elementwise import schedule_pointwise
from ..knobs.lanes import vector_lanes
from ..knobs.tiles import Tile
from ..shape.structure import Contraction, is_pointwise
from ..shape.windows import is_border

ONCE = 4  # rows that are copied once for each one that is copied again, at least


def border_of(sch: Schedule, found: Contraction, target: CpuTarget) -> Block | None:
    """The block that puts a border around the data of a sum of products, where nobody else reads
    that and it does not stay in the level-2 cache.
    """
    data = found.data.buffer
    made = writers(sch.func, data)
    alone = len(made) == 1 and readers(sch.func, data) == (found.block,)
    large = data.size * data.type.bytes > target.l2_bytes // 2
    if not alone or not large or len(found.rows) < 2:
        return None
    return made[0] if is_pointwise(made[0]) and is_border(sch.func, made[0]) else None


def block_size(found: Contraction, tile: Tile, count: int, target: CpuTarget) -> int:
    """How many rows of tiles, of `count`, a block has that copies few rows of data twice; 0 where
    what it copies would take more than a part of the level-2 cache, there are fewer blocks than
    threads, or rows do not walk one axis of the data forwards.
    """
    data, axis = found.data, found.rows[-2]
    forms = [linear(at) for at in data.indices]
    places = [n for n, form in enumerate(forms) if form.coefficient(axis.var) > 0]
    if len(places) != 1:
        return 0
    form = forms[places[0]]
    window = sum(form.coefficient(it.var) * (it.extent - 1) for it in found.reduced) + 1
    again = max(0, window - form.coefficient(axis.var))
    step = form.coefficient(axis.var) * tile.outer_rows
    size = max(1, -(-ONCE * again // step))
    outside = {it.var for it in found.rows[:-2]}
    pairs = zip(data.buffer.extents, data.indices, strict=True)
    box = [1 if free_vars(at) & outside else extent for extent, at in pairs]
    box[places[0]] = size * step + again
    fits = math.prod(box) * data.buffer.type.bytes <= target.l2_bytes // 4
    return size if fits and size * target.threads <= count else 0


def copy_border(sch: Schedule, border: Block, place: LoopRef | None, target: CpuTarget) -> None:
    """Copy data and border in each iteration of a loop; in a nest of its own without one."""
    if place is None:
        schedule_pointwise(sch, border.name, target)
        return
    *_, last = sch.compute_at(border.name, place)
    _, lane = sch.split(last, (None, vector_lanes(border, target)), tail="mask")
    sch.vectorize(lane)
