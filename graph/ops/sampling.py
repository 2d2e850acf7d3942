"""SampleAt: the values of data between its elements, at places that another tensor says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ...tir.expr import Expr
from ...tir.reference.arithmetic import convert_array
from ...tir.sizes import closed_shape, largest
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Array, Floats, TensorType
from .base import (
    Layout,
    Operator,
    ReferenceWork,
    check_arity,
    listed,
    refuse,
    shape_of,
    tensor_type,
)
from .spatial import Spatial
from .window import (
    channel_axis,
    channels_first,
    check_spatial,
    place,
    restored,
    spatial_axes,
)

N = TypeVar("N", Expr, Floats)
Places = NDArray[np.int64]
Interpolation = Literal["nearest", "linear", "cubic"]
Outside = Literal["zeros", "border", "reflection"]
_TAPS = {"nearest": (0,), "linear": (0, 1), "cubic": (-1, 0, 1, 2)}
_FAR = 4  # elements beyond either end of an axis: there no tap reaches it
_A = -0.75  # of Keys' kernel


@dataclass(frozen=True, slots=True)
class SampleAt(Spatial):
    """y[n, c, *o] = x[n, c] at the place places[n, *o].

    Inputs: x of [N, C, spatial...] ("NCHW") or [N, spatial..., C] ("NHWC"), whose spatial axes have
    fixed sizes, and places of [N, ..., axes], the coordinate along the last axis first, in
    elements; the result has the layout and the rank of x. mode: "nearest" takes the element
    at the whole number below a place; "linear" weighs the two neighbours on each axis, "cubic" four
    of them, as R. G. Keys does ("Cubic convolution interpolation for digital image processing",
    1981) with a = -3/4. outside: what has no element: "zeros"; "border", the nearest one;
    "reflection", the data mirrored at their edges, or, with `centers`, at the first and the last
    element. A place that lies outside of the edges, or of these elements, is moved likewise first.
    """

    mode: Interpolation = "linear"
    outside: Outside = "zeros"
    centers: bool = False
    layout: Layout = "NCHW"

    operand_names = ("x", "places")

    def channels_last(self) -> SampleAt:
        return replace(self, layout="NHWC")

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 2, 2)
        x, places = types
        fitting = x.rank >= 3 and places.rank == x.rank and places.is_float
        if not fitting or (places.shape[0], places.shape[-1]) != (x.shape[0], x.rank - 2):
            problem = (
                f"expected data with spatial axes and places of [N, ..., axes], got {listed(types)}"
            )
            refuse(self, problem, code="sample-shape")
        if self.mode != "nearest" and x.dtype != places.dtype:
            problem = f"expected data and places of one floating-point type, got {listed(types)}"
            refuse(self, problem, code="sample-type")
        channels = x.shape[channel_axis(self.layout, x.rank)]
        shape = place(self.layout, x.shape[0], channels, places.shape[1:-1])
        result = TensorType(x.dtype, shape)
        if 0 in self._sizes(x) and result.elements != 0:
            refuse(self, f"{x} has no elements to take {result} from", code="sample-empty")
        return (result,)

    def _sizes(self, x: TensorType) -> tuple[int, ...]:
        return closed_shape(check_spatial(self, x, self.layout))

    def work(self, types: tuple[TensorType, ...]) -> ReferenceWork:
        (result,), base = self.infer(types), Operator.work(self, types)
        taps = len(_TAPS[self.mode]) ** (types[0].rank - 2)
        count = largest(result.elements)
        return ReferenceWork(base.held + 6 * count, base.steps + 4 * taps * count)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, places = channels_first(arrays[0], self.layout), cast(Floats, arrays[1])
        shape, sizes = (*x.shape[:2], *places.shape[1:-1]), x.shape[2:]
        if 0 in shape:
            return (restored(np.zeros(shape, x.dtype), self.layout),)
        batch = np.arange(x.shape[0]).reshape(-1, *(1,) * (places.ndim - 2))
        rows, total = np.moveaxis(x, 1, -1), np.zeros((shape[0], *shape[2:], shape[1]), x.dtype)
        with np.errstate(all="ignore"):
            axes = [self._taps_of(places[..., -1 - d], size) for d, size in enumerate(sizes)]
            for taps in product(*axes):
                inside = np.ones(places.shape[:-1], bool)
                for (index, _), size in zip(taps, sizes, strict=True):
                    inside &= (index >= 0) & (index < size)
                at = (np.where(inside, index, 0) for index, _ in taps)
                value = np.where(inside[..., None], rows[(batch, *at)], np.zeros((), x.dtype))
                for _, weight in taps:
                    if weight is not None:
                        value = value * weight[..., None]
                total = np.add(total, value, dtype=x.dtype)
        return (restored(np.moveaxis(total, -1, 1), self.layout),)

    def _taps_of(self, at: Floats, size: int) -> list[tuple[Places, Floats | None]]:
        """Which elements along an axis are read for each place, and their weights."""
        low, high = self._edges(size)
        away = (at < low) | (at > high)
        match self.outside:
            case "border":
                at = cast(Floats, np.where(away, np.clip(at, 0, size - 1), at))
            case "reflection":
                at = cast(Floats, np.where(away, _mirrored(at, low, high), at))
        at = cast(Floats, np.clip(at, -_FAR, size + _FAR))
        whole = np.floor(at)
        first = cast(Places, convert_array(whole, np.dtype(np.int64)))
        weights = _weights(self.mode, cast(Floats, np.subtract(at, whole)))
        taps: list[tuple[Places, Floats | None]] = []
        for step, weight in zip(_TAPS[self.mode], weights, strict=True):
            index: Places = first + step
            if self.outside == "border":
                index = np.clip(index, 0, size - 1)
            elif self.outside == "reflection":
                index = _mirrored_index(index, size, self.centers)
            taps.append((index, weight))
        return taps

    def _edges(self, size: int) -> tuple[float, float]:
        """Where an axis ends."""
        return (0.0, size - 1.0) if self.centers else (-0.5, size - 0.5)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        """Each axis has a stage for its coordinates, which all channels share."""
        x, places = tensors
        (result,) = self.infer(tuple(map(tensor_type, tensors)))
        sizes, layout = self._sizes(tensor_type(x)), self.layout
        if 0 in x.shape:
            return (te.compute(result.shape, lambda *_: te.const(0, x.dtype), name=name),)
        rank, last = len(x.shape), len(sizes) - 1
        moved = [
            self._moved(places, last - d, size, f"{name}_at{d}") for d, size in enumerate(sizes)
        ]

        def element(*i: Expr) -> Expr:
            channel = i[channel_axis(layout, rank)]
            here = (i[0], *(i[d] for d in spatial_axes(layout, rank)))
            axes = [self._reads(at[here], size) for at, size in zip(moved, sizes, strict=True)]
            return _interpolated(lambda *at: x[place(layout, i[0], channel, at)], axes)

        return (te.compute(result.shape, element, name=name),)

    def _moved(self, places: Tensor, number: int, size: int, name: str) -> Tensor:
        """The places along an axis, those that lie outside moved as `outside` says."""
        low, high = self._edges(size)

        def element(*i: Expr) -> Expr:
            at: Expr = places[(*i, number)]
            away = te.any_of(at < low, at > high)
            match self.outside:
                case "border":
                    at = te.select(away, te.minimum(te.maximum(at, 0), size - 1), at)
                case "reflection":
                    at = te.select(away, _reflected(at, low, high), at)
            return te.minimum(te.maximum(at, -_FAR), size + _FAR)

        return te.compute(shape_of(places)[:-1], element, name=name)

    def _reads(self, at: Expr, size: int) -> list[_Read]:
        """What is read along an axis for a place."""
        whole = te.floor(at)
        first = te.cast(whole, "int64")
        weights = _weights(self.mode, at - whole)
        found = []
        for step, weight in zip(_TAPS[self.mode], weights, strict=True):
            index, inside = first + step, None
            if self.outside == "zeros":
                inside = te.all_of(index >= 0, index < size)
            elif self.outside == "reflection":
                index = _reflected_index(index, size, self.centers)
            found.append(_Read(te.clamp_index(index, size), weight, inside))
        return found


@dataclass(frozen=True, slots=True)
class _Read:
    """An element along an axis that a place reads, its weight, and where it exists."""

    index: Expr
    weight: Expr | None
    inside: Expr | None


def _interpolated(
    load: Callable[..., Expr], axes: Sequence[Sequence[_Read]], chosen: tuple[_Read, ...] = ()
) -> Expr:
    """The weighted sum over the elements that the first axis reads of such sums over the others."""
    if not axes:
        value = load(*(read.index for read in chosen))
        inside = [read.inside for read in chosen if read.inside is not None]
        return te.select(te.all_of(*inside), value, 0) if inside else value
    total: Expr | None = None
    for read in axes[0]:
        part = _interpolated(load, axes[1:], (*chosen, read))
        part = part if read.weight is None else part * read.weight
        total = part if total is None else total + part
    assert total is not None
    return total


def _reflected(place: Expr, low: float, high: float) -> Expr:
    """A place mirrored at the ends of low .. high as often as it takes."""
    width = high - low
    if width == 0:
        return te.const(low, place.dtype)
    away = te.abs(place - low)
    rest = away - te.floor(away / (2 * width)) * (2 * width)
    return te.minimum(rest, 2 * width - rest) + low


def _mirrored(place: Floats, low: float, high: float) -> Floats:
    """`_reflected` of an array."""
    width = high - low
    if width == 0:
        return np.full_like(place, low)
    away = np.abs(place - low)
    rest = away - np.floor(away / (2 * width)) * (2 * width)
    return cast(Floats, np.minimum(rest, 2 * width - rest) + low)


def _reflected_index(index: Expr, size: int, centers: bool) -> Expr:
    """An element mirrored, once at each end: a tap lies that near to a place within."""
    low, high = (0, 2 * size - 2) if centers else (-1, 2 * size - 1)
    index = te.select(index < 0, low - index, index)
    return te.select(index >= size, high - index, index)


def _mirrored_index(index: Places, size: int, centers: bool) -> Places:
    """`_reflected_index` of an array, within the axis."""
    low, high = (0, 2 * size - 2) if centers else (-1, 2 * size - 1)
    index = np.where(index < 0, low - index, index)
    return np.clip(np.where(index >= size, high - index, index), 0, size - 1)


def cubic_weights(t: N, a: float = _A) -> tuple[N, N, N, N]:
    """Keys' kernel at the distances t + 1, t, 1 - t, 2 - t, for t of 0 to 1."""
    near, far = 1 - t, 2 - t
    return (
        ((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a,
        ((a + 2) * t - (a + 3)) * t * t + 1,
        ((a + 2) * near - (a + 3)) * near * near + 1,
        ((a * far - 5 * a) * far + 8 * a) * far - 4 * a,
    )


def _weights(mode: Interpolation, t: N) -> tuple[N | None, ...]:
    """Those of the taps of a place that is `t` beyond an element; None for 1."""
    match mode:
        case "nearest":
            return (None,)
        case "linear":
            return (1 - t, t)
        case _:
            return cubic_weights(t)
