"""Operators that take a part of a tensor or surround it: Slice, Pad, Spread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ...tir.dim import Dim
from ...tir.expr import Expr
from ...tir.sizes import (
    AnySize,
    Size,
    as_expression,
    axis_of,
    closed,
    closed_shape,
    greatest,
    interval,
    is_closed,
    largest,
)
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Array, Shape, TensorType
from .base import Operator, OperatorRole, check_arity, refuse, shape_of, tensor_type

PadMode = Literal["constant", "edge", "reflect", "wrap"]


@dataclass(frozen=True, slots=True)
class Slice(Operator):
    """Along each axis d, the `sizes[d]` elements at starts[d], starts[d] + steps[d], ...; a step
    may be negative.
    """

    starts: Shape
    sizes: Shape
    steps: tuple[int, ...]

    role = OperatorRole.MOVEMENT
    rearranges = True

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        (x,) = types
        if not len(self.starts) == len(self.sizes) == len(self.steps) == x.rank:
            problem = f"expected a start, a size and a step for each axis of {x}, got {self}"
            refuse(self, problem, code="slice-rank")
        for axis, (start, size, step) in enumerate(
            zip(self.starts, self.sizes, self.steps, strict=True)
        ):
            last = start + (size - 1) * step
            extent = x.shape[axis]
            if not _lies_within(start, size, last, extent):
                problem = (
                    f"axis {axis} of {x} is read from {start} to {last}; expected 0 to {extent - 1}"
                )
                refuse(self, problem, code="slice-bounds")
        return (TensorType(x.dtype, self.sizes),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        for axis, (start, size, step) in enumerate(
            zip(closed_shape(self.starts), closed_shape(self.sizes), self.steps, strict=True)
        ):
            x = np.take(x, start + step * np.arange(size), axis)
        return (x,)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (x,) = tensors
        shape = shape_of(x)

        def element(*indices: Expr) -> Expr:
            places, inside = [], []
            walked = zip(indices, self.starts, self.sizes, self.steps, shape, strict=True)
            for d, (index, start, size, step, extent) in enumerate(walked):
                places.append(_stepped(index, start, step))
                if not (start == 0 and size == extent) and not _stays_inside(
                    start, size, step, extent
                ):
                    # always so: `infer` has seen it, of sizes that a kernel knows apart
                    inside += [places[-1] >= 0, places[-1] < x.extents[d]]
            found = x[tuple(places)]
            return te.select(te.all_of(*inside), found, te.const(0, x.dtype)) if inside else found

        return (te.compute(self.sizes, element, name=name),)


@dataclass(frozen=True, slots=True)
class Pad(Operator):
    """The input with `before[d]` and `after[d]` elements added at the ends of each axis d.

    mode: what they are. "constant": `value`. "edge": the nearest element. "reflect": the input
    mirrored at its first and last elements, which are not repeated. "wrap": the input over and
    over. Pads are not negative.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    mode: PadMode = "constant"
    value: float | int | bool = 0

    role = OperatorRole.MOVEMENT
    rearranges = False

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        (x,) = types
        if not len(self.before) == len(self.after) == x.rank:
            problem = f"expected two pads for each axis of {x}, got {self.before} and {self.after}"
            refuse(self, problem, code="pad-rank")
        if min((0, *self.before, *self.after)) < 0:
            problem = f"expected pads of 0 or more, got {self.before} and {self.after}"
            refuse(self, problem, code="pad-negative")
        shape = []
        for axis, (size, first, last) in enumerate(
            zip(x.shape, self.before, self.after, strict=True)
        ):
            if not size and first + last and self.mode != "constant":
                problem = f"axis {axis} of {x} has no elements to take the {self.mode} pads from"
                refuse(self, problem, code="pad-empty")
            mirrored = max(first, last) if self.mode == "reflect" and isinstance(size, Size) else 0
            if mirrored and not size > mirrored:  # once at each end, where a run decides the size
                problem = f"axis {axis} of {x} has too few elements for {mirrored} reflect pads"
                refuse(self, problem, code="pad-empty")
            shape.append(first + size + last)
        return (TensorType(x.dtype, tuple(shape)),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        widths = list(zip(self.before, self.after, strict=True))
        if self.mode == "constant":
            value = x.dtype.type(self.value)
            return (np.pad(x, widths, mode="constant", constant_values=value),)
        return (np.pad(x, widths, mode=self.mode),)

    def facts(self, types: tuple[TensorType, ...]) -> tuple[Expr, ...]:
        """What is mirrored has no more elements than the axis and its pads."""
        found = []
        for size, first, last in zip(types[0].shape, self.before, self.after, strict=True):
            given, made = axis_of(size), axis_of(size + first + last)
            if self.mode == "reflect" and isinstance(given, Dim) and given is not made:
                found.append(given + (first + last) - made)
        return tuple(found)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (x,) = tensors
        (result,) = self.infer(tuple(map(tensor_type, tensors)))
        shape = shape_of(x)
        padded = [d for d in range(result.rank) if self.before[d] or self.after[d]]

        def element(*indices: Expr) -> Expr:
            source: list[Expr | int] = list(indices)
            inside: list[Expr] = []
            for d in padded:
                position = indices[d] - self.before[d]
                if self.mode == "constant":
                    source[d] = position
                    # what a run decides is known apart on either side: the end is asked for, too
                    has_end = self.after[d] > 0 or isinstance(shape[d], Size)
                    inside += [indices[d] >= self.before[d]] * (self.before[d] > 0)
                    inside += [position < x.extents[d]] * has_end
                else:
                    most = max(self.before[d], self.after[d])
                    source[d] = _folded(position, shape[d], self.mode, most)
            value = x[tuple(source)]
            return te.select(te.all_of(*inside), value, self.value) if inside else value

        return (te.compute(result.shape, element, name=name),)


@dataclass(frozen=True, slots=True)
class Spread(Operator):
    """The input with `steps[d]` - 1 zeros between neighbours along each axis d."""

    steps: tuple[int, ...]

    role = OperatorRole.MOVEMENT
    rearranges = False

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        (x,) = types
        if len(self.steps) != x.rank or min((1, *self.steps)) < 1:
            problem = f"expected a step of 1 or more for each axis of {x}, got {self.steps}"
            refuse(self, problem, code="spread-steps")
        return (TensorType(x.dtype, self._shape(x.shape)),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        y = np.zeros(closed_shape(self._shape(x.shape)), x.dtype)
        y[tuple(slice(None, None, step) for step in self.steps)] = x
        return (y,)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (x,) = tensors
        shape = shape_of(x)
        spread = [d for d, step in enumerate(self.steps) if step > 1 and shape[d] != 1]

        def element(*indices: Expr) -> Expr:
            source: list[Expr | int] = [
                index // self.steps[d] if d in spread else index for d, index in enumerate(indices)
            ]
            hits = [te.eq(indices[d] % self.steps[d], 0) for d in spread]
            open_axes = [d for d in spread if isinstance(shape[d], Size)]
            hits += [indices[d] // self.steps[d] < x.extents[d] for d in open_axes]
            value = x[tuple(source)]
            return te.select(te.all_of(*hits), value, 0) if hits else value

        return (te.compute(self._shape(shape_of(x)), element, name=name),)

    def _shape(self, shape: Shape) -> Shape:
        pairs = zip(shape, self.steps, strict=True)
        return tuple(greatest(0, (size - 1) * step + 1) for size, step in pairs)


def _lies_within(start: AnySize, size: AnySize, last: AnySize, extent: AnySize) -> bool:
    """Whether all places from the first to the last are of an axis, in every run; of none there are
    none outside. Raises: SizeError where a run decides it.
    """
    if is_closed((start, size, extent)):
        return size == 0 or (0 <= start < extent and 0 <= last < extent)
    return start >= 0 and last < extent


def _stepped(index: Expr, start: AnySize, step: int) -> Expr:
    scaled = index if step == 1 else index * step
    return scaled if start == 0 else scaled + as_expression(start)


def _stays_inside(start: AnySize, size: AnySize, step: int, extent: AnySize) -> bool:
    """Whether the bounds alone say that a walk stays within an axis."""
    low, high = interval(start)
    reach = (largest(size) - 1) * step
    return min(low, low + reach) >= 0 and max(high, high + reach) < interval(extent)[0]


def _folded(position: Expr, extent: AnySize, mode: PadMode, most: int) -> Expr | int:
    """The element of an axis of `extent` that stands at a position up to `most` outside, too."""
    if mode == "edge":
        return te.maximum(te.minimum(position, axis_of(extent) - 1), 0)
    if mode == "reflect" and (isinstance(extent, Size) or most < extent):
        away = te.maximum(position, -position)  # pads are smaller than the axis: once at each end
        return te.minimum(away, (axis_of(extent) - 1) * 2 - away)
    size = closed(extent)
    match mode:
        case "wrap":
            return position % size
        case _ if size == 1:
            return 0
        case _:
            period = 2 * (size - 1)
            return te.minimum(position % period, period - position % period)
