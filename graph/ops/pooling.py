"""Pooling over windows of the spatial axes (MaxPool, AveragePool, SumPool) and over all of them
(GlobalAveragePool).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from ...tir.expr import Expr
from ...tir.sizes import AnySize, at_most, axis_of, closed
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Array, TensorType
from .base import (
    Layout,
    Operator,
    ReferenceWork,
    check_arity,
    check_float,
    check_number,
    lowest,
    shape_of,
    tensor_type,
)
from .spatial import Pads, Spatial
from .window import (
    Axis,
    channel_axis,
    channels_first,
    check_spatial,
    pad_stage,
    place,
    restored,
    spatial_axes,
    window_axes,
    window_facts,
    windows_of,
    windows_work,
)


def pooled_type(x: TensorType, axes: Sequence[Axis], layout: Layout) -> TensorType:
    """The type of one value per window."""
    channels = x.shape[channel_axis(layout, x.rank)]
    return TensorType(x.dtype, place(layout, x.shape[0], channels, [axis.windows for axis in axes]))


def pool_stage(
    x: Tensor, axes: Sequence[Axis], layout: Layout, combine: Callable[..., Expr], name: str
) -> Tensor:
    """`combine` over the taps of each window of `x`, which is padded already."""
    spatial = spatial_axes(layout, len(x.shape))
    taps = tuple(te.reduce_axis(axis.kernel, name=f"k{d}") for d, axis in enumerate(axes))

    def element(*indices: Expr) -> Expr:
        window = [
            indices[d] * axis.stride + tap * axis.dilation
            for d, axis, tap in zip(spatial, axes, taps, strict=True)
        ]
        channel = indices[channel_axis(layout, len(indices))]
        return combine(x[place(layout, indices[0], channel, window)], axis=taps)

    shape = pooled_type(tensor_type(x), axes, layout).shape
    return te.compute(shape, element, name=name)


P = TypeVar("P", bound="_WindowPool")


@dataclass(frozen=True, slots=True)
class _WindowPool(Spatial):
    """One number for each window. `ceil` rounds the number of windows up."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...] = (1, 1)
    pads: tuple[int, ...] = (0, 0, 0, 0)
    dilations: tuple[int, ...] = (1, 1)
    ceil: bool = False
    layout: Layout = "NCHW"

    def channels_last(self: P) -> P:
        return replace(self, layout="NHWC")

    def axes(self, x: TensorType) -> tuple[Axis, ...]:
        """The windows over the spatial axes of `x`."""
        sizes = check_spatial(self, x, self.layout)
        return window_axes(
            self, sizes, self.kernel, self.strides, self.pads, self.dilations, self.ceil
        )

    def _joined(self, pads: Pads) -> tuple[int, ...] | None:
        """The own pads with others, which `ceil` would count as data."""
        axes = spatial_axes(self.layout, len(pads.before))
        return None if self.ceil else pads.joined(self.pads, axes)

    def _check(self, types: tuple[TensorType, ...]) -> None:
        """Refuse element types that have no such number."""
        check_float(self, types)

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        self._check(types)
        return (pooled_type(types[0], self.axes(types[0]), self.layout),)

    def work(self, types: tuple[TensorType, ...]) -> ReferenceWork:
        return windows_work(Operator.work(self, types), types[0], self.layout, self.axes(types[0]))

    def facts(self, types: tuple[TensorType, ...]) -> tuple[Expr, ...]:
        return window_facts(self.axes(types[0]))


@dataclass(frozen=True, slots=True)
class MaxPool(_WindowPool):
    """The maximum of each window; padding never wins."""

    def padding(self, pads: Pads) -> MaxPool | None:
        joined = self._joined(pads)
        return None if joined is None or pads.value != -math.inf else replace(self, pads=joined)

    def _check(self, types: tuple[TensorType, ...]) -> None:
        check_number(self, types)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x = arrays[0]
        axes = self.axes(TensorType(x.dtype.name, x.shape))
        windows = windows_of(channels_first(x, self.layout), axes, lowest(x.dtype.name))
        return (restored(windows.max(axis=_taps(axes)), self.layout),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (x,) = tensors
        axes = self.axes(tensor_type(x))
        padded = pad_stage(x, axes, self.layout, lowest(str(x.dtype)), name)
        return (pool_stage(padded, axes, self.layout, te.max, name),)


@dataclass(frozen=True, slots=True)
class AveragePool(_WindowPool):
    """The mean of each window.

    With `include_pad`, padding counts as zeros; what `ceil` adds beyond it never counts.
    """

    include_pad: bool = False

    def counted(self, axis: Axis) -> tuple[int, AnySize]:
        """First and end of the padded positions along `axis` that count."""
        if self.include_pad:
            return 0, axis.before + axis.size + axis.after
        return axis.before, axis.before + axis.size

    def padding(self, pads: Pads) -> AveragePool | None:
        joined = self._joined(pads)
        if joined is None or pads.value != 0 or (any(self.pads) and not self.include_pad):
            return None
        return replace(self, pads=joined, include_pad=True)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x = arrays[0]
        axes = self.axes(TensorType(x.dtype.name, x.shape))
        total = windows_of(channels_first(x, self.layout), axes, 0.0).sum(axis=_taps(axes))
        for d, axis in enumerate(axes):
            first, end = self.counted(axis)
            starts = np.arange(closed(axis.windows))[:, None] * axis.stride
            taps = starts + np.arange(axis.kernel) * axis.dilation
            count = ((taps >= first) & (taps < closed(end))).sum(axis=1).astype(x.dtype)
            total = total / count.reshape(-1, *(1,) * (len(axes) - 1 - d))
        return (restored(total, self.layout),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (x,) = tensors
        axes = self.axes(tensor_type(x))
        padded = pad_stage(x, axes, self.layout, 0.0, name)
        total = pool_stage(padded, axes, self.layout, te.sum, f"{name}_sum")
        spatial = spatial_axes(self.layout, len(x.shape))

        def element(*indices: Expr) -> Expr:
            fixed, varying = 1, []
            for d, axis in zip(spatial, axes, strict=True):
                first, end = self.counted(axis)
                if first == 0 and at_most(axis.padded, end) is True:
                    fixed *= axis.kernel
                else:
                    more = closed(end - axis.size)  # the same in every run
                    varying.append(_count(indices[d], axis, first, x.extents[d] + more))
            if not varying:
                return total[indices] / float(fixed)
            count = math.prod(varying, start=te.const(fixed, "int64"))
            return total[indices] / te.cast(count, x.dtype)

        return (te.compute(shape_of(total), element, name=name),)


@dataclass(frozen=True, slots=True)
class SumPool(_WindowPool):
    """The sum of each window; padding counts as zeros."""

    def padding(self, pads: Pads) -> SumPool | None:
        joined = self._joined(pads)
        return None if joined is None or pads.value != 0 else replace(self, pads=joined)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x = arrays[0]
        axes = self.axes(TensorType(x.dtype.name, x.shape))
        windows = windows_of(channels_first(x, self.layout), axes, 0.0)
        return (restored(windows.sum(axis=_taps(axes)), self.layout),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (x,) = tensors
        axes = self.axes(tensor_type(x))
        padded = pad_stage(x, axes, self.layout, 0.0, name)
        return (pool_stage(padded, axes, self.layout, te.sum, name),)


@dataclass(frozen=True, slots=True)
class GlobalAveragePool(Spatial):
    """The mean over all spatial axes, which stay with size 1."""

    layout: Layout = "NCHW"

    def channels_last(self) -> GlobalAveragePool:
        return replace(self, layout="NHWC")

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        check_float(self, types)
        x = types[0]
        sizes = check_spatial(self, x, self.layout)
        channels = x.shape[channel_axis(self.layout, x.rank)]
        return (TensorType(x.dtype, place(self.layout, x.shape[0], channels, (1,) * len(sizes))),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        return (x.mean(axis=spatial_axes(self.layout, x.ndim), keepdims=True),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (x,) = tensors
        sizes = check_spatial(self, tensor_type(x), self.layout)
        taps = tuple(te.reduce_axis(axis_of(n), name=f"k{d}") for d, n in enumerate(sizes))
        channels = channel_axis(self.layout, len(x.shape))

        def element(*indices: Expr) -> Expr:
            return te.sum(x[place(self.layout, indices[0], indices[channels], taps)], axis=taps)

        (shape,) = (type_.shape for type_ in self.infer((tensor_type(x),)))
        total = te.compute(shape, element, name=f"{name}_sum")
        count = math.prod(x.extents[d] for d in spatial_axes(self.layout, len(x.shape)))
        divisor = te.cast(count, x.dtype) if isinstance(count, Expr) else float(count)
        return (te.compute(shape, lambda *i: total[i] / divisor, name=name),)


def _taps(axes: Sequence[Axis]) -> tuple[int, ...]:
    """The axes of `windows_of` that hold the taps of a window."""
    return tuple(range(-len(axes), 0))


def _count(index: Expr, axis: Axis, first: int, end: int | Expr) -> Expr:
    """How many taps of window `index` lie in first .. end-1, as an integer expression."""
    start, step = index * axis.stride, axis.dilation
    stop = te.minimum((end - start + (step - 1)) // step, axis.kernel)
    return stop - te.maximum((first - start + (step - 1)) // step, 0)
