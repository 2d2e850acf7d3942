"""How the steps of a sum of products are cut: parts that round less, blocks whose panels stay in a
cache, chunks between which prefetches stand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ....tir.expr import Var
from ....tir.visit import free_vars
from ...schedule import Schedule
from ...trace.references import LoopRef
from ..knobs.knobs import choose
from ..shape.structure import Contraction
from .prefetching import chunks

REDUCTION_BLOCK = 1024  # steps whose panel of weights stays in the level-2 cache
BLOCKS = (256, 512, 1024, 2048)  # steps, of which a tuner may choose
LONG_SUM = 1024  # steps from which on a sum is taken in parts
PART = 512  # steps of a part at most
PART_OF_ROWS = 128  # the same, of weights whose rows are walked as they lie
LEAST_PART = 64  # steps of a part that a tuner may choose
MOST_PARTS = 4  # sizes of parts that a tuner may choose from
SPACINGS = (4, 8, 16, 32)  # steps from one place that asks for what comes next to the following one


def reduction_order(found: Contraction) -> list[Var]:
    """The reduction axes: taps of windows first, the one that walks the data contiguously last.

    What neighbouring windows share is read again, and not kept: with taps innermost gcc carries it
    from step to step in scalar registers, which took 3x3 and 7x7 sums 1.4 times as long.
    """
    kept = {axis.var for axis in found.rows}
    mixed = [used for used in map(free_vars, found.data.indices) if used & kept]
    last = free_vars(found.data.indices[-1])
    return sorted(
        (axis.var for axis in found.reduced),
        key=lambda var: (not any(var in used for used in mixed), var in last),
    )


def choose_part(sch: Schedule, found: Contraction, points: int, most: int = PART) -> int | None:
    """Points of the innermost reduction axis in one part of a long sum; None for a short one.

    The rounding error of a sum grows with the root of its length: parts of at most `PART` steps
    keep it near that of the peers, at the cost of an addition per element and part. A part is a
    number of steps of `points`. most: points of the part that is taken by default, if it can be.
    """
    steps = math.prod(axis.extent for axis in found.reduced)
    inner = next(a.extent for a in found.reduced if a.var is reduction_order(found)[-1])
    taps = steps // max(1, inner)
    fitting = parts_of(inner, taps, points)
    if steps < LONG_SUM or not fitting:
        return None
    longer = [d for d in fitting if taps * d >= LEAST_PART]
    sizes = longer[-MOST_PARTS:]
    default = max((size for size in sizes if size <= most), default=fitting[-1])
    return choose(sch, "steps in a part", found.block.name, sizes, default)


def parts_of(inner: int, taps: int, points: int = 1) -> list[int]:
    """Points of an innermost reduction axis that a part may have; each point is `taps` steps."""
    sizes = range(8, min(inner // 2, PART // max(1, taps)) + 1)
    return [d for d in sizes if inner % d == 0 and d % points == 0]


@dataclass(frozen=True, slots=True)
class Sum:
    """The loops of a sum: over its parts; over parts or blocks; and inside of these."""

    parts: LoopRef | None
    block: LoopRef | None
    inside: tuple[LoopRef, ...]


def cut_sum(
    sch: Schedule,
    name: str,
    reduced: Sequence[LoopRef],
    part: int | None,
    row_tiles: int,
    every: int,
    least: int,
    *,
    asks: bool,
) -> Sum:
    """Cut a long sum into parts of `part` steps, or, along one axis, into blocks whose panels the
    level-2 cache holds. Where several tiles of rows share a panel, cut what is left of it into
    chunks of `every` steps, if the whole has `least`; a sum over the taps of windows if it `asks`
    for anything between them.
    """
    *taps, inside = reduced
    parts = None
    in_chunks = row_tiles > 1 and (asks or not taps)
    if part is not None:
        parts, inside = sch.split(inside, (None, part))
    elif not in_chunks or sch.extent(inside) < least:
        return Sum(None, None, tuple(reduced))
    if not in_chunks:
        return Sum(parts, parts, (*taps, inside))
    block, steps = parts, sch.extent(inside)
    if parts is None and not taps:
        sizes = [0, *(size for size in BLOCKS if size < steps)]
        default = REDUCTION_BLOCK if steps > REDUCTION_BLOCK else 0
        size = choose(sch, "steps in a block", name, sizes, default)
        if size:
            block, inside = sch.split(inside, (None, size), tail="partition")
    sizes = [0, *(size for size in SPACINGS if size < sch.extent(inside))]
    every = choose(sch, "steps between prefetches", name, sizes, every)
    return Sum(parts, block, (*taps, *(chunks(sch, inside, every) if every else (inside,))))
