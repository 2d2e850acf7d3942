"""A row's blocks on the threads of a warp, or of a block: who has which elements, where they are
kept, and the parts of each reduction.

Element j of a row is one of vector j // lanes; vectors go round the threads. A reduction leaves

    V[t, q]   for each element q of a vector, over the vectors of thread t     in registers
    T[t]      for each thread, over these                                      in registers
    W[w]      for each warp, a tree over its threads                           in shared memory
    S         for the row, a tree over the warps                               in registers of all

without W where a row is a warp's. What is computed of S alone all threads compute.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ....tir.analysis.threads import WARP
from ....tir.buffer import Buffer, Load
from ....tir.stmt import Block, IterKind
from ....tir.visit import loads
from ...nest import is_reduction, read_indices, readers, targets_of
from ...schedule import Schedule
from ...trace.references import LoopRef
from ..knobs.knobs import choose
from ..shape.row_groups import RowGroup, row_axis
from .elementwise import VECTOR_BYTES

WARPS = (1, 2, 4, 8, 16)  # of a row
ROWS = (1, 2, 4, 8)  # of a block, each a warp's
DEFAULT_ROWS = 4
LONGEST_OF_WARP = 1024  # elements of a row that one warp takes where there are many rows
MANY_ROWS = 2048
FEW_ROWS = 512  # whose warps are blocks of their own
FEW_ELEMENTS = 8  # of a thread, where threads are few
MOST_KEPT = 32  # elements of one tensor in a thread's registers
MOST_REGISTERS = 96  # of all of them
SHARED_BYTES = 48 << 10  # of intermediates of a row
COPIES = 4  # of the body of a loop over the vectors of a thread


@dataclass(frozen=True, slots=True)
class _Deal:
    """How a row is dealt out.

    length: its elements; lanes: of a vector; warps: that share it; rows: of a block, where a warp
    has each; axis: the place, among the axes of rows, of the one along which these lie.
    """

    length: int
    lanes: int
    warps: int
    rows: int
    axis: int

    @property
    def of_thread(self) -> int:
        """Elements that a thread has, at most."""
        return -(-self.length // (self.warps * WARP * self.lanes)) * self.lanes

    @property
    def extents(self) -> tuple[int, ...]:
        """The extents of the loops over the threads of a row."""
        return (WARP,) if self.warps == 1 else (self.warps, WARP)

    @property
    def axes(self) -> tuple[str, ...]:
        """Their axes."""
        return ("threadIdx.y", "threadIdx.x")[-len(self.extents) :]


def row_length(sch: Schedule, group: RowGroup) -> int:
    """Elements of a row: of the last axis of its blocks."""
    blocks = [sch.func.block(name) for name in (*group.members, group.anchor)]
    return max((block.iters[-1].extent for block in blocks if block.iters), default=1)


def schedule_row(sch: Schedule, group: RowGroup, *, in_order: bool) -> None:
    """Take the steps for the blocks of a group. in_order: no reduction is taken in parts."""
    _RowSchedule(sch, group, in_order).take()


class _RowSchedule:
    """The steps for one group.

    names: its blocks, the anchor last; parts: those that each reduction is cut into, outermost
    last; kept: tensors of which each thread keeps its elements of the row.
    """

    def __init__(self, sch: Schedule, group: RowGroup, in_order: bool) -> None:
        self.sch = sch
        self.rows = group.rows
        self.anchor = group.anchor
        self.names = [*group.members, group.anchor]
        self.deal = _deal(sch, group)
        self.kept: set[str] = set()
        if not in_order and self.deal.of_thread <= MOST_KEPT:
            self.keep()
        self.parts = {name: () if in_order else self.in_parts(name) for name in self.names}
        self.below: dict[str, Sequence[LoopRef]] = {}

    # -- what is kept

    def keep(self) -> None:
        """Choose what each thread keeps, and load once what several blocks read."""
        most = MOST_REGISTERS // self.deal.of_thread
        for name in self.names[:-1]:
            for tensor in targets_of(self.sch.func.block(name)):
                users = readers(self.sch.func, tensor)
                if len(self.kept) < most and all(self.is_own(u, tensor) for u in users):
                    self.kept.add(tensor.name)
        made = {b for name in self.names for b in targets_of(self.sch.func.block(name))}
        read = {load.buffer: None for name in self.names for load in self.loads_of(name)}
        for tensor in read:
            users = readers(self.sch.func, tensor)
            mine = [user for user in users if user.name in self.names]
            shared = len(mine) > 1 and len(mine) == len(users) and tensor not in made
            if shared and len(self.kept) < most and all(self.is_own(u, tensor) for u in mine):
                copy = self.sch.cache_read(mine[0].name, tensor.name, everyone=True)
                self.names.insert(self.names.index(mine[0].name), copy)
                self.kept.add(copy)

    def loads_of(self, name: str) -> tuple[Load, ...]:
        """What a block of the function reads."""
        return loads(self.sch.func.block(name).body)

    def is_own(self, block: Block, tensor: Buffer) -> bool:
        """Whether each element of a row that a block of the group reads is the one that its last
        axis is at.
        """
        spatial = [it for it in block.iters if it.kind is IterKind.SPATIAL]
        last = block.iters[-1] if block.iters else None
        if block.name not in self.names or last is None or last.extent != self.deal.length:
            return False
        own = (*(it.var for it in spatial[: self.rows]), last.var)
        return all(indices == own for indices in read_indices(block, tensor))

    # -- parts

    def in_parts(self, name: str) -> tuple[str, ...]:
        """Cut a reduction along the row; the parts in the order in which they run."""
        sch, deal = self.sch, self.deal
        block = sch.func.block(name)
        axis = row_axis(block) if is_reduction(block) else None
        if axis is None or axis.extent < WARP:
            return ()
        threads = deal.warps * WARP
        _, element = sch.split(sch.loops(name)[-1], (None, threads * deal.lanes))
        made = [sch.rfactor(name, element)]
        if deal.lanes > 1:
            thread, _ = sch.split(sch.loops(name)[-1], (threads, deal.lanes))
            made.append(sch.rfactor(name, thread))
        if deal.warps > 1:
            warp, _ = sch.split(sch.loops(name)[-1], (deal.warps, WARP))
            made.append(sch.rfactor(name, warp))
        return tuple(made)

    # -- loops

    def take(self) -> None:
        """Put all below the loop over rows, and its loops to threads."""
        sch = self.sch
        listed = [part for name in self.names for part in (*self.parts[name], name)]
        own = sch.loops(self.anchor)[-len(sch.func.block(self.anchor).iters) :]
        row, warp = self.outer_loops(own[: self.rows])
        for name in reversed(listed[:-1]):
            self.below[name] = sch.compute_at(name, row)
        sch.bind(row, "blockIdx.x")
        self.below[self.anchor] = (*(warp or row for _ in range(self.rows)), *own[self.rows :])
        if warp is not None:
            sch.bind(warp, "threadIdx.y")
        for name in self.names:
            self.to_threads(name)
        self.scopes(listed[:-1], row)
        block = sch.func.block(self.anchor)
        whole = is_reduction(block) and not self.parts[self.anchor]
        for tensor in targets_of(block) if whole else ():
            sch.stage(self.anchor, tensor.name, warp or row, "register")

    def outer_loops(self, rows: Sequence[LoopRef]) -> tuple[LoopRef, LoopRef | None]:
        """The loop over the rows, or over groups of them and that inside of a group."""
        sch, deal = self.sch, self.deal
        if deal.rows == 1:
            return (sch.fuse(*rows) if len(rows) > 1 else rows[0]), None
        outer, warp = sch.split(rows[deal.axis], (None, deal.rows))
        outside = [*rows[: deal.axis], outer, *rows[deal.axis + 1 :]]
        sch.reorder(*outside, warp)
        return (sch.fuse(*outside) if len(outside) > 1 else outer), warp

    def to_threads(self, name: str) -> None:
        """Bind the loops of a block, and of the parts of it."""
        sch, deal = self.sch, self.deal
        parts = self.parts[name]
        if not is_reduction(sch.func.block(name)):
            self.elements(name)
        elif parts:
            self.join(name, parts)
        for part in (*parts, *(() if name == self.anchor else (name,))):
            if deal.rows > 1:
                sch.bind(self.below[part][deal.axis + (part in parts)], "threadIdx.y")

    def join(self, name: str, parts: Sequence[str]) -> None:
        """Bind the loops of the parts of a reduction, and of what joins the last of them."""
        sch, deal = self.sch, self.deal
        self.vectors(parts[0])
        if deal.lanes > 1:
            thread, *_, lane = self.below[parts[1]]
            self.bound(sch.split(thread, deal.extents) if deal.warps > 1 else (thread,))
            sch.unroll(lane)
        if deal.warps > 1:
            warp, *_, lane = self.below[parts[-1]]
            self.bound((warp, lane))
        sch.bind(self.below[name][-1], "threadIdx.x")

    def vectors(self, part: str) -> None:
        """The loops of what a thread makes of its vectors: one result for each element."""
        sch, deal = self.sch, self.deal
        element, *others = self.below[part]
        loops = sch.split(
            element, (*deal.extents, deal.lanes)[: len(deal.extents) + (deal.lanes > 1)]
        )
        threads, lane = loops[: len(deal.extents)], loops[len(deal.extents) :]
        sch.reorder(*threads, *others, *lane)
        self.bound(threads)
        if is_reduction(sch.func.block(part)):  # with one vector for each thread it is a copy
            self.copied(part, others[-1])
        for loop in lane:
            sch.vectorize(loop)

    def elements(self, name: str) -> None:
        """The elements of a row of a block, dealt out to the threads."""
        sch, deal = self.sch, self.deal
        *loops, last = self.below[name][self.rows :] or (None,)
        if last is None or math.prod(sch.extent(loop) for loop in (*loops, last)) == 1:
            return
        lanes = math.gcd(deal.lanes, sch.extent(last))
        last, *lane = sch.split(last, (None, lanes)) if lanes > 1 else (last,)
        one = sch.fuse(*loops, last) if loops else last
        vector, *threads = sch.split(one, (None, *deal.extents))
        self.bound(threads)
        self.copied(name, vector)
        for loop in lane:
            sch.vectorize(loop)

    def bound(self, loops: Sequence[LoopRef]) -> None:
        """Bind the loops over the threads of a row."""
        for loop, axis in zip(loops, self.deal.axes, strict=True):
            self.sch.bind(loop, axis)

    def copied(self, name: str, loop: LoopRef) -> None:
        """Write out the loop over a thread's vectors, where it keeps them."""
        block = self.sch.func.block(name)
        touched = {load.buffer.name for load in loads(block.body)}
        if self.kept & (touched | {tensor.name for tensor in targets_of(block)}):
            self.sch.unroll(loop)
        elif self.sch.extent(loop) > 1:
            self.sch.annotate(loop, "unroll_hint", min(COPIES, self.sch.extent(loop)))

    # -- memory

    def scopes(self, names: Sequence[str], row: LoopRef) -> None:
        """Keep what is made of a row close: in registers what a thread, or all of them, have; in
        shared memory what the others read, the smallest tensors first, while they fit.
        """
        sch = self.sch
        joined = {parts[-1] for parts in self.parts.values() if parts and self.deal.warps > 1}
        shared = []
        for name in names:
            block = sch.func.block(name)
            whole = is_reduction(block) or all(it.extent == 1 for it in block.iters[self.rows :])
            own = name not in joined and (whole or name not in self.parts)
            for tensor in targets_of(block):
                if own or tensor.name in self.kept:
                    sch.set_scope(tensor.name, "register")
                else:
                    shared.append(tensor)
        left = SHARED_BYTES
        for tensor in sorted(shared, key=lambda buffer: buffer.bytes):
            left -= tensor.bytes // sch.extent(row)
            if left >= 0:
                sch.set_scope(tensor.name, "shared")


def _deal(sch: Schedule, group: RowGroup) -> _Deal:
    """How the rows of a group are dealt out."""
    length, axes = row_length(sch, group), sch.func.block(group.anchor).iters[: group.rows]
    count = math.prod(it.extent for it in axes)
    lanes = _lanes(sch, group, length)
    warps = choose(sch, "warps of a row", group.anchor, WARPS, _warps(length, lanes, count))
    axis = max(range(len(axes)), key=lambda place: axes[place].extent)
    most = axes[axis].extent
    default = DEFAULT_ROWS if count >= FEW_ROWS and most >= 2 * DEFAULT_ROWS else 1
    choices = [rows for rows in ROWS if rows <= most]
    rows = choose(sch, "rows of a block", group.anchor, choices, default) if warps == 1 else 1
    return _Deal(length, lanes, warps, rows, axis)


def _warps(length: int, lanes: int, count: int) -> int:
    """Warps of a row by default."""
    if length <= LONGEST_OF_WARP and (count >= MANY_ROWS or length <= 2 * WARP * lanes):
        return 1
    most = max(lanes, FEW_ELEMENTS * (2 if count >= FEW_ROWS else 1))
    fitting = (n for n in WARPS if -(-length // (n * WARP * lanes)) * lanes <= most)
    return next(fitting, WARPS[-1])


def _lanes(sch: Schedule, group: RowGroup, length: int) -> int:
    """Elements of a vector: as many as the widest type allows, and rows are made of; not more than
    leave each thread of a warp some.
    """
    blocks = [sch.func.block(name) for name in (*group.members, group.anchor)]
    touched = {load.buffer for block in blocks for load in loads(block.body)}
    touched |= {tensor for block in blocks for tensor in targets_of(block)}
    widest = max(x.type.bytes for x in touched if x.shape and x.shape[-1] == length)
    lanes = math.gcd(VECTOR_BYTES // widest, length)
    while lanes > 1 and lanes * WARP > length:
        lanes //= 2
    return lanes
