"""Sliding windows over the spatial axes of a tensor: where they lie, how many, what pads them.

A tensor of rank 2 + n has a batch axis, a channel axis and n spatial axes; `layout` "NCHW" means
channels second, "NHWC" channels last, for every n. `pads` are n numbers before, then n after the
spatial axes, as in ONNX.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ...tir.expr import Expr
from ...tir.sizes import closed_shape, largest
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Array, TensorType
from .base import Layout, Operator, ReferenceWork, refuse, shape_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Axis:
    """The windows along one spatial axis of `size` elements."""

    size: int
    kernel: int
    stride: int
    dilation: int
    before: int
    after: int
    ceil: bool = False

    @property
    def extent(self) -> int:
        """From the first to the last tap of one window."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def windows(self) -> int:
        """Number of windows.

        With `ceil` the last may reach past the padding, but it starts before the end of the data.
        """
        room = self.size + self.before + self.after - self.extent
        if not self.ceil:
            return room // self.stride + 1
        count = -(-room // self.stride) + 1
        return count - 1 if (count - 1) * self.stride >= self.size + self.before else count

    @property
    def padded(self) -> int:
        """From the first padding element to the last element that a window reads."""
        return (self.windows - 1) * self.stride + self.extent

    @property
    def inside(self) -> bool:
        """Whether every window lies within the tensor, so that no padding is read."""
        return self.before == 0 and self.padded <= self.size


def channel_axis(layout: Layout, rank: int) -> int:
    """Where the channels of a tensor of `rank` axes are."""
    return 1 if layout == "NCHW" else rank - 1


def spatial_axes(layout: Layout, rank: int) -> tuple[int, ...]:
    """Where the spatial axes of a tensor of `rank` axes are."""
    return tuple(range(2, rank)) if layout == "NCHW" else tuple(range(1, rank - 1))


def place(layout: Layout, batch: T, channel: T, spatial: Sequence[T]) -> tuple[T, ...]:
    """What belongs to the three kinds of axes, in the order of `layout`."""
    return (batch, channel, *spatial) if layout == "NCHW" else (batch, *spatial, channel)


def channels_first(array: Array, layout: Layout) -> Array:
    """A view of `array` with its channels second."""
    return array if layout == "NCHW" else np.moveaxis(array, -1, 1)


def restored(array: Array, layout: Layout) -> Array:
    """`array`, whose channels are second, in `layout`, densely stored."""
    return np.ascontiguousarray(array if layout == "NCHW" else np.moveaxis(array, 1, -1))


def check_spatial(operator: Operator, type_: TensorType, layout: Layout) -> tuple[int, ...]:
    """The spatial sizes of `type_`. Raises: ModelError when it has no spatial axis."""
    if type_.rank < 3:
        problem = f"expected batch, channels and at least one spatial axis, got {type_}"
        refuse(operator, problem, code="op-spatial-rank")
    return closed_shape(type_.shape[axis] for axis in spatial_axes(layout, type_.rank))


def window_axes(
    operator: Operator,
    sizes: tuple[int, ...],
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    pads: tuple[int, ...],
    dilations: tuple[int, ...],
    ceil: bool = False,
) -> tuple[Axis, ...]:
    """The windows along each spatial axis. Raises: ModelError when none fits or makes sense."""
    n = len(sizes)
    if not (len(kernel) == len(strides) == len(dilations) == n and len(pads) == 2 * n):
        problem = (
            f"{n} spatial axes need {n} kernel sizes, strides and dilations and {2 * n} pads, "
            f"got kernel {kernel}, strides {strides}, dilations {dilations}, pads {pads}"
        )
        refuse(operator, problem, code="window-length")
    if min((*kernel, *strides, *dilations)) < 1 or min(pads) < 0:
        problem = (
            "kernel sizes, strides and dilations must be at least 1 and pads at least 0, "
            f"got kernel {kernel}, strides {strides}, dilations {dilations}, pads {pads}"
        )
        refuse(operator, problem, code="window-range")
    axes = tuple(
        Axis(sizes[d], kernel[d], strides[d], dilations[d], pads[d], pads[n + d], ceil)
        for d in range(n)
    )
    for axis in axes:
        if axis.extent > axis.size + axis.before + axis.after:
            problem = (
                f"a window of {axis.extent} elements does not fit into {axis.size} elements "
                f"padded by {axis.before} and {axis.after}"
            )
            refuse(operator, problem, code="window-fit")
    return axes


def windows_of(array: Array, axes: Sequence[Axis], fill: float) -> Array:
    """Every window of a channels-first `array`, a view: [N, C, windows..., taps...]."""
    n = len(axes)
    widths = [(0, 0), (0, 0)]
    widths += [(axis.before, max(0, axis.padded - axis.before - axis.size)) for axis in axes]
    if any(any(pair) for pair in widths):
        array = np.pad(array, widths, constant_values=fill)
    extents = tuple(axis.extent for axis in axes)
    views = sliding_window_view(array, extents, axis=tuple(range(2, 2 + n)))
    starts = tuple(slice(0, (axis.windows - 1) * axis.stride + 1, axis.stride) for axis in axes)
    taps = tuple(slice(None, None, axis.dilation) for axis in axes)
    return views[(slice(None), slice(None), *starts, *taps)]


def windows_work(
    base: ReferenceWork, type_: TensorType, layout: Layout, axes: Sequence[Axis]
) -> ReferenceWork:
    """`base` with `windows_of` a tensor of `type_`, and a step for each tap of each window."""
    outer = largest(type_.shape[0] * type_.shape[channel_axis(layout, type_.rank)])
    padded = outer * math.prod(axis.padded for axis in axes)
    taps = outer * math.prod(axis.windows * axis.kernel for axis in axes)
    return ReferenceWork(base.held + padded, base.steps + padded + taps)


def pad_stage(x: Tensor, axes: Sequence[Axis], layout: Layout, fill: float, name: str) -> Tensor:
    """`x` padded with `fill` by a stage named "<name>_pad"; `x` itself when none is needed."""
    if all(axis.inside for axis in axes):
        return x
    rank = len(axes) + 2
    where = spatial_axes(layout, rank)
    shape = list(shape_of(x))
    for d, axis in zip(where, axes, strict=True):
        shape[d] = axis.padded
    value = te.const(fill, x.dtype)

    def element(*indices: Expr) -> Expr:
        source, inside = list(indices), []
        for d, axis in zip(where, axes, strict=True):
            if axis.before:
                source[d] = indices[d] - axis.before
                inside.append(indices[d] >= axis.before)
            if axis.padded > axis.before + axis.size:
                inside.append(indices[d] < axis.before + axis.size)
        return te.select(te.all_of(*inside), x[tuple(source)], value)

    return te.compute(tuple(shape), element, name=f"{name}_pad")
