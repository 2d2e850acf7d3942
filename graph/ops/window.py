"""Sliding windows over the spatial axes of a tensor: where they lie, how many, what pads them.

A tensor of rank 2 + n has a batch axis, a channel axis and n spatial axes; `layout` "NCHW" means
channels second, "NHWC" channels last, for every n. `pads` are n numbers before, then n after the
spatial axes, as in ONNX.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ...tir.dim import Dim
from ...tir.expr import Expr
from ...tir.sizes import (
    AnySize,
    at_most,
    axis_of,
    closed,
    closed_shape,
    largest,
    least,
    product_of,
    quotient,
)
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Array, Shape, TensorType
from .base import Layout, Operator, ReferenceWork, refuse, shape_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Axis:
    """The windows along one spatial axis of `size` elements."""

    size: AnySize
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
    def windows(self) -> AnySize:
        """Number of windows.

        With `ceil` the last may reach past the padding, but it starts before the end of the data.
        """
        room = self.size + self.before + self.after - self.extent
        if not self.ceil:
            return quotient(room, self.stride) + 1
        starts = quotient(self.size + self.before + self.stride - 1, self.stride)
        return least(quotient(room + self.stride - 1, self.stride) + 1, starts)

    @property
    def padded(self) -> AnySize:
        """From the first padding element to the last element that a window reads."""
        return (self.windows - 1) * self.stride + self.extent

    @property
    def inside(self) -> bool:
        """Whether every window lies within the tensor, so that no padding is read."""
        return self.before == 0 and at_most(self.padded, self.size) is True

    @property
    def reaches_past(self) -> bool:
        """Whether a window may read behind the end of the data."""
        return at_most(self.padded, self.before + self.size) is not True


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


def check_spatial(operator: Operator, type_: TensorType, layout: Layout) -> Shape:
    """The spatial sizes of `type_`. Raises: ModelError when it has no spatial axis."""
    if type_.rank < 3:
        problem = f"expected batch, channels and at least one spatial axis, got {type_}"
        refuse(operator, problem, code="op-spatial-rank")
    return tuple(type_.shape[axis] for axis in spatial_axes(layout, type_.rank))


def window_axes(
    operator: Operator,
    sizes: Shape,
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
    padded = closed_shape(axis.padded for axis in axes)
    windows = closed_shape(axis.windows for axis in axes)
    widths += [
        (axis.before, max(0, whole - axis.before - closed(axis.size)))
        for axis, whole in zip(axes, padded, strict=True)
    ]
    if any(any(pair) for pair in widths):
        array = np.pad(array, widths, constant_values=fill)
    extents = tuple(axis.extent for axis in axes)
    views = sliding_window_view(array, extents, axis=tuple(range(2, 2 + n)))
    starts = tuple(
        slice(0, (count - 1) * axis.stride + 1, axis.stride)
        for axis, count in zip(axes, windows, strict=True)
    )
    taps = tuple(slice(None, None, axis.dilation) for axis in axes)
    return views[(slice(None), slice(None), *starts, *taps)]


def windows_work(
    base: ReferenceWork, type_: TensorType, layout: Layout, axes: Sequence[Axis]
) -> ReferenceWork:
    """`base` with `windows_of` a tensor of `type_`, and a step for each tap of each window."""
    outer = largest(type_.shape[0] * type_.shape[channel_axis(layout, type_.rank)])
    padded = outer * largest(product_of(axis.padded for axis in axes))
    taps = outer * largest(product_of(axis.windows * axis.kernel for axis in axes))
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
            if axis.reaches_past:
                inside.append(indices[d] < x.extents[d] + axis.before)
        return te.select(te.all_of(*inside), x[tuple(source)], value)

    return te.compute(tuple(shape), element, name=f"{name}_pad")


def window_facts(axes: Sequence[Axis]) -> tuple[Expr, ...]:
    """What holds of the sizes of data, of padded data where there is padding, and of windows: the
    last window ends where what it slides over does, or before; so does padded data that has nothing
    behind it.
    """
    is_padded = not all(axis.inside for axis in axes)
    facts = []
    for axis in axes:
        size, held = axis_of(axis.size), axis_of(axis.padded if is_padded else axis.size)
        count = axis_of(axis.windows)
        if isinstance(held, Dim) and held is not count:
            facts.append(held - count * axis.stride - (axis.extent - axis.stride))
        if isinstance(held, Dim) and held is not size and not axis.reaches_past:
            facts.append(size + axis.before - held)
    return tuple(facts)
