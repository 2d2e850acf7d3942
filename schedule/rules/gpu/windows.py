"""Rule for windows on a GPU, weighed or not: depthwise convolution, pooling. A thread computes a
small tile of outputs, and holds what their windows read in registers, each element loaded once.

Neighbouring threads compute neighbours along the last axis, so a tile runs along the axes before
it. The padding is no copy in memory: who loads an element of it takes the constant.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ....tir.func import PrimFunc
from ....tir.stmt import Block, IterKind, IterVar
from ....tir.target.target import Target
from ....tir.visit import loads
from ...cost.grid import KernelPass
from ...nest import target_of
from ...schedule import Schedule
from ...trace.references import LoopRef
from ..anchored import only_reduction
from ..knobs.knobs import choose
from ..rule import Rule
from ..shape.structure import is_plain_store
from ..shape.windows import sliding_axes, window_box, window_taps
from .elementwise import DEFAULT_THREADS, THREADS, schedule_points
from .epilogue import moved_for, with_reader
from .kernels import row_kernels

MOST_TAPS = 64  # of a window, which is written out
MOST_COPIES = 256  # of an update: the taps of a tile
MOST_REGISTERS = 96  # for the results of a tile, what it reads, and weights
LONGEST = 8  # results of a tile along an axis
FEWEST_TILES = 1 << 15  # that keep a large GPU busy


@dataclass(frozen=True, slots=True)
class GridWindowsRule(Rule):
    """One reduction of small windows that slide along other axes than the last one, with what is
    computed of it element by element; the other blocks are pointwise.
    """

    name: ClassVar[str] = "grid windows"
    keeps_order: ClassVar[bool] = True

    def matches(self, func: PrimFunc) -> bool:
        """Whether there is one such reduction."""
        anchor = only_reduction(func)
        return anchor is not None and not func.dims and has_small_windows(anchor)

    def apply(self, sch: Schedule, target: Target) -> None:
        """Take the steps."""
        name, user = with_reader(sch)
        done = {name, user, *_schedule(sch, name, user)}
        for other in sch.blocks():
            if other not in done:
                schedule_points(sch, other)

    def passes(self, func: PrimFunc, target: Target) -> Sequence[KernelPass]:
        """The kernels of its rows."""
        return row_kernels(func)


def has_small_windows(block: Block) -> bool:
    """Whether a reduction is of windows of few elements that slide along other axes than the
    last.
    """
    spatial = [it for it in block.iters if it.kind is IterKind.SPATIAL]
    plain = is_plain_store(block, spatial)
    return plain and bool(_sliding(block)) and window_taps(block) <= MOST_TAPS


def _sliding(block: Block) -> list[IterVar]:
    """The last two axes, but for the last one of all, along which windows slide."""
    spatial = [it for it in block.iters if it.kind is IterKind.SPATIAL]
    slides = sliding_axes(block)
    return [it for it in spatial[:-1] if it.var in slides][-2:]


def _tiles(block: Block) -> list[tuple[int, ...]]:
    """Whole tiles whose results and windows fit the registers of a thread, the best one first: that
    which loads least, of those of which there are enough.
    """
    axes, taps = _sliding(block), window_taps(block)
    results = math.prod(it.extent for it in block.iters if it.kind is IterKind.SPATIAL)
    sizes = [[n for n in range(1, LONGEST + 1) if it.extent % n == 0] for it in axes]
    prices: dict[tuple[int, ...], tuple[bool, float]] = {}
    for tile in itertools.product(*sizes):
        count = math.prod(tile)
        box = window_box(block, {it.var: n for it, n in zip(axes, tile, strict=True)})
        fits = count + box + taps <= MOST_REGISTERS and count * taps <= MOST_COPIES
        if count == 1 or fits:
            few = results // count < FEWEST_TILES and count > 1
            prices[tile] = few, (box + taps) / count
    return sorted(prices, key=lambda tile: (prices[tile], tile))


def _schedule(sch: Schedule, name: str, user: str) -> list[str]:
    """Take the steps for the windows and for what reads their results. Returns the blocks that
    load what they read.
    """
    block = sch.func.block(name)
    tiles = _tiles(block)
    tile = choose(sch, "tile", name, tiles, tiles[0])
    threads = choose(sch, "threads of a block", name, THREADS, DEFAULT_THREADS)
    copies = _copies(sch, block)
    sizes = dict(zip(_sliding(block), tile, strict=True))
    outer, inner, taps = list[LoopRef](), list[LoopRef](), list[LoopRef]()
    for it, loop in zip(block.iters, sch.loops(name), strict=True):
        if it.kind is IterKind.REDUCE:
            taps.append(loop)
        elif sizes.get(it, 1) > 1:
            around, inside = sch.split(loop, (None, sizes[it]))
            outer.append(around)
            inner.append(inside)
        else:
            outer.append(loop)
    # an axis of one value has no digit that would show which tiles there are
    outer.sort(key=lambda loop: sch.extent(loop) == 1)
    sch.reorder(*outer, *taps, *inner)
    several = [loop for loop in outer if sch.extent(loop) > 1] or outer[:1]
    one = sch.fuse(*several) if len(several) > 1 else several[0]
    blocks, thread = sch.split(one, (None, min(threads, sch.extent(one))))
    sch.bind(blocks, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    loaded = [loop for copy in copies for loop in sch.compute_at(copy, thread)]
    for loop in (*taps, *inner, *loaded, *sch.reverse_compute_at(user, thread)):
        sch.unroll(loop)
    for kept in (*copies, name):
        sch.set_scope(target_of(sch.func.block(kept)).name, "register")
    return copies


def _copies(sch: Schedule, block: Block) -> list[str]:
    """Blocks that copy what the windows read, one for each operand."""
    read = dict.fromkeys(load.buffer for load in loads(block.body))
    made = {tensor: moved_for(sch.func, tensor) for tensor in read if tensor != target_of(block)}
    return [
        sch.cache_read(block.name, tensor.name) if mover is None else mover.name
        for tensor, mover in made.items()
    ]
