"""Rule for any function on a GPU: what makes a row (a softmax, a normalisation, a sum along the
last axis) is computed by the threads of one block, everything else by a thread for each element.

Intermediates of a row live in shared memory, where they fit. A reduction along the row is cut into
a part for each thread, these are joined in groups of eight, and the first thread joins the rest: in
the same order on every device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ....tir.func import PrimFunc
from ....tir.target import Target
from ....tir.work import points_of
from ...nest import is_reduction, targets_of
from ...references import LoopRef
from ...schedule import Schedule
from ..questions import ask
from ..row_groups import RowGroup, row_axis, row_groups
from ..structure import inline_chains
from .points import schedule_points

WARP = 32
MOST_THREADS = 256  # of a row by default
GROUP = 8  # parts that one thread joins
SHARED_BYTES = 48 << 10  # of intermediates of a row
PARTS = (32768, 8192, 2048)  # of a long reduction: threads that keep a large GPU busy

Parts = Mapping[str, tuple[str, ...]]  # blocks of partial results, by the block that joins them


@dataclass(frozen=True, slots=True)
class GridRowsRule:
    """Any function.

    in_order: a sum is one chain in the order of its definition, never in parts.
    """

    name: str = "grid rows"
    in_order: bool = False

    def matches(self, func: PrimFunc) -> bool:
        """Always."""
        return True

    def apply(self, sch: Schedule, target: Target) -> None:
        """Take the steps."""
        inline_chains(sch, repeated=False)
        for name in () if self.in_order else sch.blocks():
            _cut_long(sch, name)
        for group in row_groups(sch.func):
            length = _length(sch, group)
            if group.rows and length >= WARP:
                _schedule_row(sch, group, length, in_order=self.in_order)
            else:
                for name in (*group.members, group.anchor):
                    schedule_points(sch, name)


def _cut_long(sch: Schedule, name: str) -> None:
    """Cut a long reduction of few elements into parts, each a thread's of a whole grid, and these
    into those of one block; parts lie side by side, so that neighbours read neighbours.
    """
    block = sch.func.block(name)
    axis = row_axis(block) if is_reduction(block) else None
    if axis is None or axis.extent < 2 * PARTS[-1] or len(targets_of(block)) > 1:
        return
    rows = points_of(block) // axis.extent
    default = next((n for n in PARTS if 2 * n <= axis.extent and n * rows <= PARTS[0]), 1)
    parts = ask(sch, "parts", name, (1, *PARTS), default)
    for count in (parts, MOST_THREADS) if parts > 1 else ():
        _, part = sch.split(sch.loops(name)[-1], (None, count))
        sch.rfactor(name, part)


def _length(sch: Schedule, group: RowGroup) -> int:
    """Elements of a row: of the last axis of its blocks."""
    blocks = [sch.func.block(name) for name in (*group.members, group.anchor)]
    return max((block.iters[-1].extent for block in blocks if block.iters), default=1)


def _schedule_row(sch: Schedule, group: RowGroup, length: int, *, in_order: bool) -> None:
    """A block of threads for each row."""
    names = [*group.members, group.anchor]
    most = max(WARP, min(MOST_THREADS, 1 << (length - 1).bit_length()))
    sizes = [n for n in (32, 64, 128, 256, 512, 1024) if n <= max(WARP, length)]
    threads = ask(sch, "threads of a row", group.anchor, sizes, most)
    parts = {name: () if in_order else _in_parts(sch, name, threads) for name in names}
    listed = [part for name in names for part in (*parts[name], name)]
    own = sch.loops(group.anchor)[-len(sch.func.block(group.anchor).iters) :]
    rows = own[: group.rows]
    row = sch.fuse(*rows) if len(rows) > 1 else rows[0]
    below = {name: sch.compute_at(name, row) for name in reversed(listed[:-1])}
    below[group.anchor] = own[group.rows :]
    sch.bind(row, "blockIdx.x")
    for name in listed:
        partial = next((n for n, made in parts.items() if name in made), "")
        if partial:
            lane, *steps = below[name]
            sch.reorder(lane, *steps)
            sch.bind(lane, "threadIdx.x")
        elif not is_reduction(sch.func.block(name)):
            _elements(sch, below[name], threads)
    _keep_close(sch, listed[:-1], row)
    for name in listed:
        block = sch.func.block(name)
        place = row if name == group.anchor else below[name][0]
        for tensor in targets_of(block) if is_reduction(block) else ():
            sch.stage(name, tensor.name, place, "register")


def _in_parts(sch: Schedule, name: str, threads: int) -> tuple[str, ...]:
    """Cut a reduction along a row into the blocks of a part for each thread, and of groups of
    these.
    """
    block = sch.func.block(name)
    axis = row_axis(block) if is_reduction(block) else None
    if axis is None or axis.extent < 2 * WARP or len(targets_of(block)) > 1:
        return ()
    _, thread = sch.split(sch.loops(name)[-1], (None, threads))
    parts = sch.rfactor(name, thread)
    group, _ = sch.split(sch.loops(name)[-1], (threads // GROUP, GROUP))
    return parts, sch.rfactor(name, group)


def _elements(sch: Schedule, loops: Sequence[LoopRef], threads: int) -> None:
    """The elements of a row, dealt out to the threads."""
    if not loops:
        return
    row = sch.fuse(*loops) if len(loops) > 1 else loops[0]
    _, lane = sch.split(row, (None, min(threads, sch.extent(row))))
    sch.bind(lane, "threadIdx.x")


def _keep_close(sch: Schedule, names: Sequence[str], row: LoopRef) -> None:
    """Keep what a block of threads makes in shared memory, the smallest tensors first, while they
    fit; the others stay in the device's.
    """
    left = SHARED_BYTES
    made = [tensor for name in names for tensor in targets_of(sch.func.block(name))]
    for tensor in sorted(made, key=lambda buffer: buffer.bytes):
        left -= tensor.bytes // sch.extent(row)
        if left >= 0:
            sch.set_scope(tensor.name, "team")
