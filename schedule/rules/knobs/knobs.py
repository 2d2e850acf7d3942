"""What several rules leave open, asked in the same words.

The name of a question is what is asked and of which block: "tile of C". A question with one
candidate is not asked, nor one of a block that does little of the work.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import TypeVar

from ....tir.dtype import FLOAT32
from ....tir.stmt import ForKind
from ....tir.visit import loads
from ....tir.work.work import points_of
from ...nest import fixed_tensors, loops_around, targets_of
from ...schedule import Schedule
from ...trace.references import LoopRef
from .tiles import Tile

COPIES = (1, 2, 4, 8)  # of the body of a loop
MOST_WRITTEN_OUT = 64  # terms of a sum
MOST_COPIES = 512  # of a body, which are as many as lowering makes
MINOR = 16  # times the points of a block in a function that hardly changes with it
MOST_TILES = 12  # that a tuner may choose from

Choice = TypeVar("Choice")


def choose(
    sch: Schedule, what: str, block: str, candidates: Sequence[Choice], default: Choice
) -> Choice:
    """One of the candidates, each of which counts once; `default`, what the model takes, is one."""
    listed = list(dict.fromkeys(candidates))
    if default not in listed:
        listed.insert(0, default)
    if len(listed) == 1 or is_minor(sch, block):
        return default
    return sch.sample_categorical(listed, listed.index(default), name=f"{what} of {block}")


def choose_flag(sch: Schedule, what: str, block: str, default: bool) -> bool:
    """Yes or no."""
    return choose(sch, what, block, (False, True), default)


def is_minor(sch: Schedule, name: str) -> bool:
    """Whether a block does little of the work of a call."""
    fixed = fixed_tensors(sch.func)
    work = {b.name: points_of(b) for b in sch.func.blocks if fixed.isdisjoint(targets_of(b))}
    return work.get(name, 0) * MINOR <= sum(work.values())


def choose_copies(sch: Schedule, block: str, loop: LoopRef, piece: str = "") -> None:
    """Ask how many copies of the body of a block's innermost loop the C compiler should make.
    piece: which loop it is, of several.
    """
    sizes = [size for size in COPIES if size <= max(1, sch.extent(loop) // 2)]
    copies = choose(sch, f"copies of the body{piece}", block, sizes, 1)
    if copies > 1:
        sch.annotate(loop, "unroll_hint", copies)


def write_out(sch: Schedule, block: str, reduced: Sequence[LoopRef], most: int) -> int:
    """Write out the innermost of the loops of a sum, one copy of a tile's instructions for each
    term. Returns how many terms these are; by default at most `most`.
    """
    extents = [sch.extent(loop) for loop in reversed(reduced)]
    counts = list(itertools.accumulate(extents, operator.mul))
    default: int = max((count for count in counts if count <= most), default=0)
    most_asked = min(MOST_WRITTEN_OUT, MOST_COPIES // _copies(sch, block))
    choices = [0, *(n for n in counts if 1 < n <= most_asked), default]
    chosen: int = choose(sch, "terms written out", block, sorted(choices), default)
    for loop, count in zip(reversed(reduced), counts, strict=True):
        if count <= chosen:
            sch.unroll(loop)
    return chosen


def _copies(sch: Schedule, name: str) -> int:
    """How often the body of a block is copied at most, whose tile has been made: for each lane,
    where some targets take vectors of narrow numbers apart.
    """
    block = sch.func.block(name)
    is_narrow = any(load.buffer.type.bits < FLOAT32.bits for load in loads(block.body))
    kinds = (ForKind.UNROLLED, ForKind.VECTORIZED) if is_narrow else (ForKind.UNROLLED,)
    return math.prod(loop.extent for loop in loops_around(sch.func, block) if loop.kind in kinds)


def choose_tile(sch: Schedule, block: str, tiles: Sequence[Tile]) -> Tile:
    """One of the first of the tiles of a block, the best by the model first."""
    listed = [tile.to_json() for tile in tiles[:MOST_TILES]]
    return Tile(*choose(sch, "tile", block, listed, listed[0]))
