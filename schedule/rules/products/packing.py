"""Weights of a product in panels of the tile's width."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ....tir.buffer import Buffer
from ....tir.expr import Var
from ...nest import fixed_tensors
from ...schedule import Schedule
from ..knobs.knobs import choose_flag
from ..shape.structure import Contraction, contraction

PACK_ROWS = 32  # rows from which on packing weights that change with every call pays


def pack_weights(
    sch: Schedule,
    found: Contraction,
    width: int,
    order: Sequence[Var],
    part: int | None,
    points: int = 1,
) -> str | None:
    """Store the weights in panels of `width` columns, in the order in which the tile walks them,
    the `points` elements that a lane takes at once next to each other.

    Returns the block; None where they stay as they are.
    """
    weight = found.weight
    contiguous = weight.indices[-1] is found.vector.var
    if not _is_packed(sch, found, width, contiguous, points):
        return None
    block = sch.cache_read(found.block.name, weight.buffer.name, f"{weight.buffer.name}_packed")
    loops = sch.transform_layout(block, panel_layout(found, width, order, part, points))
    shared = next((loop for loop in loops[:-1] if sch.extent(loop) != 1), loops[0])
    if sch.extent(shared) > 1:
        sch.parallel(shared)
    if contiguous and points == 1:
        sch.vectorize(loops[-1])
    return block


def _is_packed(
    sch: Schedule, found: Contraction, width: int, contiguous: bool, points: int
) -> bool:
    """Whether the weights are worth packing: always where they are made once, or are no vectors as
    they lie.
    """
    weight = found.weight
    if points > 1:
        return True
    if width == 1 or weight.buffer.dims:
        return False
    if not contiguous or weight.buffer in fixed_tensors(sch.func):
        return True
    short = bool(found.batch) or math.prod(axis.extent for axis in found.rows) < PACK_ROWS
    return choose_flag(sch, "packed weights", found.block.name, not short)


def pad_words(sch: Schedule, found: Contraction, width: int) -> Contraction:
    """Make room for whole panels of words that a block makes: operands of instructions have no
    masks on every target.
    """
    words = found.weight.buffer
    if words not in sch.func.allocations or words.dims or found.vector.extent % width == 0:
        return found
    sch.pad(words.name, (*(1 for _ in words.shape[1:]), width))
    padded = contraction(sch.func.block(found.block.name), widened=True)
    assert padded is not None
    return padded


def panel_layout(
    found: Contraction, width: int, order: Sequence[Var], part: int | None, points: int = 1
) -> str:
    """The index map of packed weights."""
    weight = found.weight
    names = [f"i{axis}" for axis in range(len(weight.indices))]
    columns = next(
        n for n, item in zip(names, weight.indices, strict=True) if item is found.vector.var
    )
    position = {var: rank for rank, var in enumerate(order)}
    others = [
        (position.get(i, -1) if isinstance(i, Var) else -1, n)
        for n, i in zip(names, weight.indices, strict=True)
    ]
    batch = [
        n
        for n, item in zip(names, weight.indices, strict=True)
        if any(item is axis.var for axis in found.batch)
    ]
    kept = [n for _, n in sorted(others) if n != columns and n not in batch]
    if part is not None and len(order) > 1:  # the taps of a part lie together
        kept = [f"{kept[-1]} // {part}", *kept[:-1], f"{kept[-1]} % {part}"]
    walked = [*kept, f"{columns} % {width}"]
    if points > 1:
        inner = kept[-1] if "//" not in kept[-1] and "%" not in kept[-1] else f"({kept[-1]})"
        walked = [*kept[:-1], f"{inner} // {points}", walked[-1], f"{inner} % {points}"]
    panels = ", ".join([*batch, f"{columns} // {width}", *walked])
    return f"lambda {', '.join(names)}: ({panels})"


def pack_columns(sch: Schedule, read: Iterable[tuple[str, Buffer]], width: int) -> tuple[str, ...]:
    """Store what blocks read of constants, by the names of the blocks, in panels of `width`
    columns, their last axis, in the order in which they are. Returns the blocks that do it.
    """
    packed = []
    for block, buffer in dict.fromkeys(read):
        packed.append(sch.cache_read(block, buffer.name, f"{buffer.name}_packed"))
        names = [f"i{axis}" for axis in range(len(buffer.shape))]
        *front, last = names
        panels = ", ".join([f"{last} // {width}", *front, f"{last} % {width}"])
        first, *_ = sch.transform_layout(packed[-1], f"lambda {', '.join(names)}: ({panels})")
        if sch.extent(first) > 1:
            sch.parallel(first)
    return tuple(packed)
