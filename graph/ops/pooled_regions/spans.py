"""What of an axis of an image each part of a region takes: its elements, RoiBins, or points between
them, RoiPoints.

Both give where a part begins and how many it takes, so that a loop over as many as the largest part
has serves all of them, and data decide how long it is.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from ....tir.expr import Expr
from ....tir.reference.arithmetic import convert_array
from ....tir.sizes import closed
from ....tir.te import te
from ....tir.te.te import Tensor
from ...types import Array, Floats, TensorType
from ..base import (
    Operator,
    OperatorRole,
    check_arity,
    check_float,
    listed,
    refuse,
    shape_of,
)

_SIDES = 4
_FAR = 1 << 30  # beyond every size of an image, and exact as a float


@dataclass(frozen=True, slots=True)
class _RoiSpans(Operator):
    """Of regions [R, n], whose last four numbers are left, top, right and bottom in elements of an
    image divided by `scale`: along one axis of `size` elements, x or (`down`) y, where each of
    `parts` parts begins and how many it takes, int32 of [R, parts]; the most of these, one int64.
    """

    parts: int
    size: int
    scale: float
    down: bool

    role = OperatorRole.GENERAL
    output_count = 3
    operand_names = ("regions",)

    @property
    @abstractmethod
    def bound(self) -> int:
        """The most that a part may take."""

    @abstractmethod
    def span(self, first: Expr, last: Expr, part: Expr) -> tuple[Expr, Expr]:
        """Where a part of a region begins and ends, as floats between 0 and _FAR."""

    @abstractmethod
    def spans(self, first: Floats, last: Floats, part: Floats) -> tuple[Floats, Floats]:
        """The same of arrays."""

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        check_float(self, types)
        (regions,) = types
        if regions.rank != 2 or not isinstance(regions.shape[1], int) or regions.shape[1] < _SIDES:
            refuse(self, f"expected regions of four numbers each, got {regions}", code="roi-spans")
        each = TensorType("int32", (regions.shape[0], self.parts))
        return each, each, TensorType("int64", ())

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        regions = cast(Floats, arrays[0])
        kind = regions.dtype.type
        sides = (regions[:, side, None] for side in self._sides(regions.shape[1]))
        with np.errstate(all="ignore"):
            first, last = (np.multiply(side, kind(self.scale)) for side in sides)
            number = cast(Floats, np.arange(self.parts).astype(regions.dtype)[None])
            begin, end = self.spans(first, last, number)
            count = np.clip(np.subtract(end, begin), 0, self.bound)
            whole = np.dtype(np.int32)
            begins, counts = convert_array(begin, whole), convert_array(count, whole)
        most = np.asarray(np.max(counts, initial=0)).astype(np.int64)
        return begins.astype(np.int32), counts.astype(np.int32), most

    def _sides(self, columns: int) -> tuple[int, int]:
        first = columns - _SIDES + self.down
        return first, first + 2

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (regions,) = tensors
        count, columns = shape_of(regions)
        assert isinstance(columns, int)
        first, last = self._sides(columns)

        def span(r: Expr, part: Expr) -> tuple[Expr, Expr]:
            number = te.cast(part, regions.dtype)
            begin, end = self.span(
                regions[r, first] * self.scale, regions[r, last] * self.scale, number
            )
            many = te.minimum(te.maximum(end - begin, 0.0), float(self.bound))
            return te.cast(begin, "int32"), te.cast(many, "int32")

        names = f"{name}_first", f"{name}_many"
        begin, many = te.compute((count, self.parts), span, name=names)
        r, p = te.reduce_axis(count, name="r"), te.reduce_axis(self.parts, name="p")
        most = te.compute((), lambda: te.max(many[r, p], axis=(r, p)), name=f"{name}_top")
        zero = te.const(0, "int32")
        whole = te.compute((), lambda: te.cast(te.maximum(most[()], zero), "int64"), name=name)
        return begin, many, whole


@dataclass(frozen=True, slots=True)
class RoiBins(_RoiSpans):
    """The elements of each part of regions whose ends are whole elements, and belong to them: the
    part begins at the last element that is not behind its first bound, and ends before the first
    that is not before its last one. What lies beyond the image is not taken.
    """

    @property
    def bound(self) -> int:
        return self.size

    def span(self, first: Expr, last: Expr, part: Expr) -> tuple[Expr, Expr]:
        start = _nearest(first)
        length = te.maximum(_nearest(last) - start + 1.0, 1.0) / float(self.parts)
        bounds = te.floor(part * length) + start, te.ceil((part + 1.0) * length) + start
        begin, end = (te.minimum(te.maximum(b, 0.0), float(self.size)) for b in bounds)
        return begin, end

    def spans(self, first: Floats, last: Floats, part: Floats) -> tuple[Floats, Floats]:
        kind = first.dtype.type
        start = _nearest_of(first)
        length = np.maximum(_nearest_of(last) - start + kind(1), kind(1)) / kind(self.parts)
        begin = np.floor(part * length) + start
        end = np.ceil((part + kind(1)) * length) + start
        low, high = (np.clip(bound, 0, self.size) for bound in (begin, end))
        return cast(Floats, low), cast(Floats, high)


@dataclass(frozen=True, slots=True)
class RoiPoints(_RoiSpans):
    """The points of each part of regions that lie within the image, or next to it: a part has as
    many points as it has elements, rounded up, at even distances, as AdaptiveRoiAlign takes them.
    As it has no two of them within half an element of each other where it has two, no more than a
    bound of them do.

    aligned: as of RoiAlign.
    """

    aligned: bool = True

    @property
    def bound(self) -> int:
        return 2 * self.size + 8

    def span(self, first: Expr, last: Expr, part: Expr) -> tuple[Expr, Expr]:
        half = 0.5 if self.aligned else 0.0
        start, end = first - half, last - half
        length = end - start if self.aligned else te.maximum(end - start, 1.0)
        own = length / float(self.parts)
        many = te.minimum(te.maximum(te.ceil(own), 0.0), float(_FAR))
        step = own / many
        ahead = te.floor((-1.0 - start - part * own) / step) - 2.0
        behind = te.ceil((float(self.size) - start - part * own) / step) + 2.0
        zero = te.const(0, first.dtype)
        some = many > 0.0
        begin = te.select(some, te.minimum(te.maximum(ahead, 0.0), many), zero)
        return begin, te.select(some, te.minimum(te.maximum(behind, 0.0), many), zero)

    def spans(self, first: Floats, last: Floats, part: Floats) -> tuple[Floats, Floats]:
        kind = first.dtype.type
        half = kind(0.5 if self.aligned else 0)
        start, end = first - half, last - half
        length = end - start if self.aligned else np.maximum(end - start, kind(1))
        own = length / kind(self.parts)
        many = np.clip(np.ceil(own), 0, _FAR)
        step = own / many
        ahead = np.floor((kind(-1) - start - part * own) / step) - kind(2)
        behind = np.ceil((kind(self.size) - start - part * own) / step) + kind(2)
        some = many > 0
        begin, end = (np.where(some, np.clip(n, 0, many), kind(0)) for n in (ahead, behind))
        return cast(Floats, begin), cast(Floats, end)


def pooled_type(
    operator: Operator, types: Sequence[TensorType], spans: Sequence[TensorType], *, fits: bool
) -> TensorType:
    """The type of what the parts of regions give: the first two types are of images and regions.

    spans: where the parts of each region begin along y and how many they take, and along x; fits:
    what else must be so.
    """
    x, regions = types[:2]
    top, high, left, wide = spans
    check_float(operator, (x, regions))
    count = regions.shape[:1]
    fits = fits and x.rank == 4 and top == high and left == wide
    fits = fits and top.dtype == left.dtype == "int32" and top.rank == left.rank == 2
    if not fits or (top.shape[:1], left.shape[:1]) != (count, count):
        problem = f"expected images, regions and parts of them, got {listed(tuple(types))}"
        refuse(operator, problem, code="roi-parts")
    result = TensorType(x.dtype, (*count, x.shape[1], top.shape[1], left.shape[1]))
    if 0 in (x.shape[0], closed(x.shape[2]), closed(x.shape[3])) and result.elements != 0:
        refuse(operator, f"{x} has no elements to pool", code="roi-empty")
    return result


def channels_last(x: Tensor, name: str) -> Tensor:
    """Images with the channels last, so that lanes are elements of one place."""
    many, channels, height, width = shape_of(x)
    shape = (many, height, width, channels)
    return te.compute(shape, lambda n, h, w, c: x[n, c, h, w], name=name)


def _nearest(x: Expr) -> Expr:
    """The nearest integer; of two, the one that is farther from 0."""
    even = te.round(x)
    away = te.select(x > 0.0, x + 0.5, x - 0.5)
    return te.select(te.eq(te.abs(x - even), 0.5), away, even)


def _nearest_of(x: Floats) -> Floats:
    half = x.dtype.type(0.5)
    even = np.round(x)
    away = np.add(x, np.copysign(half, x))
    return cast(Floats, np.where(np.abs(np.subtract(x, even)) == half, away, even))
