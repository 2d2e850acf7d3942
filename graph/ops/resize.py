"""Resize: another number of elements along an axis, each taken from near its place in the input.

Places are exact fractions, so that no rounding decides between two neighbours. Where a run decides
by how much an axis is stretched, they are tables that a kernel fills first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...tir.dim import Dim, Extent
from ...tir.expr import Expr
from ...tir.sizes import axis_of, closed_shape, largest, product_of
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Array, Shape, TensorType
from .base import Operator, OperatorRole, ReferenceWork, check_arity, check_float, refuse, shape_of
from .gathering import where_any

StretchCoordinates = Literal["asymmetric", "half_pixel", "pytorch_half_pixel", "align_corners"]
Sampling = Literal["linear", "floor", "ceil", "round_prefer_floor", "round_prefer_ceil"]


@dataclass(frozen=True, slots=True)
class Places:
    """The place in the input of element i: (slope * i + offset) / divisor, not outside of it."""

    slope: int
    offset: int
    divisor: int


SAME = Places(1, 0, 1)


@dataclass(frozen=True, slots=True)
class Stretch:
    """The places in an axis of `size` of the `count` elements that it becomes, whatever the two
    are, as ONNX calls them.
    """

    coordinates: StretchCoordinates

    def places(self, size: int, count: int) -> Places:
        """Those for two numbers."""
        first = 0 if self.coordinates == "pytorch_half_pixel" and count < 2 else size - count
        match self.coordinates:
            case "asymmetric":
                return Places(size, 0, max(count, 1))
            case "align_corners":
                return Places(size - 1, 0, max(count - 1, 1))
        return Places(2 * size, first, max(2 * count, 1))

    def at(self, i: Expr, size: Expr, count: Expr) -> tuple[Expr, Expr]:
        """The place of element i, and what it is divided by. No choice is in it that some range of
        i would settle: the proof follows no products.
        """
        one = 2 // (count + 1)  # 1 of one element, else 0
        match self.coordinates:
            case "asymmetric":
                return i * size, count
            case "align_corners":
                return i * (size - 1), count - 1 + one
        first = size - count
        if self.coordinates == "pytorch_half_pixel":
            first = first * (1 - one)
        return i * 2 * size + first, count * 2


@dataclass(frozen=True, slots=True)
class Resize(Operator):
    """`sizes[d]` elements along each axis d, at `places[d]`.

    sampling: "linear" weighs the two neighbours of a place on each axis; the others take one:
    the one before, the one after, or the nearest, of two equally near ones the first or the second.
    """

    sizes: Shape
    places: tuple[Places | Stretch, ...]
    sampling: Sampling

    role = OperatorRole.GENERAL

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        (x,) = types
        if not len(self.sizes) == len(self.places) == x.rank:
            problem = f"expected a size and places for each axis of {x}, got sizes {self.sizes}"
            refuse(self, problem, code="resize-rank")
        if self.sampling == "linear":
            check_float(self, types)
        if 0 in x.shape and 0 not in self.sizes:
            refuse(self, f"{x} has no elements to make {self.sizes} of", code="resize-empty")
        return (TensorType(x.dtype, self.sizes),)

    def work(self, types: tuple[TensorType, ...]) -> ReferenceWork:
        """Axis by axis: what lies between may be larger than the ends."""
        shape, base = types[0].shape, Operator.work(self, types)
        between = [
            largest(product_of((*self.sizes[:axis], *shape[axis:])))
            for axis in range(len(shape) + 1)
        ]
        return ReferenceWork(base.held + 5 * max(between), base.steps + 5 * sum(between))

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        for axis, (size, own) in enumerate(zip(closed_shape(self.sizes), self.places, strict=True)):
            extent = x.shape[axis]
            places = own.places(extent, size) if isinstance(own, Stretch) else own
            if places == SAME and size == extent:
                continue
            position = places.slope * np.arange(size) + places.offset
            if self.sampling != "linear":
                index = rounded_array(position, places.divisor, self.sampling)
                x = np.take(x, index.clip(0, extent - 1), axis)
                continue
            position = position.clip(0, (extent - 1) * places.divisor)
            before, rest = position // places.divisor, position % places.divisor
            after = np.minimum(before + 1, extent - 1)
            weight: NDArray[np.floating] = (rest / places.divisor).astype(x.dtype)
            weight = weight.reshape((-1,) + (1,) * (x.ndim - axis - 1))
            low, high = np.take(x, before, axis), np.take(x, after, axis)
            x = np.add(np.multiply(low, 1 - weight), np.multiply(high, weight))
        return (x,)

    def facts(self, types: tuple[TensorType, ...]) -> tuple[Expr, ...]:
        """Of no elements none are made."""
        found = []
        for given, made, places in zip(types[0].shape, self.sizes, self.places, strict=True):
            if isinstance(places, Stretch):
                continue
            size, result = axis_of(given), axis_of(made)
            if isinstance(size, Dim) and size is not result and size.low < 1 and places.slope:
                found.append(size * -(-places.divisor // places.slope) - result)
        return tuple(found)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        """Each axis that changes is a stage of its own, as in the reference."""
        (x,) = tensors
        changed = [
            d
            for d, places in enumerate(self.places)
            if places != SAME or self.sizes[d] != shape_of(x)[d]
        ]
        if not changed or self.sampling != "linear":
            return (self._nearest(x, name),)
        for d in changed:
            last = d == changed[-1]
            x = self._along(x, d, name if last else f"{name}_{d}")
        return (x,)

    def _nearest(self, x: Tensor, name: str) -> Tensor:
        tables = {
            d: self._table(x, d, places, f"{name}_places{d}")
            for d, places in enumerate(self.places)
            if isinstance(places, Stretch)
        }

        def source(d: int, index: Expr, places: Places | Stretch) -> Expr:
            if places == SAME and self.sizes[d] == shape_of(x)[d]:
                return index
            extent = x.extents[d]
            if isinstance(places, Stretch):
                return te.clamp_index(tables[d][index], extent)
            position = index * places.slope + places.offset
            nearest = _rounded(position, places.divisor, self.sampling)
            return te.maximum(te.minimum(nearest, extent - 1), 0)

        def element(*i: Expr) -> Expr:
            at = (source(d, *pair) for d, pair in enumerate(zip(i, self.places, strict=True)))
            return where_any(x[tuple(at)], *(shape_of(x)[d] for d in tables))

        return te.compute(self.sizes, element, name=name)

    def _table(self, x: Tensor, axis: int, places: Stretch, name: str) -> Tensor:
        """The number of the element of an axis that each element takes, which may lie outside."""
        size, count = (_as_expr(axis_of(n)) for n in (shape_of(x)[axis], self.sizes[axis]))

        def element(i: Expr) -> Expr:
            position, divisor = places.at(i, size, count)
            return te.cast(_rounded(position, divisor, self.sampling), "int32")

        return te.compute(self.sizes[axis], element, name=name)

    def _along(self, x: Tensor, axis: int, name: str) -> Tensor:
        """`x` resized along one axis, each element from its two neighbours."""
        given = shape_of(x)
        places, extent = self.places[axis], x.extents[axis]
        shape = (*given[:axis], self.sizes[axis], *given[axis + 1 :])
        if isinstance(places, Stretch):
            return self._stretched(x, axis, places, name)

        def element(*i: Expr) -> Expr:
            position = i[axis] * places.slope + places.offset
            kept = te.maximum(te.minimum(position, (extent - 1) * places.divisor), 0)
            before = kept // places.divisor
            after = te.minimum(before + 1, extent - 1)
            part = te.cast(kept % places.divisor, x.dtype)
            weight = part / te.const(places.divisor, x.dtype)
            low, high = (x[(*i[:axis], at, *i[axis + 1 :])] for at in (before, after))
            return low * (1 - weight) + high * weight

        return te.compute(shape, element, name=name)

    def _stretched(self, x: Tensor, axis: int, places: Stretch, name: str) -> Tensor:
        """`x` resized along one axis by as much as a run decides. Beyond either end both neighbours
        are the element there.
        """
        given = shape_of(x)
        extent, count = given[axis], self.sizes[axis]
        size, made = (_as_expr(axis_of(n)) for n in (extent, count))

        def neighbour(i: Expr, more: int) -> Expr:
            position, divisor = places.at(i, size, made)
            return te.cast(position // divisor + more, "int32")

        def part(i: Expr) -> Expr:
            position, divisor = places.at(i, size, made)
            return te.cast(position % divisor, x.dtype) / te.cast(divisor, x.dtype)

        before = te.compute(count, lambda i: neighbour(i, 0), name=f"{name}_before")
        behind = te.compute(count, lambda i: neighbour(i, 1), name=f"{name}_behind")
        weights = te.compute(count, part, name=f"{name}_weights")

        def element(*i: Expr) -> Expr:
            weight = weights[i[axis]]
            low, high = (
                x[(*i[:axis], te.clamp_index(at[i[axis]], extent), *i[axis + 1 :])]
                for at in (before, behind)
            )
            return where_any(low * (1 - weight) + high * weight, extent)

        return te.compute((*given[:axis], count, *given[axis + 1 :]), element, name=name)


def _as_expr(extent: Extent) -> Expr:
    return extent if isinstance(extent, Dim) else te.const(extent, "int64")


def _rounded(position: Expr, divisor: Expr | int, sampling: Sampling) -> Expr:
    """position / divisor as a whole number."""
    match sampling:
        case "floor":
            return position // divisor
        case "ceil":
            return (position + (divisor - 1)) // divisor
        case "round_prefer_floor":
            return (position * 2 + (divisor - 1)) // (2 * divisor)
        case _:
            return (position * 2 + divisor) // (2 * divisor)


def rounded_array(
    position: NDArray[np.int64], divisor: int, sampling: Sampling
) -> NDArray[np.int64]:
    """position / divisor as whole numbers, from quotient and rest, which Python's integers have,
    too.
    """
    quotient, rest = position // divisor, position % divisor
    up = {
        "floor": rest < 0,
        "ceil": rest > 0,
        "round_prefer_floor": 2 * rest > divisor,
        "round_prefer_ceil": 2 * rest >= divisor,
    }[sampling]
    rounded: NDArray[np.int64] = quotient + up
    return rounded
