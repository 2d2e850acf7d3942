"""Products of few rows and columns and many steps: the steps are cut into parts, each a product of
its own, that threads share out; the parts are added up in the end.

The results have the same bits on any number of threads: how many parts there are is a choice of the
schedule.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ....tir.stmt import Block
from ....tir.target.target import CpuTarget
from ....tir.visit import loads
from ....tir.work.work import points_of
from ...schedule import Schedule
from ..knobs.knobs import choose
from ..knobs.threads import SERIAL_ELEMENTS
from ..long_sums import FEW_TASKS, PARTS
from ..shape.structure import Contraction
from .groups import is_grouped
from .sum_blocks import LONG_SUM, parts_of, reduction_order

LONGEST_CHAIN = 1 << 15  # products that are added one after the other; parts read every n-th step
TASK_RESULTS = 12  # vectors of a tile, about, that a thread takes at once


def cut_product(sch: Schedule, found: Contraction, target: CpuTarget) -> Contraction:
    """A product whose steps are cut into as many parts as is chosen, by default one: then as it
    is. The parts are the first of its batch.
    """
    name, least = found.block.name, _fewest_parts(found)
    counts = _part_counts(found, target) if least == 1 else [least]
    count = choose(sch, "parts", name, counts, least)
    if count == 1:
        return found
    axis = reduction_order(found)[-1]
    place = next(n for n, it in enumerate(found.block.iters) if it.var is axis)
    loop = sch.loops(name)[-len(found.block.iters) :][place]
    if sch.extent(loop) % count == 0:
        parts, _ = sch.split(loop, (count, None))
    else:  # every count-th step
        _, parts = sch.split(loop, (None, count), tail="mask")
    made = sch.rfactor(name, parts)
    around = sch.loops(made)
    sch.reorder(parts, *(other for other in around if other != parts))
    return _product_of_parts(found, sch.func.block(made))


def _fewest_parts(found: Contraction) -> int:
    """Parts of a sum of floats that would else be a long chain: where `choose_part` finds none of
    it, or too many.
    """
    if found.total.is_integer or not _can_be_cut(found):
        return 1
    inner = next(it.extent for it in found.reduced if it.var is reduction_order(found)[-1])
    taps = math.prod(it.extent for it in found.reduced) // max(1, inner)
    fitting = (n for n in range(1, inner + 1) if n == 1 or inner % n != 1)
    return next((n for n in fitting if _chain(inner, taps, n) <= LONGEST_CHAIN), 1)


def _chain(inner: int, taps: int, count: int) -> int:
    """Products that are added one after the other, of `taps` times `inner` steps in so many
    parts.
    """
    steps = taps * -(-inner // count)
    parts = parts_of(inner // count, taps) if inner % count == 0 and steps >= LONG_SUM else ()
    return steps // (taps * parts[-1]) if parts else steps


def _can_be_cut(found: Contraction) -> bool:
    """Whether the parts of a product are products of one batch."""
    alike = found.data.buffer is found.weight.buffer
    return not (found.batch or alike or is_grouped(found))


def _part_counts(found: Contraction, target: CpuTarget) -> list[int]:
    """The numbers of parts that may pay: where threads have few tiles, and a part is worth a
    barrier.
    """
    lanes = target.lanes(found.total)
    rows = math.prod(axis.extent for axis in found.rows)
    tiles = rows * -(-found.vector.extent // lanes) / TASK_RESULTS
    steps = next(it.extent for it in found.reduced if it.var is reduction_order(found)[-1])
    if not _can_be_cut(found) or tiles >= FEW_TASKS * target.threads:
        return [1]
    most = points_of(found.block) // SERIAL_ELEMENTS if target.threads > 1 else 1
    return [1, *(n for n in PARTS if steps % n != 1 and n <= most)]


def _product_of_parts(found: Contraction, block: Block) -> Contraction:
    """The block of the parts of a product, as a product."""
    read = {load.buffer: load for load in loads(block.body)}
    data, weight = read[found.data.buffer], read[found.weight.buffer]
    reduced = tuple(it for it in block.iters if it.kind is found.reduced[0].kind)
    return replace(
        found, block=block, data=data, weight=weight, batch=block.iters[:1], reduced=reduced
    )
