"""Rules of what names elements anew, moves them, or makes them of nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .....tir.sizes import AnySize
from ....ops.movement import Concat
from ....ops.size_values import SizeRange
from ....ops.slicing import Spread
from ....types import numpy_type
from ...onnx.node import NotSupported
from ..rule import Rule
from ..writer import JaxValue, JaxWriter

Sizes = Sequence[AnySize]
_LAST = (1 << 63) - 1  # ONNX's end of an axis


def _same(w: JaxWriter, *operands: JaxValue) -> list[JaxValue]:
    return list(operands)


def _reshape(
    w: JaxWriter, x: JaxValue, new_sizes: Sizes, dimensions: Sequence[int] | None = None
) -> JaxValue:
    return w.reshape(x if dimensions is None else w.transpose(x, dimensions), new_sizes)


def _squeeze(w: JaxWriter, x: JaxValue, dimensions: Sequence[int]) -> JaxValue:
    gone = {x.axis(one) for one in dimensions}
    return w.reshape(x, [size for axis, size in enumerate(x.shape) if axis not in gone])


def _transpose(w: JaxWriter, x: JaxValue, permutation: Sequence[int]) -> JaxValue:
    return w.transpose(x, permutation)


def _broadcast(
    w: JaxWriter, x: JaxValue, shape: Sizes, broadcast_dimensions: Sequence[int]
) -> JaxValue:
    """Each axis of the operand is one of the result; of size 1 it is repeated."""
    source = w.narrow(x)
    if not source.rank:
        return w.repeat(source, shape)
    placed: list[AnySize] = [1] * len(shape)
    for size, axis in zip(source.shape, broadcast_dimensions, strict=True):
        placed[axis] = size
    return w.repeat(w.reshape(source, placed), shape)


def sliced(
    w: JaxWriter, x: JaxValue, starts: Sizes, ends: Sizes, steps: Sequence[int] | None = None
) -> JaxValue:
    """From starts on to ends, of each axis."""
    by = steps or (1,) * x.rank
    axes = [
        axis
        for axis, size in enumerate(x.shape)
        if (starts[axis], ends[axis], by[axis]) != (0, size, 1)
    ]
    if not axes:
        return x
    lists: tuple[Sizes, ...] = (
        [starts[axis] for axis in axes],
        [ends[axis] for axis in axes],
        axes,
        [by[axis] for axis in axes],
    )
    return w.spell("Slice", x, *(w.sizes(one) for one in lists))


def _slice(
    w: JaxWriter,
    x: JaxValue,
    start_indices: Sizes,
    limit_indices: Sizes,
    strides: Sequence[int] | None = None,
) -> JaxValue:
    return sliced(w, x, start_indices, limit_indices, strides)


def reversed_along(w: JaxWriter, x: JaxValue, dimensions: Sequence[int]) -> JaxValue:
    """The elements of axes in the opposite order."""
    axes = list(dimensions)
    if not axes:
        return x
    count = len(axes)
    lists = ([-1] * count, [-_LAST - 1] * count, axes, [-1] * count)
    return w.spell("Slice", x, *(w.sizes(one) for one in lists))


def _reverse(w: JaxWriter, x: JaxValue, dimensions: Sequence[int]) -> JaxValue:
    return reversed_along(w, x, dimensions)


def concatenated(w: JaxWriter, parts: Sequence[JaxValue], axis: int) -> JaxValue:
    """Tensors one behind the other."""
    return parts[0] if len(parts) == 1 else w.emit(Concat(axis), *parts)


def _concatenate(w: JaxWriter, *parts: JaxValue, dimension: int) -> JaxValue:
    return concatenated(w, parts, dimension)


def _stack(w: JaxWriter, *parts: JaxValue, axis: int) -> JaxValue:
    wide = [w.reshape(one, (*one.shape[:axis], 1, *one.shape[axis:])) for one in parts]
    return concatenated(w, wide, axis)


def _split(w: JaxWriter, x: JaxValue, sizes: Sizes, axis: int) -> list[JaxValue]:
    made, start = list[JaxValue](), 0
    for size in sizes:
        starts, ends = [0] * x.rank, list(x.shape)
        starts[axis], ends[axis] = start, start + size
        made.append(sliced(w, x, starts, ends))
        start = start + size  # type: ignore[assignment]
    return made


def _unstack(w: JaxWriter, x: JaxValue, axis: int) -> list[JaxValue]:
    count = x.shape[axis]
    if not isinstance(count, int):
        raise NotSupported(f"calls decide how many parts there are: {count}")
    parts = _split(w, x, (1,) * count, axis)
    return [w.reshape(one, (*x.shape[:axis], *x.shape[axis + 1 :])) for one in parts]


def _tile(w: JaxWriter, x: JaxValue, reps: Sizes) -> JaxValue:
    return x if all(count == 1 for count in reps) else w.spell("Tile", x, w.sizes(reps))


def _pad(
    w: JaxWriter,
    x: JaxValue,
    value: JaxValue,
    padding_config: Sequence[tuple[AnySize, AnySize, int]],
) -> JaxValue:
    """Elements before, behind and between those of each axis; negative widths cut off."""
    return padded(w, x, value, padding_config)


def padded(
    w: JaxWriter,
    x: JaxValue,
    value: JaxValue,
    widths: Sequence[tuple[AnySize, AnySize, int]],
) -> JaxValue:
    if any(between for _, _, between in widths):
        x = _spread(w, x, value, [between for _, _, between in widths])
    before, behind = [one[0] for one in widths], [one[1] for one in widths]
    if all(width == 0 for width in (*before, *behind)):
        return x
    return w.spell("Pad", x, w.sizes((*before, *behind)), value)


def _spread(w: JaxWriter, x: JaxValue, value: JaxValue, between: Sequence[int]) -> JaxValue:
    """The elements with others between them."""
    known = w.known(value)
    steps = tuple(count + 1 for count in between)
    if known is not None and known.item() == 0 and x.dtype != "bool":
        return w.emit(Spread(steps), x)
    for axis, step in enumerate(steps):
        if step == 1:
            continue
        size = x.shape[axis]
        wide = w.reshape(x, (*x.shape[: axis + 1], 1, *x.shape[axis + 1 :]))
        behind = [0] * wide.rank
        behind[axis + 1] = step - 1
        spread = w.spell("Pad", wide, w.sizes((*[0] * wide.rank, *behind)), value)
        x = w.reshape(spread, (*x.shape[:axis], size * step, *x.shape[axis + 1 :]))
        ends = list(x.shape)
        ends[axis] = size * step - (step - 1)
        x = sliced(w, x, [0] * x.rank, ends)
    return x


def counted(w: JaxWriter, size: AnySize, dtype: str) -> JaxValue:
    """0, 1, ... of so many numbers."""
    if isinstance(size, int):
        return w.constant(np.arange(size).astype(numpy_type(dtype)))
    return w.cast(w.emit(SizeRange(0, size)), dtype)


def _iota(w: JaxWriter, dtype: str, shape: Sizes, dimension: int) -> JaxValue:
    numbers = counted(w, shape[dimension], dtype)
    places = [shape[dimension] if axis == dimension else 1 for axis in range(len(shape))]
    return w.repeat(w.reshape(numbers, places), shape)


def _dim_as_value(w: JaxWriter, dim: AnySize) -> JaxValue:
    return w.number(dim, w.types[0].dtype)


def _empty(w: JaxWriter, dtype: str, shape: Sizes) -> JaxValue:
    return w.filled(shape, 0, dtype)


RULES: dict[str, Rule] = {
    "broadcast_in_dim": _broadcast,
    "concatenate": _concatenate,
    "copy": _same,
    "device_put": _same,
    "dim_as_value": _dim_as_value,
    "empty": _empty,
    "iota": _iota,
    "name": _same,
    "optimization_barrier": _same,
    "pad": _pad,
    "reshape": _reshape,
    "rev": _reverse,
    "sharding_constraint": _same,
    "slice": _slice,
    "split": _split,
    "squeeze": _squeeze,
    "stack": _stack,
    "stop_gradient": _same,
    "tile": _tile,
    "transpose": _transpose,
    "unstack": _unstack,
}
