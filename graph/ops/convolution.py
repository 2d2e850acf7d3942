"""Convolution, grouped, strided, dilated, padded, over any number of axes, perhaps with bias."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from ...tir.expr import Expr
from ...tir.sizes import closed_shape, largest, product_of
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import NARROW_INTEGERS, Array, Shape, TensorType, permutation_to_last
from .base import (
    Layout,
    Operator,
    Permutation,
    ReferenceWork,
    check_arity,
    check_number,
    listed,
    product_work,
    refuse,
    shape_of,
    tensor_type,
)
from .matmul import exact_type
from .spatial import Pads, Spatial
from .window import (
    Axis,
    T,
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


@dataclass(frozen=True, slots=True)
class Convolution(Spatial):
    """What convolutions of all types have in common: where the windows lie, and their sums.

    "NCHW": x is [N, groups*C, spatial...], w is [O, C, kernel...]; "NHWC": x is [N, spatial...,
    groups*C] and w is [kernel..., C, O]; C and O are channels per group and in all. `pads` are
    those before each spatial axis, then those after.
    """

    strides: tuple[int, ...] = (1, 1)
    pads: tuple[int, ...] = (0, 0, 0, 0)
    dilations: tuple[int, ...] = (1, 1)
    groups: int = 1
    layout: Layout = "NCHW"

    operand_names: ClassVar[tuple[str, ...]] = ("x", "w", "bias")

    @property
    def data_layout(self) -> Layout:
        """Where the channels of x are."""
        return self.layout

    @property
    def fill(self) -> float:
        """What x is padded with."""
        return 0.0

    def operands_last(self, rank: int) -> tuple[Permutation, ...]:
        """Weights become [kernel..., in, out]."""
        return (permutation_to_last(rank), (*range(2, rank), 1, 0))

    @abstractmethod
    def result_dtype(self, types: tuple[TensorType, ...]) -> str:
        """The type of the sums. Raises: ModelError for operands of other types."""

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        made = self.result_dtype(types)
        x, w = types[:2]
        sizes = check_spatial(self, x, self.data_layout)
        if w.rank != x.rank:
            refuse(
                self, f"data and weights must have one rank, got {listed(types)}", code="conv-rank"
            )
        channels = x.shape[channel_axis(self.data_layout, x.rank)]
        outputs, inputs, kernel = self.split_weights(closed_shape(w.shape))
        if self.groups < 1 or outputs % self.groups or channels != inputs * self.groups:
            problem = (
                f"{channels} channels in {self.groups} groups do not fit weights of "
                f"{outputs} output and {inputs} input channels: {listed(types)}"
            )
            refuse(self, problem, code="conv-channels")
        if len(types) == 3 and types[2].shape != (outputs,):
            refuse(self, f"expected a bias of shape ({outputs},), got {types[2]}", code="conv-bias")
        axes = self.axes(sizes, kernel)
        spatial = tuple(axis.windows for axis in axes)
        return (TensorType(made, place(self.layout, x.shape[0], outputs, spatial)),)

    def split_weights(self, shape: tuple[int, ...]) -> tuple[int, int, tuple[int, ...]]:
        """Output channels, input channels per group and kernel sizes of weights of `shape`."""
        if self.layout == "NCHW":
            return shape[0], shape[1], shape[2:]
        return shape[-1], shape[-2], shape[:-2]

    def axes(self, sizes: Shape, kernel: tuple[int, ...]) -> tuple[Axis, ...]:
        """The windows over spatial axes of `sizes`."""
        return window_axes(self, sizes, kernel, self.strides, self.pads, self.dilations)

    def work(self, types: tuple[TensorType, ...]) -> ReferenceWork:
        x, w = types[:2]
        (result,) = self.infer(types)
        _, inputs, kernel = self.split_weights(closed_shape(w.shape))
        axes = self.axes(check_spatial(self, x, self.data_layout), kernel)
        base = windows_work(Operator.work(self, types), x, self.data_layout, axes)
        taps = largest(x.shape[0]) * inputs * self.groups
        taps *= largest(product_of(axis.windows * axis.kernel for axis in axes))  # as rows
        return product_work(
            ReferenceWork(base.held + taps, base.steps),
            largest(result.elements) * inputs * math.prod(kernel),
        )

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, w = channels_first(arrays[0], self.data_layout), arrays[1]
        if self.layout == "NHWC":
            w = np.moveaxis(w, (-1, -2), (0, 1))
        axes = self.axes(x.shape[2:], w.shape[2:])
        taps = windows_of(x, axes, self.fill)
        n, groups, per_group = len(axes), self.groups, w.shape[1]
        taps = taps.reshape(taps.shape[0], groups, per_group, *taps.shape[2:])
        # [O / g, C * taps] times [C * taps, windows] for each image and group: rows of pixels stay
        # next to each other, and windows of one pixel are read where they are
        order = (0, 1, 2, *range(3 + n, 3 + 2 * n), *range(3, 3 + n))
        images, windows = taps.shape[0], taps.shape[3 : 3 + n]
        places = math.prod(windows)  # -1 would not do for none
        columns = taps.transpose(order).reshape(images, groups, w[0].size, places)
        y = np.matmul(w.reshape(groups, w.shape[0] // groups, w[0].size), columns)
        y = y.reshape(images, w.shape[0], *windows)
        if len(arrays) == 3:
            y = y + arrays[2].reshape(-1, *(1,) * n)
        return (restored(y, self.layout),)

    def facts(self, types: tuple[TensorType, ...]) -> tuple[Expr, ...]:
        _, _, kernel = self.split_weights(closed_shape(types[1].shape))
        return window_facts(self.axes(check_spatial(self, types[0], self.data_layout), kernel))

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        x, w = tensors[:2]
        (result,) = self.infer(tuple(map(tensor_type, tensors)))
        shape = result.shape
        outputs, inputs, kernel = self.split_weights(w.shape)
        axes = self.axes(check_spatial(self, tensor_type(x), self.data_layout), kernel)
        padded = pad_stage(x, axes, self.data_layout, self.fill, name)
        moved = self.layout == "NHWC" and self.data_layout == "NCHW"
        by_rows = moved and len(axes) > 1 and padded is not x
        if by_rows:
            padded = _by_rows(padded, name)
        where = channel_axis(self.layout, len(shape))
        spatial = spatial_axes(self.layout, len(shape))
        # an axis of one step is no axis: a 1x1 convolution reads like the matrix product that it is
        c = te.reduce_axis(inputs, name="c") if inputs > 1 else 0
        taps = tuple(
            te.reduce_axis(axis.kernel, name=f"k{d}") if axis.kernel > 1 else 0
            for d, axis in enumerate(axes)
        )
        reduced = tuple(axis for axis in (c, *taps) if not isinstance(axis, int))

        def element(*indices: Expr) -> Expr:
            o = indices[where]
            channel = c if self.groups == 1 else o // (outputs // self.groups) * inputs + c
            window = [
                indices[d] * axis.stride + tap * axis.dilation
                for d, axis, tap in zip(spatial, axes, taps, strict=True)
            ]
            weight = w[(o, c, *taps) if self.layout == "NCHW" else (*taps, c, o)]
            at = place(self.data_layout, indices[0], channel, window)
            data = padded[_swapped(at) if by_rows else at]
            product = te.cast(data, result.dtype) * te.cast(weight, result.dtype)
            return te.sum(product, axis=reduced, dtype=result.dtype) if reduced else product

        if len(tensors) == 2:
            return (te.compute(shape, element, name=name),)
        y, bias = te.compute(shape, element, name=f"{name}_conv"), tensors[2]
        return (te.compute(shape, lambda *i: y[i] + bias[i[where]], name=name),)


@dataclass(frozen=True, slots=True)
class Conv(Convolution):
    """y[n, o, q] = sum over c, k of x[n, g*C + c, q*stride + k*dilation - pad] * w[o, c, k], plus
    bias[o].

    Inputs: x, w and optionally bias [O]; `g` is the group of output channel o. Layouts and pads are
    those of `Convolution`. data: the layout of x alone, where it is another one. Integers wrap
    around.
    """

    data: Layout | None = None

    @property
    def data_layout(self) -> Layout:
        """Where the channels of x are."""
        return self.layout if self.data is None else self.data

    def result_dtype(self, types: tuple[TensorType, ...]) -> str:
        check_arity(self, types, 2, 3)
        check_number(self, types)
        return types[0].dtype

    def channels_last(self) -> Conv:
        return replace(self, layout="NHWC")

    def in_place(self) -> Conv | None:
        return replace(self, data="NCHW") if self.groups == 1 else None

    def padding(self, pads: Pads) -> Conv | None:
        joined = pads.joined(self.pads, spatial_axes(self.data_layout, len(pads.before)))
        return None if joined is None or pads.value != 0 else replace(self, pads=joined)


@dataclass(frozen=True, slots=True)
class ConvolutionOfIntegers(Convolution):
    """What convolutions of integers have in common: no bias, and integers around x.

    zero: what x is padded with, the integer that stands for 0.
    """

    zero: int = 0

    operand_names: ClassVar[tuple[str, ...]] = ("x", "w")

    @property
    def fill(self) -> float:
        """What x is padded with."""
        return self.zero

    def channels_last(self) -> Self:
        return replace(self, layout="NHWC")


@dataclass(frozen=True, slots=True)
class IntegerConv(ConvolutionOfIntegers):
    """Conv of integers of 8 or 16 bits, each, in int32, which wraps around."""

    def result_dtype(self, types: tuple[TensorType, ...]) -> str:
        check_arity(self, types, 2, 2)
        if any(type_.dtype not in NARROW_INTEGERS for type_ in types):
            problem = f"expected int8, uint8 or int16, got {listed(types)}"
            refuse(self, problem, code="conv-bytes")
        return "int32"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        kind = exact_type(arrays[1].size)
        x, w = (array.astype(kind) for array in arrays)
        # slots make another class of this one, which `super` would not find
        (y,) = Convolution.reference(self, x, w)
        return (y.astype(np.int64).astype(np.int32),)


@dataclass(frozen=True, slots=True)
class ExactConv(ConvolutionOfIntegers):
    """Conv of integers of 8 bits with float32 that are whole numbers, in float32, which has each
    sum exactly where it is less than 2**24 in magnitude, whatever the order; others are not
    promised.
    """

    def result_dtype(self, types: tuple[TensorType, ...]) -> str:
        check_arity(self, types, 2, 2)
        if types[0].dtype not in ("int8", "uint8") or types[1].dtype != "float32":
            problem = f"expected int8 or uint8, and float32, got {listed(types)}"
            refuse(self, problem, code="conv-exact")
        return "float32"


def _by_rows(x: Tensor, name: str) -> Tensor:
    """`x` with its channels behind its first spatial axis: a thread copies the rows that it needs,
    and not those of another channel.
    """
    return te.compute(_swapped(shape_of(x)), lambda *i: x[_swapped(i)], name=f"{name}_rows")


def _swapped(at: tuple[T, ...]) -> tuple[T, ...]:
    """The axes, or their indices, with the second and the third exchanged."""
    return (at[0], at[2], at[1], *at[3:])
