"""MaxRoiPool: the largest elements of the parts of regions of images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ....tir.expr import Expr
from ....tir.reference.arithmetic import convert_array
from ....tir.sizes import AnySize, axis_of, closed, largest
from ....tir.te import te
from ....tir.te.te import Tensor
from ...types import Array, Floats, TensorType
from ..base import (
    Operator,
    OperatorRole,
    ReferenceWork,
    check_arity,
    shape_of,
    tensor_type,
)
from .spans import channels_last, pooled_type


@dataclass(frozen=True, slots=True)
class MaxRoiPool(Operator):
    """The largest element of each part of a region, 0 where a part has none (R. Girshick, "Fast
    R-CNN", 2015).

    Inputs: x of [N, C, H, W]; regions [R, n], the first number of which says which image each is
    of; where the parts of each begin along y, int32 of [R, rows], and how many elements they take;
    the same along x. An image that does not exist raises IndexError, after a run with the nearest
    one.

    down, right: no part takes more elements along y, and x.
    """

    down: AnySize
    right: AnySize

    role = OperatorRole.GENERAL
    operand_names = ("x", "regions", "top", "high", "left", "wide")
    checks_indices = True

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 6, 6)
        _, regions, *spans = types
        return (pooled_type(self, types, spans, fits=regions.rank == 2),)

    def work(self, types: tuple[TensorType, ...]) -> ReferenceWork:
        (result,), base = self.infer(types), Operator.work(self, types)
        taken = largest(result.elements) * largest(self.down) * largest(self.right)
        return ReferenceWork(base.held, base.steps + taken)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, regions = cast(Floats, arrays[0]), cast(Floats, arrays[1])
        top, high, left, wide = (cast(NDArray[np.int32], array) for array in arrays[2:])
        shape = (len(regions), x.shape[1], top.shape[1], left.shape[1])
        found = np.zeros(shape, x.dtype)
        images = convert_array(regions[:, 0], np.dtype(np.int64)).astype(np.int64)
        images = np.clip(images, 0, len(x) - 1)
        down, right = np.arange(closed(self.down)), np.arange(closed(self.right))
        for r, row, column in np.ndindex(shape[0], *shape[2:]):
            y, z = top[r, row] + down[: high[r, row]], left[r, column] + right[: wide[r, column]]
            if high[r, row] > 0 and wide[r, column] > 0:
                y, z = np.clip(y, 0, x.shape[2] - 1), np.clip(z, 0, x.shape[3] - 1)
                found[r, :, row, column] = x[images[r]][:, y][:, :, z].max(axis=(1, 2))
        return (found,)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        """With the channels last, so that lanes are elements of one place."""
        x, regions, top, high, left, wide = tensors
        (result,) = self.infer(tuple(map(tensor_type, tensors)))
        zero = te.const(0, x.dtype)
        if 0 in x.shape or 0 in (self.down, self.right):
            return (te.compute(result.shape, lambda *_: zero, name=name),)
        many, channels, rows, columns = result.shape
        images, height, width = (closed(shape_of(x)[n]) for n in (0, 2, 3))
        image = te.compute(
            (many,),
            lambda r: te.checked(te.cast(regions[r, 0], "int64"), images, what="image of a region"),
            name=f"{name}_image",
        )
        pixels = channels_last(x, f"{name}_pixels")
        i, j = (
            te.reduce_axis(axis_of(self.down), name="i"),
            te.reduce_axis(axis_of(self.right), name="j"),
        )
        lowest = te.const(-np.inf, x.dtype)

        def part(r: Expr, h: Expr, w: Expr, c: Expr) -> Expr:
            at = te.clamp_index(image[r], images)
            y = te.clamp_index(te.cast(top[r, h], "int64") + i, height)
            z = te.clamp_index(te.cast(left[r, w], "int64") + j, width)
            taken = te.all_of(i < te.cast(high[r, h], "int64"), j < te.cast(wide[r, w], "int64"))
            return te.max(te.select(taken, pixels[at, y, z, c], lowest), axis=(i, j))

        pooled = te.compute((many, rows, columns, channels), part, name=f"{name}_part")

        def element(r: Expr, c: Expr, h: Expr, w: Expr) -> Expr:
            some = te.all_of(high[r, h] > 0, wide[r, w] > 0)
            return te.select(some, pooled[r, h, w, c], zero)

        return (te.compute(result.shape, element, name=name),)
