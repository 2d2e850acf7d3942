"""Col2Im: images of the windows that were taken from them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...tir.expr import Expr
from ...tir.sizes import closed, largest
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Array, TensorType
from .base import (
    Operator,
    OperatorRole,
    ReferenceWork,
    check_arity,
    check_number,
    refuse,
    tensor_type,
)
from .window import Axis, window_axes


@dataclass(frozen=True, slots=True)
class Col2Im(Operator):
    """y[n, c] = the sum of all windows of an image of `sizes`, each element where it was taken
    from: tap k of window q is x[n, c * K + k, q], with K taps in a window, both counted in
    row-major order. What was taken from padding is left out.
    """

    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]

    role = OperatorRole.GENERAL

    def axes(self) -> tuple[Axis, ...]:
        """The windows along each axis of the image."""
        return window_axes(self, self.sizes, self.kernel, self.strides, self.pads, self.dilations)

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        check_number(self, types)
        (x,) = types
        taps, count = math.prod(self.kernel), math.prod(closed(a.windows) for a in self.axes())
        if x.rank != 3 or closed(x.shape[1]) % taps or x.shape[2] != count:
            problem = f"expected [N, C * {taps}, {count}] for {self.sizes}, got {x}"
            refuse(self, problem, code="fold-shape")
        return (TensorType(x.dtype, (x.shape[0], closed(x.shape[1]) // taps, *self.sizes)),)

    def work(self, types: tuple[TensorType, ...]) -> ReferenceWork:
        base = Operator.work(self, types)
        return ReferenceWork(2 * base.held, base.steps + 2 * largest(types[0].elements))

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,), axes = arrays, self.axes()
        counts = tuple(closed(axis.windows) for axis in axes)
        parts = x.reshape(x.shape[0], -1, *self.kernel, *counts)
        padded = [axis.before + closed(axis.size) + axis.after for axis in axes]
        y = np.zeros((*parts.shape[:2], *padded), x.dtype)
        for taps in np.ndindex(*self.kernel):
            at = tuple(
                slice(
                    tap * axis.dilation,
                    tap * axis.dilation + (n - 1) * axis.stride + 1,
                    axis.stride,
                )
                for tap, axis, n in zip(taps, axes, counts, strict=True)
            )
            part = (slice(None), slice(None), *at)
            y[part] = np.add(y[part], parts[(slice(None), slice(None), *taps)], dtype=x.dtype)
        kept = tuple(slice(axis.before, axis.before + closed(axis.size)) for axis in axes)
        return (np.ascontiguousarray(y[(slice(None), slice(None), *kept)]),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        """Each element looks for itself in the windows that it may be in, tap by tap."""
        (x,) = tensors
        (result,) = self.infer((tensor_type(x),))
        if 0 in x.shape:
            return (te.compute(result.shape, lambda *_: te.const(0, x.dtype), name=name),)
        axes, steps = (
            self.axes(),
            [te.reduce_axis(k, name=f"k{d}") for d, k in enumerate(self.kernel)],
        )

        def element(*i: Expr) -> Expr:
            channel: Expr = i[1]
            window: Expr = te.const(0, "int64")
            inside = list[Expr]()
            for index, axis, step in zip(i[2:], axes, steps, strict=True):
                place = index + axis.before - step * axis.dilation
                count = closed(axis.windows)
                inside += [place >= 0, place < (count - 1) * axis.stride + 1]
                if axis.stride > 1:
                    inside.append(te.eq(place % axis.stride, 0))
                channel = channel * axis.kernel + step
                window = window * count + place // axis.stride
            return te.sum(
                x[i[0], channel, window], axis=tuple(steps), dtype=x.dtype, where=te.all_of(*inside)
            )

        return (te.compute(result.shape, element, name=name),)
