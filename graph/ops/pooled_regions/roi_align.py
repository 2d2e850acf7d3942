"""RoiAlign: pooling over regions of images that another tensor names."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import cast

import numpy as np

from ....tir.expr import Expr
from ....tir.reference.arithmetic import convert_array
from ....tir.sizes import closed, largest
from ....tir.te import te
from ....tir.te.te import Tensor
from ...types import Array, Floats, TensorType
from ..base import (
    Operator,
    OperatorRole,
    ReferenceWork,
    check_arity,
    check_float,
    listed,
    refuse,
    shape_of,
    tensor_type,
)


@dataclass(frozen=True, slots=True)
class RoiAlign(Operator):
    """The mean, or with `largest` the maximum, of samples * samples points of each of the rows *
    columns parts of a region.

    Inputs: x of [N, C, H, W]; regions of [R, 4], left, top, right, bottom, in elements of x
    divided by `scale`; which image each is of, int64 of [R]. A region with `aligned` begins half an
    element earlier; without, it has at least one element on each axis. A point counts its four
    neighbours as bilinear interpolation does, and nothing more than one element beyond the image
    (K. He and others, "Mask R-CNN", 2017); a maximum is one of the weighted neighbours, as ONNX has
    it. An image that does not exist raises IndexError, after a run with the nearest one.
    """

    rows: int
    columns: int
    samples: int
    scale: float = 1.0
    aligned: bool = True
    largest: bool = False

    role = OperatorRole.GENERAL
    operand_names = ("x", "regions", "images")
    checks_indices = True

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 3, 3)
        x, regions, images = types
        check_float(self, types[:2])
        count = regions.shape[:1]
        fitting = x.rank == 4 and regions.shape == (*count, 4) and images.shape == count
        if not fitting or images.dtype != "int64" or min(self.rows, self.columns, self.samples) < 1:
            problem = (
                f"expected images, [R, 4], int64 of [R] and at least one part and sample, "
                f"got {listed(types)} and {self}"
            )
            refuse(self, problem, code="roi-align-shape")
        result = TensorType(x.dtype, (*count, x.shape[1], self.rows, self.columns))
        if 0 in (x.shape[0], closed(x.shape[2]), closed(x.shape[3])) and result.elements != 0:
            refuse(self, f"{x} has no elements to pool", code="roi-align-empty")
        return (result,)

    def work(self, types: tuple[TensorType, ...]) -> ReferenceWork:
        (result,), base = self.infer(types), Operator.work(self, types)
        points = largest(result.elements) * self.samples**2
        return ReferenceWork(base.held + 8 * points, base.steps + 16 * points)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, regions, images = arrays[0], cast(Floats, arrays[1]), arrays[2]
        count, channels = regions.shape[0], x.shape[1]
        if 0 in (count, channels):
            return (np.zeros((count, channels, self.rows, self.columns), x.dtype),)
        batch = np.clip(images.astype(np.int64), 0, x.shape[0] - 1).reshape(-1, 1, 1)
        pixels, parts = np.moveaxis(x, 1, -1), list[Array]()
        with np.errstate(all="ignore"):
            down = self._neighbours(regions, 1, self.rows, x.shape[2])
            right = self._neighbours(regions, 0, self.columns, x.shape[3])
            for (row, high), (column, wide) in product(down, right):
                pixel = pixels[batch, row[:, :, None], column[:, None, :]]
                weight = np.multiply(high[:, :, None], wide[:, None, :])
                parts.append(np.multiply(pixel, weight[..., None]))
            points = reduce(np.maximum if self.largest else np.add, parts)
        split = (count, self.rows, self.samples, self.columns, self.samples, channels)
        grid = cast(Floats, points.reshape(split))
        pooled = grid.max(axis=(2, 4)) if self.largest else grid.mean(axis=(2, 4))
        return (np.ascontiguousarray(np.moveaxis(pooled, -1, 1)).astype(x.dtype),)

    def _neighbours(
        self, regions: Floats, side: int, parts: int, size: int
    ) -> tuple[tuple[Array, Floats], tuple[Array, Floats]]:
        """The elements before and behind each point along an axis, and their weights."""
        kind, number = regions.dtype.type, np.arange(parts * self.samples)
        half = kind(0.5 if self.aligned else 0)
        start = regions[:, side, None] * kind(self.scale) - half
        end = regions[:, side + 2, None] * kind(self.scale) - half
        length = end - start if self.aligned else np.maximum(end - start, kind(1))
        part = length / kind(parts)
        whole, sample = (n.astype(regions.dtype) for n in np.divmod(number, self.samples))
        at = np.add(start, np.multiply(whole, part))
        at = np.add(at, np.multiply(np.add(sample, kind(0.5)), part) / kind(self.samples))
        exists = (at >= -1) & (at <= size)
        kept = np.where(exists, np.clip(at, 0, size - 1), kind(0))
        first = convert_array(np.floor(kept), np.dtype(np.int64)).astype(np.int64)
        rest = (kept - np.floor(kept)).astype(kind)
        weights = (np.where(exists, 1 - rest, kind(0)), np.where(exists, rest, kind(0)))
        behind = np.minimum(first + 1, size - 1)
        return (first, cast(Floats, weights[0])), (behind, cast(Floats, weights[1]))

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        """The points of each axis have stages of their own; then each part sums its points with the
        channels last.
        """
        x, regions, images = tensors
        (result,) = self.infer(tuple(map(tensor_type, tensors)))
        if 0 in x.shape:
            return (te.compute(result.shape, lambda *_: te.const(0, x.dtype), name=name),)
        count, channels = result.shape[:2]
        height, width = (closed(size) for size in shape_of(x)[2:])
        down = self._points(regions, 1, self.rows, height, f"{name}_y")
        right = self._points(regions, 0, self.columns, width, f"{name}_x")
        image = te.compute(
            (count,),
            lambda r: te.checked(images[r], closed(shape_of(x)[0]), what="image of a region"),
            name=f"{name}_image",
        )
        rows = te.compute(
            (shape_of(x)[0], height, width, channels),
            lambda n, h, w, c: x[n, c, h, w],
            name=f"{name}_rows",
        )
        i, j = (te.reduce_axis(self.samples, name=f"k{d}") for d in range(2))

        def part(r: Expr, h: Expr, w: Expr, c: Expr) -> Expr:
            y, exists_y = _point(down[r, h * self.samples + i])
            z, exists_z = _point(right[r, w * self.samples + j])
            at = te.clamp_index(image[r], closed(shape_of(x)[0]))
            values = [
                rows[at, element_at(y, a, height), element_at(z, b, width), c]
                * (share_of(y, a) * share_of(z, b))
                for a in (0, 1)
                for b in (0, 1)
            ]
            zero = te.const(0, x.dtype)
            exists = te.all_of(exists_y, exists_z)
            if self.largest:
                most = te.maximum(te.maximum(values[0], values[1]), te.maximum(*values[2:]))
                return te.max(te.select(exists, most, zero), axis=(i, j))
            total = values[0] + values[1] + values[2] + values[3]
            return te.sum(te.select(exists, total, zero), axis=(i, j))

        pooled = te.compute((count, self.rows, self.columns, channels), part, name=f"{name}_part")
        share = 1.0 if self.largest else 1.0 / self.samples**2
        return (te.compute(result.shape, lambda r, c, h, w: pooled[r, h, w, c] * share, name=name),)

    def _points(self, regions: Tensor, side: int, parts: int, size: int, name: str) -> Tensor:
        """Where the points of all parts lie along an axis; -2 for those that do not count."""
        half = 0.5 if self.aligned else 0.0

        def point(r: Expr, n: Expr) -> Expr:
            start = regions[r, side] * self.scale - half
            length = regions[r, side + 2] * self.scale - half - start
            length = length if self.aligned else te.maximum(length, 1.0)
            share = length / float(parts)
            sample = te.cast(n % self.samples, length.dtype) + 0.5
            at = start + te.cast(n // self.samples, length.dtype) * share
            at = at + sample * share / float(self.samples)
            exists = te.all_of(at >= -1.0, at <= float(size))
            return te.select(exists, te.minimum(te.maximum(at, 0.0), size - 1.0), -2.0)

        return te.compute((shape_of(regions)[0], parts * self.samples), point, name=name)


def _point(at: Expr) -> tuple[Expr, Expr]:
    """A point of an image, and whether it is one."""
    return at, at >= 0.0


def element_at(at: Expr, step: int, size: int) -> Expr:
    """The element before a point, or the one behind."""
    return te.clamp_index(te.cast(te.floor(at), "int64") + step, size)


def share_of(at: Expr, step: int) -> Expr:
    """The weight of that element."""
    rest = at - te.floor(at)
    return rest if step else 1 - rest
