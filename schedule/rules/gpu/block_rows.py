"""Rule for a few rows times weights of few bits on a GPU: levels are read in vectors of columns and
unpacked in registers, the sums of a block are scaled, and what threads have of an element is added
up through shared memory.

The weights are read once, so their bytes are what a call takes. Neighbouring threads have
neighbouring columns, a sector of memory or more for each word of them; the other threads of a block
have the same columns and share the blocks of steps out. Scales and zeros are read once for a block
of steps, the data for each word of levels, by all threads at once out of the cache.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ....tir.analysis.threads import WARP
from ....tir.dtype import FLOAT32
from ....tir.expr import Select
from ....tir.func import PrimFunc
from ....tir.stmt import IterKind
from ....tir.target.target import Target
from ....tir.visit import found_in, loads
from ....tir.work.work import block_operations, block_work, points_of
from ...cost.grid import KernelPass
from ...nest import fixed_tensors, loops_around, target_of
from ...schedule import Schedule
from ...trace.references import LoopRef
from ..knobs.knobs import choose
from ..products.block_rows import ScaledSums, scaled_sums
from ..rule import Rule
from ..shape.structure import inline_chains, pointwise_output
from .elementwise import VECTOR_BYTES, schedule_points
from .epilogue import moved_for
from .shared_sums import MOST_ROWS, finish_sums

FEWEST_PARTS = 4  # of the blocks of steps, a thread each
MOST_PARTS = 64
MOST_THREADS = 512  # of a block; half of them where each keeps the sums of more than FEW_ROWS rows
FEW_ROWS = 4
COPIES = 4  # of the body of the loop over words, whose loads are under way at once
BUSY = 1 << 17  # threads that have a load under way wherever a large GPU waits for memory


@dataclass(frozen=True, slots=True)
class GridBlockRowsRule(Rule):
    """Sums of blocks of a few rows, scaled and added up; pointwise blocks around them."""

    name: ClassVar[str] = "grid block rows"

    def matches(self, func: PrimFunc) -> bool:
        """Whether the function has these two sums, of blocks enough for several threads."""
        sch = Schedule(func)
        inline_chains(sch)
        found = scaled_sums(sch.func)
        return found is not None and not func.dims and _blocks(found) >= FEWEST_PARTS

    def apply(self, sch: Schedule, target: Target) -> None:
        """Take the steps."""
        inline_chains(sch)
        found = scaled_sums(sch.func)
        assert found is not None
        listed = sch.blocks()
        done = _Steps(sch, found).take()
        for name in listed:
            if name not in done:
                schedule_points(sch, name)

    def passes(self, func: PrimFunc, target: Target) -> Sequence[KernelPass]:
        """One kernel, which reads everything once; a tile of rows unpacks the weights once."""
        sch = Schedule(func)
        inline_chains(sch)
        found = scaled_sums(sch.func)
        assert found is not None
        blocks = [found.inner, found.outer]
        behind = pointwise_output(sch.func, found.outer)
        if behind is not None:
            blocks.append(behind)
        works, inside = [block_work(block) for block in blocks], set(sch.func.allocations)
        read = {b: n for work in works for b, n in work.read if b not in inside}
        moved = works[-1].written + sum(read.values())
        points, rows = points_of(found.inner), math.prod(it.extent for it in found.spatial[:-1])
        unpacked = block_operations(found.inner) - 2 * points  # if each row did it
        again = unpacked - unpacked * -(-rows // MOST_ROWS) // rows
        return (KernelPass(sum(map(block_operations, blocks)) - again, moved),)


def _blocks(found: ScaledSums) -> int:
    return math.prod(it.extent for it in found.outer.iters if it.kind is IterKind.REDUCE)


class _Steps:
    """The steps for two sums, the outer of which runs over rows, a column and the blocks."""

    def __init__(self, sch: Schedule, found: ScaledSums) -> None:
        self.sch = sch
        self.outer, self.inner = found.outer.name, found.inner.name
        self.rows = [it.extent for it in found.spatial[:-1]]
        self.columns = found.spatial[-1].extent
        self.blocks = _blocks(found)
        types = [load.buffer.type for _, load in found.fixed]
        widest = max(kind.bytes for kind in (*types, target_of(found.outer).type))
        self.lanes = math.gcd(VECTOR_BYTES // widest, self.columns)
        self.wide = min(WARP, self.columns)  # columns of a block
        self.across = self.wide // self.lanes
        self.data = _data(sch.func, found)
        fixed = {load.buffer: None for block, load in found.fixed if block is found.inner}
        levels = max(fixed, key=lambda buffer: buffer.bytes)
        self.levels = levels.name
        self.zeros = [buffer.name for buffer in fixed if buffer is not levels]

    def take(self) -> set[str]:
        """Take them. Returns the names of the blocks that are done."""
        sch = self.sch
        _, part = sch.split(self._block_loop(), (None, self._parts()), tail="mask")
        partial = sch.rfactor(self.outer, part)
        copy = sch.cache_read(self.outer, partial)
        *rows, column, _ = sch.loops(self.outer)
        columns, lane = sch.split(column, (None, self.wide))
        outside, inside = self._tiles(rows)
        sch.reorder(*outside, columns, *inside, lane)
        if outside:
            sch.bind(sch.fuse(*outside) if len(outside) > 1 else outside[0], "blockIdx.y")
        sch.bind(columns, "blockIdx.x")
        self._copied(copy, columns)
        made = self._sums(partial, columns)
        done = finish_sums(sch, self.outer, columns, inside, lane, across=self.across)
        return {*made, *done, copy}

    def _tiles(self, rows: Sequence[LoopRef]) -> tuple[list[LoopRef], list[LoopRef]]:
        """The loops over tiles of rows, and those within a tile, of MOST_ROWS at most."""
        if math.prod(self.rows) <= MOST_ROWS:
            return [], list(rows)
        longest = max(range(len(rows)), key=lambda place: self.rows[place])
        others = [row for place, row in enumerate(rows) if place != longest]
        count = -(-self.rows[longest] // MOST_ROWS)
        tile, row = self.sch.split(rows[longest], (None, -(-self.rows[longest] // count)))
        return [*others, tile], [row]

    def _block_loop(self) -> LoopRef:
        """The loop over blocks of the outer sum."""
        block = self.sch.func.block(self.outer)
        (place,) = (n for n, it in enumerate(block.iters) if it.kind is IterKind.REDUCE)
        around = loops_around(self.sch.func, block)
        where = next(n for n, loop in enumerate(around) if loop.var is block.bindings[place])
        return self.sch.loops(self.outer)[where]

    def _parts(self) -> int:
        """Threads that share out the blocks of a column: all of them as many, where that is
        possible.
        """
        threads = MOST_THREADS if math.prod(self.rows) <= FEW_ROWS else MOST_THREADS // 2
        most = min(threads // self.across, MOST_PARTS, self.blocks)
        choices = [n for n in range(FEWEST_PARTS, most + 1) if self.blocks % n == 0]
        if not choices:  # of a last round of one thread, what it reads has no index of its own
            choices = [max(n for n in range(FEWEST_PARTS, most + 1) if self.blocks % n != 1)]
        columns = -(-self.columns // self.lanes) * math.prod(self.rows)
        enough = [n for n in choices if n * columns >= BUSY]
        return choose(self.sch, "parts of a sum", self.outer, choices, min(enough or choices[-1:]))

    def _sums(self, partial: str, columns: LoopRef) -> tuple[str, ...]:
        """What each thread has: for its blocks, the sums of a block and what they add up to."""
        sch, count = self.sch, len(self.rows)
        part, *others = sch.compute_at(partial, columns)
        own, column, block = others[:count], others[count], others[count + 1 :]
        vector, lane = sch.split(column, (None, self.lanes))
        sch.reorder(part, vector, *block, *own, lane)
        sch.bind(part, "threadIdx.y")
        sch.bind(vector, "threadIdx.x")
        place = (*block, vector)[0]
        sums = sch.compute_at(self.inner, place)
        held = [self._held(buffer, place, self.lanes) for buffer in self.zeros]
        for loop in own:
            sch.unroll(loop)
        sch.vectorize(lane)
        sch.set_scope(target_of(sch.func.block(partial)).name, "register")
        return (partial, *held, *self._words(sums))

    def _words(self, loops: Sequence[LoopRef]) -> tuple[str, ...]:
        """The sums of a block: for each word of levels, the numbers of it in turn."""
        sch = self.sch
        *own, column, word, step = loops
        sch.reorder(word, step, *own, column)
        made = self._loaded(word)
        for loop in (step, *own):
            sch.unroll(loop)
        if sch.extent(word) > 1:
            sch.annotate(word, "unroll_hint", min(COPIES, sch.extent(word)))
        sch.vectorize(column)
        sch.set_scope(target_of(sch.func.block(self.inner)).name, "register")
        return (self.inner, *made)

    def _loaded(self, word: LoopRef) -> tuple[str, ...]:
        """Load a word of each column once, and the data of a word at once, where nothing is decided
        of an element of it.
        """
        made = [self._held(self.levels, word, self.lanes)]
        if self.data is not None:
            made.append(self._held(self.data, word, VECTOR_BYTES // FLOAT32.bytes))
        return tuple(made)

    def _held(self, buffer: str, place: LoopRef, most: int) -> str:
        """Read what a thread needs of a tensor below a loop into registers, or make it there where
        it is made for these sums alone. Returns the block that does.
        """
        sch = self.sch
        copy = self._maker(buffer) or sch.cache_read(self.inner, buffer)
        *others, last = sch.compute_at(copy, place)
        *whole, lane = sch.split(last, (None, math.gcd(most, sch.extent(last))))
        for loop in (*others, *whole):
            sch.unroll(loop)
        sch.vectorize(lane)
        sch.set_scope(target_of(sch.func.block(copy)).name, "register")
        return copy

    def _maker(self, buffer: str) -> str | None:
        """The block that moves elements to a tensor for the inner sum alone."""
        func = self.sch.func
        made = next((own for own in func.allocations if own.name == buffer), None)
        moved = None if made is None else moved_for(func, made)
        return None if moved is None else moved.name

    def _copied(self, copy: str, columns: LoopRef) -> None:
        """What a thread has goes to shared memory."""
        sch = self.sch
        part, *others = sch.compute_at(copy, columns)
        *own, column = others
        vector, lane = sch.split(column, (None, self.lanes))
        sch.reorder(part, vector, *own, lane)
        sch.bind(part, "threadIdx.y")
        sch.bind(vector, "threadIdx.x")
        for loop in own:
            sch.unroll(loop)
        sch.vectorize(lane)
        sch.set_scope(target_of(sch.func.block(copy)).name, "shared")


def _data(func: PrimFunc, found: ScaledSums) -> str | None:
    """The tensor of the data, where it is read as it is."""
    fixed = {load.buffer for _, load in found.fixed} | fixed_tensors(func)
    read = [load for load in loads(found.inner.body) if load.buffer not in fixed]
    own = [load for load in read if load.buffer is not target_of(found.inner)]
    chosen = any(isinstance(node, Select) for node in found_in(found.inner.body, Select))
    return own[0].buffer.name if len(own) == 1 and not chosen else None
