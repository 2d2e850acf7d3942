"""Blocks that reduce sliding windows, weighed or not, and the padding around their data."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ....tir.analysis.linear import linear
from ....tir.buffer import Load
from ....tir.expr import Const, Select, Var
from ....tir.func import PrimFunc
from ....tir.sizes import interval, size_of
from ....tir.stmt import Block, IterKind
from ....tir.visit import free_vars, loads, stores
from ...nest import readers, target_of, targets_of
from ...schedule import Schedule
from .row_groups import row_axis
from .structure import converted_product, is_plain_store, is_pointwise

UNROLLED_TAPS = 9  # of a window without weights that is written out at most
MOST_PADDING = 6  # elements of an axis, up to which padding is taken into the windows


def is_window(block: Block) -> bool:
    """Whether each load walks memory contiguously, or stands still, as the last output axis
    advances, and there is more to that than to the last reduced axis.
    """
    spatial = [it for it in block.iters if it.kind is IterKind.SPATIAL]
    if not spatial or not is_plain_store(block, spatial):
        return False
    if spatial[-1].extent == 1 and row_axis(block) is not None:
        return False
    last = spatial[-1].var
    own = targets_of(block)
    for load in (*loads(block.body), *loads(block.counts)):
        if load.buffer in own or not load.indices:
            continue
        *front, back = load.indices
        if any(last in free_vars(item) for item in front) or linear(back).coefficient(last) not in (
            0,
            1,
        ):
            return False
        if any(last in free_vars(atom) and atom is not last for atom, _ in linear(back).terms):
            return False
    return True


def is_depthwise(block: Block) -> bool:
    """Whether the block sums products of data and weights that both walk memory along its last
    axis, the data in windows that slide along another one.
    """
    product = converted_product(block)
    if product is None or not is_window(block):
        return False
    kept = {it.var for it in block.iters if it.kind is IterKind.SPATIAL}
    last = [it.var for it in block.iters if it.var in kept][-1]
    along = all(load.indices and last in free_vars(load.indices[-1]) for load in product)
    data = windowed_data(block)
    weights = [load for load in product if load is not data]
    used = {var for load in weights for index in load.indices for var in free_vars(index)}
    sliding = sliding_axes(block)
    return along and len(weights) == 1 and bool(sliding - {last}) and not used & kept - {last}


def sliding_axes(block: Block) -> set[Var]:
    """The kept axes along which windows slide: they share an index of the data with a reduced
    one.
    """
    data = windowed_data(block)
    kept = {it.var for it in block.iters if it.kind is IterKind.SPATIAL}
    mixed = (free_vars(index) for index in data.indices) if data is not None else ()
    return {var for used in mixed if used - kept for var in used & kept}


def windowed_data(block: Block) -> Load | None:
    """What the windows slide over, perhaps inside of padding."""
    kept = {it.var for it in block.iters if it.kind is IterKind.SPATIAL}
    for load in loads(block.body):
        if any(free_vars(index) & kept and free_vars(index) - kept for index in load.indices):
            return load
    return None


def is_pool(block: Block) -> bool:
    """Whether the block reduces nothing but small windows of data that slide along an axis, where
    data walks memory along another one, its last.
    """
    data = windowed_data(block)
    if data is None or not is_window(block) or window_taps(block) > UNROLLED_TAPS:
        return False
    last = [it.var for it in block.iters if it.kind is IterKind.SPATIAL][-1]
    own = targets_of(block)
    alone = all(load is data or load.buffer in own for load in loads(block.body))
    return alone and last in free_vars(data.indices[-1]) and bool(sliding_axes(block) - {last})


def window_taps(block: Block) -> int:
    """Elements of a window."""
    return math.prod(it.extent for it in block.iters if it.kind is IterKind.REDUCE)


def window_box(block: Block, moved: Mapping[Var, int]) -> int:
    """Elements that a window reads of what it slides over, or a tile of windows: as many along each
    axis as `moved` says.
    """
    data = windowed_data(block)
    extents = {it.var: it.extent for it in block.iters if it.kind is IterKind.REDUCE}
    extents.update(moved)
    box = 1
    for index in data.indices if data is not None else ():
        form = linear(index)
        reach = (abs(c) * (extents.get(a, 1) - 1) for a, c in form.terms if isinstance(a, Var))
        box *= 1 + sum(reach)
    return box


def inline_padding(sch: Schedule) -> None:
    """Take padding into the windows that alone read it: a narrow border of constants around a
    tensor.
    """
    for name in sch.blocks():
        block = sch.func.block(name)
        if is_pointwise(block) and _is_padding(sch.func, block):
            sch.compute_inline(name)


def _is_padding(func: PrimFunc, block: Block) -> bool:
    users = readers(func, target_of(block))
    windows = all(is_depthwise(user) or is_pool(user) for user in users)
    return bool(users) and windows and is_border(func, block)


def is_border(func: PrimFunc, block: Block) -> bool:
    """Whether a pointwise block copies a tensor and puts a narrow border of constants around it,
    along other axes than the last.
    """
    target = target_of(block)
    value = stores(block.body)[0].value
    if target not in func.allocations or not isinstance(value, Select):
        return False
    if not isinstance(value.on_true, Load) or not isinstance(value.on_false, Const):
        return False
    source = value.on_true.buffer
    if len(source.shape) != len(target.shape):
        return False
    pairs = zip(target.extents, source.extents, strict=True)
    wider = [interval(size_of(a) - size_of(b)) for a, b in pairs]
    return all(0 <= low <= high <= MOST_PADDING for low, high in wider) and wider[-1] == (0, 0)
