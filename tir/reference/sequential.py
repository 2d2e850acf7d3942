"""A canonical function at chosen elements, in its own types, reductions combined one by one.

This is what a plain C loop computes: each value rounded as written, each reduction accumulated in
the order of its definition, never by BLAS or pairwise. Only what the chosen elements depend on is
computed; the tensors between are evaluated at the elements that are read. Of a scan, and of what a
C function reads and gives, every element is computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..analysis.linear import linear
from ..analysis.offsets import offset_parts, offsets
from ..buffer import Buffer, Load
from ..expr import Expr, Var
from ..stmt import IterVar
from ..visit import free_vars, loads
from .array_expr import ArrayEvaluator
from .definitions import Definition
from .evaluate import COMBINE, compute, join

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
Elements = Mapping[Buffer, Array]  # flat indices, each once

_CELLS = 1 << 18  # values evaluated at once
_COLUMNS = 1 << 14  # elements accumulated at once
_FEW = 64  # elements below which a running sum is faster than a loop over the steps


def dependencies(
    listed: Sequence[Definition], wanted: Elements, budget: int | None = None
) -> dict[Buffer, Array] | None:
    """The elements (flat indices) of each computed tensor that the `wanted` ones depend on.

    None when that takes more than `budget` values, counted over all steps of the reductions.
    """
    masks = {t: np.zeros(t.size, dtype=bool) for d in listed for t in d.targets}
    for target, flat in wanted.items():
        masks[target][flat] = True
    cost = 0
    for definition in reversed(listed):
        whole = definition.ordered or definition.extern is not None
        if whole and any(masks[target].any() for target in definition.targets):
            read = () if definition.extern is None else definition.extern.inputs
            for tensor in (*definition.targets, *read):
                if tensor in masks:
                    masks[tensor][...] = True
        if definition.extern is not None:
            cost += sum(target.size for target in definition.targets)
            continue
        wanted_here = _union(masks, definition)
        flat = np.flatnonzero(wanted_here)
        cost += _count(definition, flat) * definition.steps
        if budget is not None and cost > budget:
            return None
        whole = _is_box(definition) and len(flat) == len(wanted_here)
        expressions = (*definition.values, *definition.initial)
        for load in {load for expr in expressions for load in loads(expr)}:
            if load.buffer in masks:
                points = _boxes(definition) if whole else _parts(definition, flat)
                _mark(definition, load, points, masks[load.buffer])
    return {target: np.flatnonzero(mask) for target, mask in masks.items()}


def evaluate_at(
    listed: Sequence[Definition], inputs: Mapping[Buffer, Array], elements: Elements
) -> dict[Buffer, Array]:
    """Each tensor as a whole array of its own type, of which only `elements` are computed."""
    buffers = dict(inputs)
    with np.errstate(all="ignore"):
        for definition in listed:
            if definition.ordered or definition.extern is not None:
                compute(definition, buffers)
                continue
            for target in definition.targets:
                if target not in buffers:
                    buffers[target] = np.zeros(target.shape, dtype=target.type.numpy)
            wanted = np.zeros(definition.target.size, dtype=bool)
            for target in definition.targets:
                wanted[elements[target]] = True
            if _is_box(definition) and 2 * np.count_nonzero(wanted) >= len(wanted):
                _fill(definition, wanted, buffers)
                continue
            for part in _parts(definition, np.flatnonzero(wanted)):
                place = _place(definition, part)
                made = _compute(definition, part, buffers)
                for target, found in zip(definition.targets, made, strict=True):
                    buffers[target][place] = found if target.shape else found[0]
    return buffers


def _fill(definition: Definition, wanted: Array, buffers: Mapping[Buffer, Array]) -> None:
    """Compute a definition box by box, and keep what is wanted: where that is much of it, no
    element needs its place listed.
    """
    outputs = [buffers[target].reshape(-1) for target in definition.targets]
    low = 0
    for box in _boxes(definition):
        high = low + box.count
        for output, found in zip(outputs, _compute(definition, box, buffers), strict=True):
            np.copyto(output[low:high], found.reshape(-1), where=wanted[low:high])
        low = high


def _union(masks: Mapping[Buffer, Array], definition: Definition) -> Array:
    """Which elements are wanted of some target of a definition."""
    wanted = np.zeros(definition.target.size, dtype=bool)
    for target in definition.targets:
        wanted |= masks[target].astype(bool)
    return wanted


@dataclass(frozen=True, slots=True, eq=False)
class _Points:
    """Points of a definition's axes. shape: of the arrays that hold a value for each point; values:
    of each variable, in order of the axes, arrays that broadcast to it.
    """

    shape: tuple[int, ...]
    values: Mapping[Var, Array]

    @property
    def count(self) -> int:
        """How many points there are."""
        return math.prod(self.shape)


def _is_box(definition: Definition) -> bool:
    """Whether each element of the target is a point of the axes, and data decides no place that a
    value reads, so that values of any element may be computed.
    """
    extents, shape = _shapes(definition)
    read = [load for value in definition.values for load in loads(value)]
    where = (index for load in read for index in load.indices)
    return bool(shape) and shape == extents and not any(loads(index) for index in where)


def _boxes(definition: Definition) -> Iterator[_Points]:
    """All points of a definition, some neighbours at a time, in order; arrays have a dimension for
    each axis.
    """
    extents = [axis.extent for axis in definition.axes]
    most = max(_COLUMNS, _CELLS // max(1, definition.steps))
    cut = next(d for d in range(len(extents)) if math.prod(extents[d + 1 :]) <= most)
    length = max(1, most // max(1, math.prod(extents[cut + 1 :])))
    for outer in np.ndindex(*extents[:cut]):
        for low in range(0, extents[cut], length):
            high = min(low + length, extents[cut])
            inner = [np.arange(extent) for extent in extents[cut + 1 :]]
            ranges = [*(np.array([at]) for at in outer), np.arange(low, high), *inner]
            values = {a.var: v for a, v in zip(definition.axes, np.ix_(*ranges), strict=True)}
            yield _Points(tuple(map(len, ranges)), values)


def _parts(definition: Definition, flat: Array) -> Iterator[_Points]:
    """The points that define the elements `flat` of the target, some at a time; all points where
    that is not plain.
    """
    extents, shape = _shapes(definition)
    variables = [axis.var for axis in definition.axes]
    total = len(flat) if definition.plain else math.prod(extents)
    for low in range(0, total, _COLUMNS):
        high = min(low + _COLUMNS, total)
        some = flat[low:high].astype(np.int64) if definition.plain else np.arange(low, high)
        if not shape:
            yield _Points((len(some),), {})
            continue
        places = np.unravel_index(some, shape)
        if shape == extents:
            yield _Points((len(some),), dict(zip(variables, places, strict=True)))
            continue
        inside = np.ones(len(some), dtype=bool)
        for place, extent in zip(places, extents, strict=True):
            inside &= place < extent
        found = {v: p[inside] for v, p in zip(variables, places, strict=True)}
        yield _Points((int(np.count_nonzero(inside)),), found)


def _count(definition: Definition, flat: Array) -> int:
    """How many points that are."""
    extents, shape = _shapes(definition)
    if not definition.plain:
        return math.prod(extents)
    if shape == extents:
        return len(flat)
    return sum(part.count for part in _parts(definition, flat))


def _shapes(definition: Definition) -> tuple[list[int], list[int]]:
    """The extents of the axes, and the sizes that places among them are counted in."""
    extents = [axis.extent for axis in definition.axes]
    return extents, list(definition.target.shape) if definition.plain else extents


def _place(definition: Definition, points: _Points) -> tuple[Array, ...]:
    """The indices of the elements that `points` define."""
    if definition.plain:
        return tuple(points.values.values())
    find = ArrayEvaluator(points.values, {}).evaluate
    return tuple(find(index) for index in definition.indices)


def _steps(
    definition: Definition, points: _Points, most: int = _CELLS
) -> Iterator[tuple[int, dict[Var, Array]]]:
    """The reduction points in order, so many at a time that these and the others make at most
    `most`; arrays have a dimension in front of those of the points.
    """
    extents = [axis.extent for axis in definition.reduced]
    total, size = definition.steps, max(1, most // max(1, points.count))
    column = (-1, *(1 for _ in points.shape))
    for low in range(0, total, size):
        flat = np.arange(low, min(low + size, total))
        places = np.unravel_index(flat, extents) if extents else ()
        columns_of: Iterator[tuple[IterVar, Array]] = zip(definition.reduced, places, strict=True)
        yield len(flat), {axis.var: place.reshape(column) for axis, place in columns_of}


def _mark(definition: Definition, load: Load, points: Iterable[_Points], mask: Array) -> None:
    """Set the elements that `load` may read; all of them where its indices are data."""
    own = {axis.var for axis in definition.axes}
    reduced = {axis.var for axis in definition.reduced}
    if any(loads(index) or free_vars(index) - own - reduced for index in load.indices):
        mask[...] = True
        return
    if not mask.size:  # what counts no points reads none of it
        return
    atoms = [free_vars(atom) for index in load.indices for atom, _ in linear(index).terms]
    apart = all(mentioned <= own or mentioned <= reduced for mentioned in atoms)
    for part in points:
        if apart and _mark_sums(definition, load, part, mask):
            continue
        for _, steps in _steps(definition, part):
            find = ArrayEvaluator({**part.values, **steps}, {}).evaluate
            read = offsets(load, find)
            if read is None:
                read = np.asarray(0)
                for index, size in zip(load.indices, load.buffer.shape, strict=True):
                    read = read * size + np.clip(find(index), 0, size - 1)
            mask[read] = True


def _mark_sums(definition: Definition, load: Load, points: _Points, mask: Array) -> bool:
    """Set what `load` reads where points and steps add to its place apart from each other, so that
    each sum is needed once, however many points have it. False where some place may lie outside.
    """
    if points.count == 0 or definition.steps == 0:
        return True
    ((_, steps),) = _steps(definition, points, most=points.count * definition.steps)
    parts = offset_parts(load, ArrayEvaluator({**points.values, **steps}, {}).evaluate)
    if parts is None:
        return False
    found = [part.reshape(-1) for part in parts.values()]
    if math.prod(map(len, found)) > _CELLS:
        found = [np.unique(part) for part in found]
    *others, many = sorted(found, key=len)
    few = np.zeros(1, np.int64)
    for other in others:
        few = np.add.outer(few, other).reshape(-1)
    size = max(1, _CELLS // len(many))
    for low in range(0, len(few), size):
        mask[np.add.outer(few[low : low + size], many)] = True
    return True


def _compute(
    definition: Definition, points: _Points, buffers: Mapping[Buffer, Array]
) -> list[Array]:
    """The elements of each target at `points`."""
    shape = points.shape

    def value_of(expr: Expr, values: Mapping[Var, Array]) -> Array:
        return ArrayEvaluator(values, buffers).evaluate(expr)

    def all_of(values: Sequence[Expr]) -> list[Array]:
        return [np.broadcast_to(value_of(v, points.values), shape) for v in values]

    if definition.update is None:
        return all_of(definition.values)
    result = all_of(definition.initial)
    for count, steps in _steps(definition, points):
        at = {**points.values, **steps}
        rows = [np.broadcast_to(value_of(v, at), (count, *shape)) for v in definition.values]
        if definition.reducer is not None:
            result = [_accumulate(definition.reducer, result[0], rows[0])]
            continue
        for row in zip(*rows, strict=True):
            result = join(definition.update, result, row)
    return result


def _accumulate(reducer: str, result: Array, rows: Array) -> Array:
    """`result` combined with `rows`, first to last."""
    combine = COMBINE[reducer]
    if rows[0].size < _FEW:
        everything = np.concatenate([result[None], rows])
        last: Array = combine.accumulate(everything, axis=0, dtype=result.dtype)[-1]
        return last
    result = result.copy()
    for row in rows:
        combine(result, row, out=result)
    return result
