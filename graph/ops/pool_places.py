"""MaxPool that also says where each maximum stands, and MaxUnpool, which puts it back there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...tir.dim import Dim
from ...tir.expr import Expr
from ...tir.sizes import axis_of, closed, closed_shape
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Array, TensorType
from .base import (
    Operator,
    OperatorRole,
    ReferenceWork,
    check_arity,
    check_number,
    listed,
    lowest,
    refuse,
    shape_of,
    tensor_type,
)
from .pooling import pooled_type
from .window import Axis, check_spatial, window_axes, windows_of, windows_work

_WITHIN = "place within its window"


@dataclass(frozen=True, slots=True)
class MaxPoolPlaces(Operator):
    """The maximum of each window of [N, C, spatial...], and where in all the data it stands, as
    int64: of equal ones the first; -1 in a window of padding alone. `ceil` rounds the number of
    windows up. columns: places are counted along the first spatial axis first.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...] = (1, 1)
    pads: tuple[int, ...] = (0, 0, 0, 0)
    dilations: tuple[int, ...] = (1, 1)
    ceil: bool = False
    columns: bool = False

    role = OperatorRole.GENERAL
    output_count = 2

    def axes(self, x: TensorType) -> tuple[Axis, ...]:
        """The windows over the spatial axes of `x`."""
        sizes = check_spatial(self, x, "NCHW")
        return window_axes(
            self, sizes, self.kernel, self.strides, self.pads, self.dilations, self.ceil
        )

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        check_number(self, types)
        pooled = pooled_type(types[0], self.axes(types[0]), "NCHW")
        return pooled, TensorType("int64", pooled.shape)

    def work(self, types: tuple[TensorType, ...]) -> ReferenceWork:
        base = windows_work(Operator.work(self, types), types[0], "NCHW", self.axes(types[0]))
        return ReferenceWork(2 * base.held, 4 * base.steps)

    def facts(self, types: tuple[TensorType, ...]) -> tuple[Expr, ...]:
        """The last window ends where the data do, or before, unless that is asked for."""
        found = []
        for axis in self.axes(types[0]):
            size, count = axis_of(axis.size), axis_of(axis.windows)
            if isinstance(size, Dim) and size is not count and not axis.reaches_past:
                end = count * axis.stride + (axis.extent - axis.stride)
                found.append(size + axis.before - end)
        return tuple(found)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        axes = self.axes(TensorType(x.dtype.name, x.shape))
        count = len(axes)
        values = windows_of(x, axes, lowest(x.dtype.name))
        flat = (*values.shape[: 2 + count], math.prod(self.kernel))
        places = np.arange(x.size, dtype=np.int64).reshape(x.shape)
        if self.columns:
            turned = np.arange(x.size, dtype=np.int64).reshape(*x.shape[:2], *x.shape[:1:-1])
            places = turned.transpose(0, 1, *range(x.ndim - 1, 1, -1))
        numbers, at = values.reshape(flat), windows_of(places, axes, -1).reshape(flat)
        if not numbers.size:
            return numbers.max(axis=-1, initial=0), at.max(axis=-1, initial=0)
        # a maximum that padding reaches, too, is the first one that is an element
        best = numbers.max(axis=-1, keepdims=True)
        hit = np.logical_or(np.equal(numbers, best), np.not_equal(numbers, numbers)) & (at >= 0)
        first = np.argmax(hit, axis=-1, keepdims=True)
        return best[..., 0], np.take_along_axis(at, first, -1)[..., 0]

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (x,) = tensors
        axes = self.axes(tensor_type(x))
        values, result = self.infer((tensor_type(x),))
        taps = tuple(te.reduce_axis(axis.kernel, name=f"k{d}") for d, axis in enumerate(axes))

        def largest(*i: Expr) -> Expr:
            at, inside = self._at(x, axes, i[2:], taps)
            where = te.all_of(*inside) if inside else None
            return te.argmax(x[(*i[:2], *at)], axis=taps, where=where)

        pooled, found = te.compute(values.shape, largest, name=(name, f"{name}_tap"))

        def place(*i: Expr) -> Expr:
            tap: Expr = found[i]
            steps = list[Expr]()
            for axis in reversed(axes):
                steps.insert(0, tap % axis.kernel)
                tap = tap // axis.kernel
            at, _ = self._at(x, axes, i[2:], steps)
            channel = i[0] * x.extents[1] + i[1]
            order = range(len(axes) - 1, -1, -1) if self.columns else range(len(axes))
            offset: Expr = te.cast(channel, "int64")
            for d in order:
                offset = offset * x.extents[2 + d] + at[d]
            return te.select(tap > 0, te.const(-1, "int64"), offset)

        return pooled, te.compute(result.shape, place, name=f"{name}_place")

    def _at(
        self, x: Tensor, axes: Sequence[Axis], windows: Sequence[Expr], taps: Sequence[Expr]
    ) -> tuple[list[Expr], list[Expr]]:
        """Where taps of windows stand, and whether these are elements."""
        at, inside = list[Expr](), list[Expr]()
        for d, (axis, window, tap) in enumerate(zip(axes, windows, taps, strict=True)):
            place = window * axis.stride + tap * axis.dilation
            if axis.before:
                place = place - axis.before
                inside.append(place >= 0)
            if axis.reaches_past:
                inside.append(place < x.extents[2 + d])
            at.append(place)
        return at, inside


@dataclass(frozen=True, slots=True)
class MaxUnpool(Operator):
    """Zeros, but for the maximum of each window, which stands where it stood.

    Inputs: maxima of [N, C, windows...] and, as int64, their places among all elements of the
    result. A place outside of its own window has no meaning: a call raises IndexError, after it has
    run with the nearest one within. Of windows that name one place, the last one counts. The
    kernel looks for each element in the windows that it is in.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[int, ...]

    role = OperatorRole.GENERAL
    operand_names = ("x", "places")
    checks_indices = True

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 2, 2)
        x, places = types
        check_number(self, (x,))
        sizes, count = check_spatial(self, x, "NCHW"), len(self.kernel)
        fitting = len(sizes) == count == len(self.strides) and len(self.pads) == 2 * count
        positive = min((1, *self.kernel, *self.strides)) > 0 and min((0, *self.pads)) == 0
        if not fitting or not positive or places != TensorType("int64", x.shape):
            problem = (
                f"{listed(types)} are no maxima and places of windows with kernel {self.kernel}, "
                f"strides {self.strides}, pads {self.pads}"
            )
            refuse(self, problem, code="unpool-windows")
        spatial = tuple(
            (closed(size) - 1) * stride + kernel - self.pads[d] - self.pads[count + d]
            for d, (size, stride, kernel) in enumerate(
                zip(sizes, self.strides, self.kernel, strict=True)
            )
        )
        if min(spatial) < 1:
            refuse(self, f"{x} gives a result of {spatial} elements", code="unpool-size")
        return (TensorType(x.dtype, (*x.shape[:2], *spatial)),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, places = arrays
        (result,) = self.infer((TensorType(x.dtype.name, x.shape), TensorType("int64", x.shape)))
        shape = closed_shape(result.shape)
        y = np.zeros(shape, x.dtype)
        if not x.size:
            return (y,)
        at: list[Array] = list(np.indices(x.shape, sparse=True)[:2])
        rest = places.astype(np.int64)
        inner: list[Array] = []
        if not any(self.pads):
            return (self._written(y, x, rest),)
        for d in range(len(self.kernel) - 1, -1, -1):
            start = np.indices(x.shape, sparse=True)[2 + d] * self.strides[d] - self.pads[d]
            tap = np.clip(rest % shape[2 + d] - start, 0, self.kernel[d] - 1)
            inner.insert(0, np.clip(start + tap, 0, shape[2 + d] - 1))
            rest = rest // shape[2 + d]
        full = np.broadcast_arrays(*at, *inner)
        y[tuple(part.reshape(-1) for part in full)] = x.reshape(-1)
        return (y,)

    def _written(self, y: Array, x: Array, places: NDArray[np.int64]) -> Array:
        """y with x at places among all elements: each in the row of its window that it is in, or
        that is nearest, and then in the nearest column of the window.
        """
        grid = np.indices(x.shape, sparse=True)
        starts = [grid[2 + d] * stride for d, stride in enumerate(self.strides)]
        first = np.ravel_multi_index(np.broadcast_arrays(*grid[:2], *starts), y.shape)
        rest: NDArray[np.int64] = np.subtract(places, first, dtype=np.int64)
        inner = list[Array]()
        for d, (start, kernel) in enumerate(zip(starts, self.kernel, strict=True)):
            row = math.prod(y.shape[3 + d :])
            tap = np.clip(rest // row, 0, kernel - 1)
            inner.append(start + tap)
            rest = rest - tap * row
        full = np.broadcast_arrays(*grid[:2], *inner)
        y[tuple(part.reshape(-1) for part in full)] = x.reshape(-1)
        return y

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        x, places = tensors
        (result,) = self.infer(tuple(map(tensor_type, tensors)))
        if 0 in x.shape:
            return (te.compute(result.shape, lambda *_: te.const(0, x.dtype), name=name),)
        if not any(self.pads):
            return self._scattered(x, places, closed_shape(result.shape), name)
        taps = self._taps(places, closed_shape(result.shape[2:]), f"{name}_tap")
        sizes = closed_shape(shape_of(x)[2:])
        # an element is in so many windows along each axis
        counts = [
            -(-kernel // stride) for kernel, stride in zip(self.kernel, self.strides, strict=True)
        ]
        if math.prod(counts) == 1:

            def only(*i: Expr) -> Expr:
                at, inside, tap = self._windows(i, sizes, counts, [0] * len(counts))
                within = tuple(te.clamp_index(w, n) for w, n in zip(at, sizes, strict=True))
                hit = te.all_of(*inside, te.eq(taps[(*i[:2], *within)], tap))
                return te.select(hit, x[(*i[:2], *within)], te.const(0, x.dtype))

            return (te.compute(result.shape, only, name=name),)
        steps = [te.reduce_axis(n, name=f"j{d}") for d, n in enumerate(counts)]

        def number(*i: Expr) -> Expr:
            """Of the last window that has its maximum here; -1 where none has."""
            at, inside, tap = self._windows(i, sizes, counts, steps)
            found = te.select(te.all_of(*inside), taps[(*i[:2], *at)], te.const(-1, "int64"))
            which: Expr = te.const(0, "int64")
            for step, count in zip(steps, counts, strict=True):
                which = which * count + step
            last = te.select(te.eq(found, tap), which, te.const(-1, "int64"))
            return te.max(last, axis=tuple(steps))

        last = te.compute(result.shape, number, name=f"{name}_window")

        def element(*i: Expr) -> Expr:
            which: Expr = last[i]
            chosen = list[Expr]()
            for count in reversed(counts):
                chosen.insert(0, which % count)
                which = which // count
            at, _, _ = self._windows(i, sizes, counts, chosen)
            within = tuple(te.clamp_index(w, n) for w, n in zip(at, sizes, strict=True))
            return te.select(last[i] >= 0, x[(*i[:2], *within)], te.const(0, x.dtype))

        return (te.compute(result.shape, element, name=name),)

    def _scattered(
        self, x: Tensor, places: Tensor, shape: tuple[int, ...], name: str
    ) -> tuple[Tensor, ...]:
        """Each maximum is written where it stood, window after window: without padding."""
        sizes = shape[2:]

        def taps(*i: Expr) -> tuple[Expr, ...]:
            """Which tap of the window along each axis but the last, and what is left of a place."""
            start = i[0] * shape[1] + i[1]
            for d, size in enumerate(sizes):
                start = start * size + i[2 + d] * self.strides[d]
            rest: Expr = places[i] - start
            found = list[Expr]()
            for d in range(len(sizes) - 1):
                row = math.prod(sizes[d + 1 :])
                tap: Expr = te.const(0, "int64")
                for n in range(1, self.kernel[d]):
                    tap = te.select(rest >= n * row, te.const(n, "int64"), tap)
                found.append(te.cast(i[2 + d] * self.strides[d] + tap, "int32"))
                rest = rest - tap * row
            return (*found, rest)

        *names, last = (f"{name}_place{d}" for d in range(len(sizes)))
        *made, rest = te.compute(shape_of(x), taps, name=(*names, f"{name}_rest"))

        def column(*i: Expr) -> Expr:
            tap = te.checked(rest[i], self.kernel[-1], what=_WITHIN)
            return te.cast(i[-1] * self.strides[-1] + tap, "int32")

        made.append(te.compute(shape_of(x), column, name=last))
        zero = te.compute((), lambda: te.const(0, x.dtype), name=f"{name}_zero")
        count = len(sizes)
        y = te.scatter(zero, x, tuple(made), axis=2, span=count, shape=shape, name=name)
        return (y,)

    def _taps(self, places: Tensor, sizes: tuple[int, ...], name: str) -> Tensor:
        """Which tap of its window each place is, counted in row-major order."""

        def element(*i: Expr) -> Expr:
            rest: Expr = places[i]
            found: Expr = te.const(0, "int64")
            weight = 1
            for d in range(len(sizes) - 1, -1, -1):
                start = i[2 + d] * self.strides[d] - self.pads[d]
                tap = te.checked(rest % sizes[d] - start, self.kernel[d], what=_WITHIN)
                found, weight = found + tap * weight, weight * self.kernel[d]
                rest = rest // sizes[d]
            channel = i[0] * places.extents[1] + i[1]
            return found + te.checked(rest - channel, 1, what=_WITHIN)

        return te.compute(shape_of(places), element, name=name)

    def _windows(
        self,
        i: tuple[Expr, ...],
        sizes: tuple[int, ...],
        counts: Sequence[int],
        steps: Sequence[Expr | int],
    ) -> tuple[list[Expr], list[Expr], Expr]:
        """Of the windows that an element may be in, those of number `steps`; whether it is in them,
        and as which tap.
        """
        at, inside = list[Expr](), list[Expr]()
        found: Expr = te.const(0, "int64")
        for d, (kernel, stride) in enumerate(zip(self.kernel, self.strides, strict=True)):
            place = i[2 + d] + self.pads[d]
            window = place // stride - (counts[d] - 1) + steps[d]
            tap = place - window * stride
            inside += [window >= 0, window < sizes[d], tap < kernel]
            at.append(window)
            found = found * kernel + tap
        return at, inside, found
