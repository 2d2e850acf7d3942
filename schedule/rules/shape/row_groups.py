"""What a rule may compute row by row: blocks that share their first axes, grouped under the last of
them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ....tir.analysis.linear import linear
from ....tir.func import PrimFunc
from ....tir.stmt import Block, IterKind, IterVar
from ....tir.visit import free_vars, loads
from ...nest import is_reduction, read_indices, readers, targets_of
from .structure import is_elementwise, is_plain_store


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Blocks of which each element of the first `rows` axes is computed at once.

    anchor: the block that comes last; members: those that only it and other members read, in the
    order of the text. rows: 0 where the anchor stands alone.
    """

    anchor: str
    members: tuple[str, ...]
    rows: int


def row_groups(func: PrimFunc, apart: Collection[str] = ()) -> tuple[RowGroup, ...]:
    """Every block of a function in one group, in the order of the anchors. apart: blocks that stand
    alone.
    """
    groups: dict[str, list[str]] = {}
    rows: dict[str, int] = {}
    home: dict[str, str] = {}
    for block in reversed(func.blocks):
        users = [u for target in targets_of(block) for u in readers(func, target) if u is not block]
        anchors = {home[user.name] for user in users}
        anchor = anchors.pop() if len(anchors) == 1 else block.name
        alone = block.is_ordered or any(target in func.outputs for target in targets_of(block))
        alone = alone or block.name in apart
        if alone or not _joins(block, users, func.block(anchor), rows.get(anchor, 0)):
            anchor = block.name
            rows[anchor] = 0 if block.name in apart else _row_axes(func, block)
            groups[anchor] = []
        else:
            groups[anchor].insert(0, block.name)
        home[block.name] = anchor
    found = (
        RowGroup(a, tuple(members), rows[a] if members or _is_row(func.block(a)) else 0)
        for a, members in groups.items()
    )
    return tuple(found)[::-1]


def row_axis(block: Block) -> IterVar | None:
    """The reduced axis along which a reduction walks memory; None where there is none."""
    reduced = [it for it in block.iters if it.kind is IterKind.REDUCE]
    if not reduced or not is_plain_store(block, _spatial(block)):
        return None
    axis, own, steps = reduced[-1], targets_of(block), set()
    for load in (*loads(block.body), *loads(block.counts)):
        if load.buffer in own or not load.indices:
            continue
        *front, back = load.indices
        if any(axis.var in free_vars(item) for item in front):
            return None
        form = linear(back)
        if any(axis.var in free_vars(atom) and atom is not axis.var for atom, _ in form.terms):
            return None
        steps.add(form.coefficient(axis.var))
    return axis if steps in ({1}, {0, 1}) else None


def _is_row(block: Block) -> bool:
    return row_axis(block) is not None


def _spatial(block: Block) -> list[IterVar]:
    return [it for it in block.iters if it.kind is IterKind.SPATIAL]


def _row_axes(func: PrimFunc, anchor: Block) -> int:
    """The number of first axes that the reductions behind a block have in common with it; all axes
    of one that is itself a row, none of another reduction: that is a product, whose elements share
    what they read. Behind an anchor without any, steps of several outputs, which no reader takes
    in, make a row: their last axis goes through them all.
    """
    if is_reduction(anchor):
        return _own_axes(anchor) if _is_row(anchor) else 0
    found, waiting, counts = set(), [anchor], []
    steps, others = list[int](), False
    while waiting:
        block = waiting.pop()
        if block.name in found:
            continue
        found.add(block.name)
        if _is_row(block):
            counts.append(_own_axes(block))
        elif block is not anchor:
            steps.append(len(block.iters) - 1)
            others = others or not is_elementwise(block) or len(targets_of(block)) < 2
        read = {load.buffer for load in loads(block.body)}
        waiting += [b for b in func.blocks if read & set(targets_of(b))]
    if not counts and not others:
        counts = steps
    return 0 if anchor.is_ordered else min(counts, default=0)


def _own_axes(block: Block) -> int:
    """The spatial axes of a reduction, without those of size 1 at the end; not none, if it has
    any.
    """
    extents = [it.extent for it in _spatial(block)]
    while len(extents) > 1 and extents[-1] == 1:
        extents.pop()
    return len(extents)


def _joins(block: Block, users: list[Block], anchor: Block, rows: int) -> bool:
    """Whether a row of a block is read only where the same row of its readers is computed."""
    one = _is_row(block) and _own_axes(block) <= rows
    if rows == 0 or not (one or is_elementwise(block)):
        return False
    axes, wanted = _spatial(block)[:rows], _spatial(anchor)[:rows]
    if [it.extent for it in axes] != [it.extent for it in wanted]:
        return False
    if len(axes) < rows or not is_plain_store(block, _spatial(block)):
        return False
    for user in users:
        first = tuple(it.var for it in _spatial(user)[:rows])
        for target in targets_of(block):
            if any(at[:rows] != first for at in read_indices(user, target)):
                return False
    return True
