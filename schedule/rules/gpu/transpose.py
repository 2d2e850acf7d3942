"""What a GPU's rule does with a block whose data lies along another axis than its last one, a
transposition: square tiles go through shared memory, so that neighbouring threads read neighbours
and write neighbours.
"""

from __future__ import annotations

from ....tir.expr import Expr
from ....tir.stmt import Block
from ....tir.visit import free_vars, loads
from ...nest import fixed_tensors
from ...schedule import Schedule
from ..shape.last_axis import turned_axis
from ..shape.structure import is_elementwise

SIDE = 32  # elements of a tile, as many as a warp has threads and shared memory banks
ROWS = 8  # of threads


def is_turned(sch: Schedule, block: Block) -> bool:
    """Whether a block computes each element, in each call, of data that it reads at one place, and
    that lies along another axis.
    """
    if not is_elementwise(block) or turned_axis(block) is None or sch.func.dims:
        return False
    source = _source(block)
    places = {load.indices for load in loads(block.body) if load.buffer.name == source}
    fixed = {tensor.name for tensor in fixed_tensors(sch.func)}
    return len(places) == 1 and source not in fixed


def schedule_turned(sch: Schedule, name: str) -> None:
    """Give each block of threads a tile: the last axis, and the one along which the data lies."""
    block = sch.func.block(name)
    axis = turned_axis(block)
    assert axis is not None
    *others, last = sch.loops(name)
    rows, row = sch.split(others.pop(axis), (None, SIDE))
    columns, column = sch.split(last, (None, SIDE))
    sch.reorder(*others, rows, columns, row, column)
    blocks = sch.fuse(*others, rows, columns)
    sch.bind(blocks, "blockIdx.x")
    part, ty = sch.split(row, (None, ROWS))
    sch.reorder(ty, column, part)
    sch.bind(ty, "threadIdx.y")
    sch.bind(column, "threadIdx.x")
    sch.unroll(part)
    source = _source(block)
    *front, _ = next(x.indices for x in loads(block.body) if x.buffer.name == source)
    across = next(n for n, at in enumerate(front) if block.iters[-1].var in free_vars(at))
    copy = sch.cache_read(name, source)
    each = sch.compute_at(copy, blocks)
    sch.storage_align(copy, across, SIDE, 1)
    _, y, x = sch.split(sch.fuse(*each), (None, ROWS, SIDE))
    sch.bind(y, "threadIdx.y")
    sch.bind(x, "threadIdx.x")
    sch.set_scope(copy, "shared")


def _source(block: Block) -> str:
    """The name of the tensor that lies along another axis."""
    axis = turned_axis(block)
    along: Expr | None = None if axis is None else block.iters[axis].var
    last = block.iters[-1].var
    found = (
        load.buffer.name
        for load in loads(block.body)
        if load.indices and load.indices[-1] is along
        if any(last in free_vars(index) for index in load.indices[:-1])
    )
    return next(found)
