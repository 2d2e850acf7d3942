"""Rules of elements that data choose: gather and scatter, and slices whose places are data.

An index of XLA is where a window begins. Windows are written out here: each element of one has its
own index, and an axis of which the window is all needs none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .....tir.sizes import AnySize
from ....ops.arithmetic import Add, Max, Min
from ....ops.base import lowest
from ....ops.logic import And, LessOrEqual, Where
from ....ops.scattering import CacheUpdate
from ....types import inverse
from ...onnx.node import NotSupported
from ..program import Jaxpr
from ..rule import Rule
from ..writer import JaxValue, JaxWriter
from .shapes import concatenated, counted, padded, sliced

Ints = Sequence[int]
_INDEX = "int64"
_MODES = ("CLIP", "FILL_OR_DROP", "PROMISE_IN_BOUNDS")


@dataclass(frozen=True, slots=True)
class _Windows:
    """Where windows of an array begin, and how they are numbered.

    axes: those that indices, or batches, choose; sizes: of a window along each axis of the array.
    starts: for each of `axes` where a window begins, one tensor of the shape of the batch; inside:
    whether a window lies within the array, None where all do.
    """

    axes: Ints
    sizes: Sequence[AnySize]
    starts: Sequence[JaxValue]
    batch: Sequence[AnySize]
    inside: JaxValue | None

    @property
    def wide(self) -> list[int]:
        """Those of `axes` along which a window has several elements."""
        return [axis for axis in self.axes if self.sizes[axis] != 1]


def _windows(
    w: JaxWriter,
    x: JaxValue,
    indices: JaxValue,
    mapped: Ints,
    batching: tuple[Ints, Ints],
    sizes: Sequence[AnySize],
    mode: str,
) -> _Windows:
    """The windows that indices, a vector on the last axis for each, choose."""
    if mode not in _MODES:
        raise NotSupported(f"its mode is {mode}; known are {', '.join(_MODES)}")
    batch = indices.shape[:-1]
    starts, inside = list[JaxValue](), None
    for number, axis in enumerate(mapped):
        one = w.cast(_component(w, indices, number), _INDEX)
        last = x.shape[axis] - sizes[axis]
        known = w.known(one)
        if known is None or not _within(known, last):
            if mode == "FILL_OR_DROP":
                inside = _both(w, inside, _is_inside(w, one, last))
            one = _clamped(w, one, last)
        starts.append(one)
    axes = list(mapped)
    for axis, place in zip(*batching, strict=True):
        numbers = counted(w, x.shape[axis], _INDEX)
        shape = [size if n == place else 1 for n, size in enumerate(batch)]
        starts.append(w.expand(w.reshape(numbers, shape), batch))
        axes.append(axis)
    for axis, size in enumerate(sizes):
        if axis not in axes and size != x.shape[axis]:  # the first elements alone
            starts.append(w.filled(batch, 0, _INDEX))
            axes.append(axis)
    return _Windows(axes, sizes, starts, batch, inside)


def _component(w: JaxWriter, indices: JaxValue, number: int) -> JaxValue:
    """One number of each vector of indices."""
    last = indices.rank - 1
    starts, ends = [0] * indices.rank, list(indices.shape)
    starts[last], ends[last] = number, number + 1
    return w.reshape(sliced(w, indices, starts, ends), indices.shape[:-1])


def _within(known: np.ndarray[tuple[int, ...], np.dtype[np.generic]], last: AnySize) -> bool:
    if not known.size:
        return True
    return isinstance(last, int) and int(known.min()) >= 0 and int(known.max()) <= last


def _both(w: JaxWriter, a: JaxValue | None, b: JaxValue) -> JaxValue:
    return b if a is None else w.emit(And(), a, b)


def _is_inside(w: JaxWriter, start: JaxValue, last: AnySize) -> JaxValue:
    zero, end = w.full(0, _INDEX), w.number(last, _INDEX)
    return _both(w, w.emit(LessOrEqual(), zero, start), w.emit(LessOrEqual(), start, end))


def _clamped(w: JaxWriter, start: JaxValue, last: AnySize) -> JaxValue:
    high = w.emit(Max(), start, w.full(0, _INDEX))
    return w.emit(Min(), high, w.number(last, _INDEX))


def _places(w: JaxWriter, found: _Windows) -> list[JaxValue]:
    """For each of the chosen axes, the indices of all elements of all windows; they broadcast."""
    wide = found.wide
    made = list[JaxValue]()
    for axis, start in zip(found.axes, found.starts, strict=True):
        one = w.reshape(start, (*found.batch, *(1 for _ in wide)))
        if axis in wide:
            along = [found.sizes[axis] if other == axis else 1 for other in wide]
            steps = w.reshape(counted(w, found.sizes[axis], _INDEX), along)
            one = w.emit(Add(), one, steps)
        made.append(one)
    return made


def _together(w: JaxWriter, places: Sequence[JaxValue], shape: Sequence[AnySize]) -> JaxValue:
    """Indices of several axes, those of an element beside each other."""
    wide = [w.reshape(w.expand(one, shape), (*shape, 1)) for one in places]
    return concatenated(w, wide, len(shape))


def _gather(
    w: JaxWriter,
    x: JaxValue,
    indices: JaxValue,
    dimension_numbers: Mapping[str, Ints],
    slice_sizes: Sequence[AnySize],
    mode: str,
    fill_value: float | None = None,
) -> JaxValue:
    numbers = dimension_numbers
    batching = numbers["operand_batching_dims"], numbers["start_indices_batching_dims"]
    mapped = numbers["start_index_map"]
    found = _windows(w, x, indices, mapped, batching, slice_sizes, mode)
    shape = (*found.batch, *(found.sizes[axis] for axis in found.wide))
    places = _places(w, found)
    rest = [axis for axis in range(x.rank) if axis not in found.axes]
    if not found.axes:
        made = w.expand(w.reshape(x, (*(1 for _ in shape), *x.shape)), (*shape, *x.shape))
    elif len(found.axes) == 1:
        (axis,) = found.axes
        made = w.spell("Gather", x, w.expand(places[0], shape), axis=axis)
        first = list(range(axis, axis + len(shape)))
        made = w.transpose(made, (*first, *(n for n in range(made.rank) if n not in first)))
    else:
        moved = w.transpose(x, (*found.axes, *rest))
        made = w.spell("GatherND", moved, _together(w, places, shape))
    gone = (*numbers["collapsed_slice_dims"], *batching[0])
    kept = [axis for axis in range(x.rank) if axis not in gone]
    result = _ordered(w, made, found, rest, kept, numbers["offset_dims"])
    if found.inside is None:
        return result
    offsets = set(numbers["offset_dims"])
    sides = iter(found.batch)
    aligned = [1 if axis in offsets else next(sides) for axis in range(result.rank)]
    fill = w.full(_filling(x.dtype) if fill_value is None else fill_value, x.dtype)
    return w.emit(Where(), w.reshape(found.inside, aligned), result, fill)


def _ordered(
    w: JaxWriter, made: JaxValue, found: _Windows, rest: Ints, kept: Ints, offsets: Ints
) -> JaxValue:
    """The axes of what was gathered, [batch, wide, rest], in the order of the result, which has an
    axis for each of `kept` at the places `offsets`.
    """
    batch = len(found.batch)
    narrow = [axis for axis in kept if axis not in (*found.wide, *rest)]
    made = w.reshape(made, (*made.shape, *(1 for _ in narrow)))
    own = {axis: batch + n for n, axis in enumerate((*found.wide, *rest, *narrow))}
    windows, batches = iter(kept), iter(range(batch))
    order = [own[next(windows)] if n in offsets else next(batches) for n in range(made.rank)]
    return w.transpose(made, order)


def _filling(dtype: str) -> float | int | bool:
    """What stands where an index is out of range: no number, else the least or the greatest."""
    if dtype == "bool":
        return True
    if dtype.startswith("uint"):
        return int(np.iinfo(dtype).max)
    return int(lowest(dtype)) if dtype.startswith("int") else math.nan


_REDUCTIONS = {"": "none", "add": "add", "max": "max", "min": "min", "mul": "mul", "sub": "add"}


def _scatter(combine: str) -> Rule:
    def rule(
        w: JaxWriter,
        x: JaxValue,
        indices: JaxValue,
        updates: JaxValue,
        dimension_numbers: Mapping[str, Ints],
        mode: str,
        update_jaxpr: Jaxpr | None = None,
        update_consts: Sequence[object] = (),
    ) -> JaxValue:
        if combine == "sub":
            updates = w.spell("Neg", updates)
        return _scattered(w, x, indices, updates, dimension_numbers, mode, _REDUCTIONS[combine])

    return rule


def _scattered(
    w: JaxWriter,
    x: JaxValue,
    indices: JaxValue,
    updates: JaxValue,
    numbers: Mapping[str, Ints],
    mode: str,
    reduction: str,
) -> JaxValue:
    """A window that lies outside of the array goes to a row behind it, which is cut off again."""
    batching = numbers["operand_batching_dims"], numbers["scatter_indices_batching_dims"]
    mapped, window = numbers["scatter_dims_to_operand_dims"], numbers["update_window_dims"]
    gone = (*numbers["inserted_window_dims"], *batching[0])
    kept = [axis for axis in range(x.rank) if axis not in gone]
    by_axis = dict(zip(kept, window, strict=True))
    sizes = [updates.shape[by_axis[axis]] if axis in by_axis else 1 for axis in range(x.rank)]
    found = _windows(w, x, indices, mapped, batching, sizes, mode)
    if not found.axes:  # one window, which is all of the array
        raise NotSupported("it writes all elements, and indices choose none")
    rest = [axis for axis in range(x.rank) if axis not in found.axes]
    batch = [axis for axis in range(updates.rank) if axis not in window]
    narrow = [axis for axis in kept if axis not in (*found.wide, *rest)]
    order = [*batch, *(by_axis[axis] for axis in (*found.wide, *rest, *narrow))]
    given = w.transpose(updates, order)
    given = w.reshape(given, given.shape[: given.rank - len(narrow)])
    places = _places(w, found)
    shape = given.shape[: given.rank - len(rest)]
    moved = w.transpose(x, (*found.axes, *rest))
    count = moved.shape[0]
    if found.inside is not None:
        aligned = w.reshape(found.inside, (*found.batch, *(1 for _ in found.wide)))
        places[0] = w.emit(Where(), aligned, places[0], w.number(count, _INDEX))
        widths = [(0, 1, 0), *((0, 0, 0) for _ in moved.shape[1:])]
        moved = padded(w, moved, w.full(0, x.dtype), widths)
    written = w.spell("ScatterND", moved, _together(w, places, shape), given, reduction=reduction)
    cut = sliced(w, written, (0,) * written.rank, (count, *written.shape[1:]))
    return w.transpose(cut, inverse((*found.axes, *rest)))


def _dynamic_slice(
    w: JaxWriter, x: JaxValue, *starts: JaxValue, slice_sizes: Sequence[AnySize]
) -> JaxValue:
    """A slice that begins where data say, as far as it fits."""
    known, moving = _starts(w, x, starts, slice_sizes)
    ends = [start + size for start, size in zip(known, slice_sizes, strict=True)]
    made = sliced(w, x, known, [x.shape[n] if n in moving else end for n, end in enumerate(ends)])
    for axis, start in moving.items():
        steps = counted(w, slice_sizes[axis], _INDEX)
        made = w.spell("Gather", made, w.emit(Add(), start, steps), axis=axis)
    return made


def _starts(
    w: JaxWriter, x: JaxValue, starts: Sequence[JaxValue], sizes: Sequence[AnySize]
) -> tuple[list[int], dict[int, JaxValue]]:
    """Where a slice begins: the numbers that are known, 0 for others; and those, by their axes."""
    known, moving = [0] * x.rank, dict[int, JaxValue]()
    for axis, start in enumerate(starts):
        last, value = x.shape[axis] - sizes[axis], w.known(start)
        if last == 0:
            continue
        if value is not None and isinstance(last, int):
            known[axis] = min(max(0, int(value)), last)
        else:
            moving[axis] = _clamped(w, w.cast(start, _INDEX), last)
    return known, moving


def _dynamic_update_slice(
    w: JaxWriter, x: JaxValue, update: JaxValue, *starts: JaxValue
) -> JaxValue:
    """Another tensor in place of a slice that begins where data say."""
    known, moving = _starts(w, x, starts, update.shape)
    partial = [axis for axis in range(x.rank) if update.shape[axis] != x.shape[axis]]
    if not partial:
        return update
    if len(partial) > 1:
        return _updated(w, x, update, known, moving, partial)
    (axis,) = partial
    if axis in moving:
        cache, new = (w.reshape(one, (1, *one.shape)) for one in (x, update))
        places = w.reshape(moving[axis], (1,))
        return w.reshape(w.emit(CacheUpdate(axis + 1), cache, new, places), x.shape)
    start = known[axis]
    end = start + update.shape[axis]
    whole = [0] * x.rank, list(x.shape)
    before = [*whole[1][:axis], start, *whole[1][axis + 1 :]]
    behind = [*whole[0][:axis], end, *whole[0][axis + 1 :]]
    parts = [sliced(w, x, whole[0], before), update, sliced(w, x, behind, whole[1])]
    return concatenated(w, [one for one in parts if one.shape[axis] != 0], axis)


def _updated(
    w: JaxWriter,
    x: JaxValue,
    update: JaxValue,
    known: Sequence[int],
    moving: Mapping[int, JaxValue],
    partial: Ints,
) -> JaxValue:
    """Along several axes: each element has its place."""
    shape = [update.shape[axis] for axis in partial]
    places = list[JaxValue]()
    for axis in partial:
        along = [update.shape[axis] if other == axis else 1 for other in partial]
        steps = w.reshape(counted(w, update.shape[axis], _INDEX), along)
        start = moving.get(axis) or w.full(known[axis], _INDEX)
        places.append(w.emit(Add(), steps, start))
    order = (*partial, *(axis for axis in range(x.rank) if axis not in partial))
    moved, given = w.transpose(x, order), w.transpose(update, order)
    made = w.spell("ScatterND", moved, _together(w, places, shape), given)
    return w.transpose(made, inverse(order))


RULES: dict[str, Rule] = {
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "gather": _gather,
    "scatter": _scatter(""),
    "scatter-add": _scatter("add"),
    "scatter-max": _scatter("max"),
    "scatter-min": _scatter("min"),
    "scatter-mul": _scatter("mul"),
    "scatter-sub": _scatter("sub"),
}
