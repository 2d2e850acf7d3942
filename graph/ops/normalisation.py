"""Normalisation: BatchNormalization at inference, and LRN across channels."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ...tir.expr import Expr
from ...tir.sizes import closed, largest
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Array, TensorType
from .base import (
    Layout,
    Operator,
    ReferenceWork,
    check_arity,
    check_float,
    listed,
    refuse,
    shape_of,
)
from .spatial import Spatial
from .window import channel_axis


@dataclass(frozen=True, slots=True)
class BatchNormalization(Spatial):
    """(x - mean[c]) * scale[c] / sqrt(variance[c] + epsilon) + bias[c].

    Inputs: x with channels on axis 1 ("NCHW") or last ("NHWC"), then scale, bias, mean, variance of
    shape [channels].
    """

    epsilon: float = 1e-5
    layout: Layout = "NCHW"

    operand_names = ("x", "scale", "shift", "mean", "variance")

    def channels_last(self) -> BatchNormalization:
        return replace(self, layout="NHWC")

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 5, 5)
        check_float(self, types)
        x = types[0]
        if x.rank < 2:
            refuse(self, f"expected data with a channel axis, got {x}", code="batch-norm-rank")
        channels = x.shape[channel_axis(self.layout, x.rank)]
        if any(type_.shape != (channels,) for type_ in types[1:]):
            problem = (
                f"scale, bias, mean and variance must have shape ({channels},), "
                f"got {listed(types[1:])}"
            )
            refuse(self, problem, code="batch-norm-channels")
        return (x,)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x = arrays[0]
        shape = [1] * x.ndim
        shape[channel_axis(self.layout, x.ndim)] = -1
        scale, bias, mean, variance = (array.reshape(shape) for array in arrays[1:])
        epsilon = x.dtype.type(self.epsilon)
        factor = np.divide(scale, np.sqrt(np.add(variance, epsilon)))
        return (np.subtract(x, mean) * factor + bias,)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        x, scale, bias, mean, variance = tensors
        where = channel_axis(self.layout, len(x.shape))

        def factor_of(c: Expr) -> Expr:
            return scale[c] / te.sqrt(variance[c] + self.epsilon)

        factor = te.compute(shape_of(scale), factor_of, name=f"{name}_factor")

        def element(*i: Expr) -> Expr:
            c = i[where]
            return (x[i] - mean[c]) * factor[c] + bias[c]

        return (te.compute(shape_of(x), element, name=name),)


@dataclass(frozen=True, slots=True)
class LRN(Spatial):
    """x / (bias + alpha / size * s) ** beta, s the sum of squares over `size` near channels.

    Channel c sees channels c - floor((size-1)/2) .. c + ceil((size-1)/2).
    """

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    bias: float = 1.0
    layout: Layout = "NCHW"

    def channels_last(self) -> LRN:
        return replace(self, layout="NHWC")

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        check_float(self, types)
        if types[0].rank < 2 or self.size < 1:
            problem = (
                "expected data with a channel axis and size >= 1, "
                f"got {types[0]} and size {self.size}"
            )
            refuse(self, problem, code="lrn-shape")
        return types

    def reach(self, channels: int) -> tuple[int, int]:
        """Channels seen before and after each of `channels`, no more than there are."""
        before, most = (self.size - 1) // 2, max(0, channels - 1)
        return min(before, most), min(self.size - 1 - before, most)

    def work(self, types: tuple[TensorType, ...]) -> ReferenceWork:
        (x,), base = types, Operator.work(self, types)
        window = 1 + sum(self.reach(closed(x.shape[channel_axis(self.layout, x.rank)])))
        return ReferenceWork(3 * base.held, base.steps + largest(x.elements) * window)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        if not x.size:
            return (x,)
        where = channel_axis(self.layout, x.ndim)
        widths = [(0, 0)] * x.ndim
        widths[where] = before, after = self.reach(x.shape[where])
        squares = np.pad(np.square(x), widths)
        total = sliding_window_view(squares, before + 1 + after, axis=where).sum(axis=-1)
        kind = x.dtype.type
        return (x / (kind(self.bias) + kind(self.alpha / self.size) * total) ** kind(self.beta),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (x,) = tensors
        where = channel_axis(self.layout, len(x.shape))
        channels = closed(shape_of(x)[where])
        before, after = self.reach(channels)
        shape = list(shape_of(x))
        shape[where] = before + channels + after
        zero = te.const(0.0, x.dtype)

        def square(*i: Expr) -> Expr:
            c = i[where] - before
            value = x[(*i[:where], c, *i[where + 1 :])]
            return te.select(
                te.all_of(i[where] >= before, i[where] < channels + before), value * value, zero
            )

        squares = te.compute(tuple(shape), square, name=f"{name}_pad")
        k = te.reduce_axis(before + 1 + after, name="k")

        def window(*i: Expr) -> Expr:
            return te.sum(squares[(*i[:where], i[where] + k, *i[where + 1 :])], axis=k)

        total = te.compute(shape_of(x), window, name=f"{name}_sum")

        def element(*i: Expr) -> Expr:
            return x[i] / te.pow(total[i] * (self.alpha / self.size) + self.bias, self.beta)

        return (te.compute(shape_of(x), element, name=name),)
