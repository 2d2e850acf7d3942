"""AdaptiveRoiAlign: RoiAlign where each region has as many points as it has elements."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
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
from .roi_align import element_at, share_of
from .spans import channels_last, pooled_type

Whole = NDArray[np.int32]

_FAR = 1 << 30  # points of an axis, and exact as a float
_OUTSIDE = -2.0  # where a point lies that is 0


@dataclass(frozen=True, slots=True)
class _Points:
    """The points of the parts of a region along an axis. count: of each part; those to look at, of
    [parts, n]: whether there are so many, and they are no 0; the elements before them, and how far
    they are behind these.
    """

    count: float
    taken: NDArray[np.bool_]
    exists: NDArray[np.bool_]
    before: NDArray[np.int64]
    rest: Floats

    def sides(self, size: int) -> tuple[tuple[NDArray[np.int64], Floats], ...]:
        """The elements before and behind each point, and their weights."""
        behind = np.minimum(self.before + 1, size - 1)
        return (self.before, np.subtract(1, self.rest)), (behind, self.rest)

    def weights(self, size: int) -> Floats:
        """What each of `size` elements counts in each part."""
        found = np.zeros((len(self.before), size), self.rest.dtype)
        rows = np.arange(len(self.before))[:, None]
        for at, weight in self.sides(size):
            np.add.at(found, (rows, at), np.where(self.exists, weight, 0).astype(found.dtype))
        return cast(Floats, found)


@dataclass(frozen=True, slots=True)
class AdaptiveRoiAlign(Operator):
    """RoiAlign whose parts have as many points along each axis as they have elements, rounded up;
    a part without any gives 0.

    Inputs: x, regions and images as of RoiAlign; of the points of each part along y, the number of
    the first one that is to be looked at, int32 of [R, rows], and how many are: the others count,
    and are 0; the same along x.

    down, right: no part has more points to look at along y, and x.
    """

    down: AnySize
    right: AnySize
    scale: float = 1.0
    aligned: bool = True
    largest: bool = False

    role = OperatorRole.GENERAL
    operand_names = ("x", "regions", "images", "top", "high", "left", "wide")
    checks_indices = True

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 7, 7)
        _, regions, images, *spans = types
        count = regions.shape[:1]
        fits = regions.shape == (*count, 4) and images == TensorType("int64", count)
        return (pooled_type(self, types, spans, fits=fits),)

    def work(self, types: tuple[TensorType, ...]) -> ReferenceWork:
        (result,), base = self.infer(types), Operator.work(self, types)
        points = largest(result.elements) * largest(self.down) * largest(self.right)
        return ReferenceWork(base.held, base.steps + 16 * points)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        """Region for region."""
        x, regions, images = cast(Floats, arrays[0]), cast(Floats, arrays[1]), arrays[2]
        top, high, left, wide = (cast(Whole, array) for array in arrays[3:])
        found = np.zeros((len(regions), x.shape[1], top.shape[1], left.shape[1]), x.dtype)
        pool = _largest_of if self.largest else _mean_of
        for r, image in enumerate(np.clip(images.astype(np.int64), 0, len(x) - 1)):
            with np.errstate(all="ignore"):
                down = self._points(regions[r, 1::2], top[r], high[r], self.down, x.shape[2])
                right = self._points(regions[r, 0::2], left[r], wide[r], self.right, x.shape[3])
                found[r] = pool(cast(Floats, x[image]), down, right)
        return (found,)

    def _points(self, ends: Floats, first: Whole, many: Whole, most: AnySize, size: int) -> _Points:
        """The points of a region along an axis of `size` elements."""
        kind = ends.dtype.type
        start, end = (np.multiply(end, kind(self.scale)) - self._half for end in ends)
        length = end - start if self.aligned else np.maximum(end - start, 1)
        own = length / len(first)
        count = np.clip(np.ceil(own), 0, _FAR)
        number = np.arange(closed(most))
        point = np.add(np.add(first[:, None], number).astype(ends.dtype), kind(0.5))
        part = np.arange(len(first)).astype(ends.dtype)[:, None]
        at = np.add(start, np.multiply(part, kind(own)))
        at = np.add(at, np.divide(np.multiply(point, kind(own)), kind(count)))
        taken = number < many[:, None]
        exists = taken & (at >= -1) & (at <= size)
        kept = np.where(exists, np.clip(at, 0, size - 1), 0)
        before = convert_array(np.floor(kept), np.dtype(np.int64)).astype(np.int64)
        rest = cast(Floats, np.subtract(kept, before).astype(ends.dtype))
        return _Points(float(count), taken, exists, before, rest)

    @property
    def _half(self) -> float:
        return 0.5 if self.aligned else 0.0

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        """The points of each axis have stages of their own; then each part takes its points with
        the channels last.
        """
        x, regions, images, top, high, left, wide = tensors
        (result,) = self.infer(tuple(map(tensor_type, tensors)))
        zero = te.const(0, x.dtype)
        if 0 in x.shape or 0 in (self.down, self.right):
            return (te.compute(result.shape, lambda *_: zero, name=name),)
        count, channels, rows, columns = result.shape
        many, height, width = (closed(shape_of(x)[n]) for n in (0, 2, 3))
        down, tall = self._stages(regions, 1, (top, high), self.down, height, f"{name}_y")
        right, broad = self._stages(regions, 0, (left, wide), self.right, width, f"{name}_x")
        image = te.compute(
            (count,),
            lambda r: te.checked(images[r], many, what="image of a region"),
            name=f"{name}_image",
        )
        pixels = channels_last(x, f"{name}_pixels")
        i = te.reduce_axis(axis_of(self.down), name="i")
        j = te.reduce_axis(axis_of(self.right), name="j")

        def part(r: Expr, h: Expr, w: Expr, c: Expr) -> Expr:
            y, z, at = down[r, h, i], right[r, w, j], te.clamp_index(image[r], many)
            values = [
                pixels[at, element_at(y, a, height), element_at(z, b, width), c]
                * (share_of(y, a) * share_of(z, b))
                for a in (0, 1)
                for b in (0, 1)
            ]
            exists = te.all_of(y >= 0.0, z >= 0.0)
            if not self.largest:
                total = values[0] + values[1] + values[2] + values[3]
                return te.sum(te.select(exists, total, zero), axis=(i, j))
            most = te.maximum(te.maximum(values[0], values[1]), te.maximum(*values[2:]))
            taken = te.all_of(y >= _OUTSIDE, z >= _OUTSIDE)
            lowest = te.const(-np.inf, x.dtype)
            found = te.select(taken, te.select(exists, most, zero), lowest)
            return te.max(found, axis=(i, j))

        pooled = te.compute((count, rows, columns, channels), part, name=f"{name}_part")

        def element(r: Expr, c: Expr, h: Expr, w: Expr) -> Expr:
            if self.largest:
                some = te.all_of(high[r, h] > 0, wide[r, w] > 0)
                return te.select(some, pooled[r, h, w, c], zero)
            return pooled[r, h, w, c] / te.maximum(tall[r] * broad[r], 1.0)

        return (te.compute(result.shape, element, name=name),)

    def _stages(
        self,
        regions: Tensor,
        side: int,
        spans: tuple[Tensor, Tensor],
        most: AnySize,
        size: int,
        name: str,
    ) -> tuple[Tensor, Tensor]:
        """Where the points of each part lie along an axis, _OUTSIDE for those that are 0, and less
        for those behind the last one; how many points a part of each region has.
        """
        half, (first, taken) = self._half, spans
        count, parts = shape_of(first)

        def shares(r: Expr) -> tuple[Expr, Expr, Expr]:
            start = regions[r, side] * self.scale - half
            length = regions[r, side + 2] * self.scale - half - start
            own = (length if self.aligned else te.maximum(length, 1.0)) / float(closed(parts))
            return start, own, te.minimum(te.maximum(te.ceil(own), 0.0), float(_FAR))

        names = f"{name}_start", f"{name}_own", f"{name}_count"
        start, own, many = te.compute((count,), shares, name=names)

        def point(r: Expr, part: Expr, n: Expr) -> Expr:
            number = te.cast(te.cast(first[r, part], "int64") + n, regions.dtype) + 0.5
            at = start[r] + te.cast(part, regions.dtype) * own[r]
            at = at + number * own[r] / many[r]
            exists = te.all_of(at >= -1.0, at <= float(size))
            kept = te.select(exists, te.minimum(te.maximum(at, 0.0), size - 1.0), _OUTSIDE)
            return te.select(n < te.cast(taken[r, part], "int64"), kept, 2 * _OUTSIDE)

        return te.compute((count, parts, axis_of(most)), point, name=f"{name}_at"), many


def _mean_of(x: Floats, down: _Points, right: _Points) -> Floats:
    """The mean of the points of each part, of [C, rows, columns]."""
    count = max(down.count * right.count, 1.0)
    over = np.matmul(np.matmul(down.weights(x.shape[1]), x), right.weights(x.shape[2]).T)
    return cast(Floats, (over / x.dtype.type(count)).astype(x.dtype))


def _largest_of(x: Floats, down: _Points, right: _Points) -> Floats:
    """The largest weighted neighbour of the points of each part."""
    most = np.full((len(x), *down.exists.shape, *right.exists.shape), -np.inf, x.dtype)
    for (row, high), (column, wide) in product(down.sides(x.shape[1]), right.sides(x.shape[2])):
        weight = np.multiply(high[:, :, None, None], wide)
        most = np.maximum(most, x[:, row[:, :, None, None], column] * weight)
    exists = down.exists[:, :, None, None] & right.exists
    taken = down.taken[:, :, None, None] & right.taken
    found = np.where(taken, np.where(exists, most, 0), -np.inf)
    best = np.max(found, axis=(2, 4), initial=-np.inf)
    some = taken.any(axis=(1, 3))
    return cast(Floats, np.where(some, best, 0).astype(x.dtype))
