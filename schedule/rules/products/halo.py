"""The border around the data of a convolution, copied with a few rows of it at a time, or in the
order in which a sum in parts walks it.

A copy of the whole image goes to the last-level cache and comes back. Where rows stand outermost, a
block of them copies what it reads, which stays in the level-2 cache; the rows that two blocks share
are copied twice. Elsewhere a part of a long sum reads a piece of each pixel, and pieces that lie a
multiple of a page apart fall into few sets of a cache: the copy, which is made in any case, puts
the pieces of a part next to each other.
"""

from __future__ import annotations

import math

from ....tir.analysis.linear import linear
from ....tir.buffer import Buffer
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
from .sum_blocks import reduction_order

ONCE = 4  # rows that are copied once for each one that is copied again, at least


def border_of(sch: Schedule, data: Buffer, reader: Block) -> Block | None:
    """The block that puts a border around data, where nobody but `reader` reads that."""
    made = writers(sch.func, data)
    if len(made) != 1 or readers(sch.func, data) != (reader,):
        return None
    return made[0] if is_pointwise(made[0]) and is_border(sch.func, made[0]) else None


def is_copied_in_blocks(data: Buffer, target: CpuTarget) -> bool:
    """Whether blocks of rows copy data and border where they read them: all of it together does not
    stay in the level-2 cache.
    """
    return data.size * data.type.bytes > target.l2_bytes // 2


def copy_in_parts(
    sch: Schedule, border: Block, found: Contraction, part: int | None, target: CpuTarget
) -> None:
    """Copy data and border in a nest of its own, the channels of each of the parts of a sum, which
    is `part` of them, next to each other: [n, h, w, c] -> [c // part, n, h, w, c % part].

    The copy reads whole pixels. Measured (a Xeon with AVX-512 and 2 MB of level-2 cache): 8 images
    of 14 x 14 x 512 under 3x3 windows in steps of 2 took 12.3 ms for 14.3; with AVX2, in the order
    of loops of a level-2 cache of 512 KB, 23.5 for 28.0, of 28 x 28 x 256 23.0 for 28.2.
    """
    data = found.data.buffer
    if part is not None and not data.dims and _is_walked_by(found):
        names = [f"i{axis}" for axis in range(len(data.shape))]
        *pixel, channel = names
        stored = ", ".join([f"{channel} // {part}", *pixel, f"{channel} % {part}"])
        piece, *loops, last = sch.transform_layout(
            border.name, f"lambda {', '.join(names)}: ({stored})"
        )
        sch.reorder(*loops, piece, last)
    schedule_pointwise(sch, border.name, target)


def _is_walked_by(found: Contraction) -> bool:
    """Whether the last axis of the data is what a sum in parts cuts."""
    *front, last = found.data.indices
    cut = reduction_order(found)[-1]
    return last is cut and all(cut not in free_vars(at) for at in front)


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
