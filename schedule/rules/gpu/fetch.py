"""How the threads of a block fetch what a slice of a product needs into shared memory."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ....tir.stmt import THREAD_AXES, Block
from ...library import deal_out
from ...nest import fixed_tensors
from ...schedule import Schedule
from ...trace.references import LoopRef
from ..knobs.knobs import choose
from ..products.made_panels import made_of_less, steps_of_word
from .elementwise import neighbours
from .operands import Product, ProductOperand, inline_moves

BANKS = 32  # of shared memory, of four bytes each


def fetched(
    sch: Schedule,
    found: Product,
    operand: ProductOperand,
    slices: LoopRef,
    threads: int,
    at_once: int = 1,
) -> set[str]:
    """Let the threads of a block fetch what a slice needs of an operand: neighbours fetch what lies
    side by side, in vectors where there are enough for all. at_once: columns that a thread reads at
    once. Returns the blocks that fetch.

    Shared memory has a row for each term, along which the threads of a row of columns read; or one
    for each row of the tile, of which few are read at once, where terms lie side by side.
    """
    name, tensor = found.block.name, operand.load.buffer
    maker = made_of_less(sch.func, tensor, sch.func.block(name))
    copy = sch.reindex(name, tensor.name)
    if maker is not None:
        return {_unpacked(sch, copy, maker, slices, threads)}
    inline_moves(sch, copy)
    made, lanes = {copy}, 1
    along_terms = operand.lies_along(found.reduction_order)
    by_rows = along_terms and operand is found.rows
    if along_terms and tensor.name in {b.name for b in fixed_tensors(sch.func)}:
        turned(sch, copy)
        deal_out(sch, copy)
        copy, along_terms = sch.cache_read(name, copy), False
        lanes = neighbours(sch.func.block(copy))
        made.add(copy)
    elif by_rows:
        lanes = operand.lanes(found.reduction_order[-1])
    else:
        turned(sch, copy)
        lanes = 1 if along_terms else operand.lanes(operand.axes[-1])
    each = list(sch.compute_at(copy, slices))
    if along_terms and not by_rows:
        depth = sch.extent(each[-2])
        sch.storage_align(copy, len(each) - 2, BANKS, max(at_once, BANKS // depth))
        each[-2:] = each[:-3:-1]
        sch.reorder(*each)
    deal_among(sch, each, (threads, threads), lanes)
    sch.set_scope(copy, "shared")
    return made


def _unpacked(sch: Schedule, copy: str, maker: Block, slices: LoopRef, threads: int) -> str:
    """Compute what a slice needs of weights that are made of few bits where they are fetched: a
    thread loads a word of a column and stores all steps of it, or as many as leave none idle.
    """
    together = steps_of_word(maker)
    sch.compute_inline(maker.name)
    turned(sch, copy)
    *others, step, column = sch.compute_at(copy, slices)
    together, size = math.gcd(together, sch.extent(step)), sch.extent(step) * sch.extent(column)
    while together > 1 and size // together % threads**2:
        together //= 2
    steps, inside = sch.split(step, (None, together))
    sch.reorder(*others, steps, column, inside)
    one = sch.fuse(steps, column) if sch.extent(steps) > 1 else column
    _, *bound = sch.split(one, (None, threads, threads))
    for loop, axis in zip(reversed(bound), THREAD_AXES, strict=False):
        sch.bind(loop, axis)
    sch.unroll(inside)
    sch.set_scope(copy, "shared")
    return copy


def fetch_ahead(sch: Schedule, name: str, slices: LoopRef, stages: Sequence[int]) -> None:
    """Fetch slices of a block's product ahead of their use, as far as there are so many. stages:
    how many may lie in shared memory, the default first.
    """
    count = choose(sch, "stages", name, stages, stages[0])
    if min(count, sch.extent(slices)) > 1:
        sch.annotate(slices, "stages", min(count, sch.extent(slices)))


def deal_among(sch: Schedule, each: Sequence[LoopRef], threads: Sequence[int], most: int) -> None:
    """Deal the elements of a tile, over the loops `each`, out to the threads of a block, up to
    `most` neighbours at once, as far as each thread gets some.

    threads: along z, y and x, or the last of them.
    """
    size = math.prod(sch.extent(loop) for loop in each)
    lanes = math.gcd(most, sch.extent(each[-1]), size // math.prod(threads))
    units = [loop for loop in each if sch.extent(loop) == 1]
    several = [loop for loop in each if sch.extent(loop) > 1] or [units.pop()]
    sch.reorder(*units, *several)
    if lanes > 1:
        several[-1], lane = sch.split(several[-1], (None, lanes))
        sch.vectorize(lane)
    one = sch.fuse(*several) if len(several) > 1 else several[0]
    _, *bound = sch.split(one, (None, *threads))
    for loop, axis in zip(reversed(bound), THREAD_AXES, strict=False):
        sch.bind(loop, axis)


def turned(sch: Schedule, copy: str) -> None:
    """Let the terms of a copy of an operand come before the axis of its own."""
    count = len(sch.func.block(copy).iters)
    axes = [f"i{number}" for number in range(count)]
    order = [*axes[:-2], axes[-1], axes[-2]]
    sch.transform_layout(copy, f"lambda {', '.join(axes)}: ({', '.join(order)})")
