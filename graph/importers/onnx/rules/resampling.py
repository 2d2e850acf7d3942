"""What Resize is where it is not Resize: tables of the elements that each one is made of, and of
their weights. Places are exact fractions here, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations

import numpy as np

from .....tir.sizes import AnySize, closed
from ....errors import ModelError
from ....ops.functions import Cast, Round
from ....ops.gathering import Gather
from ....ops.logic import Where
from ....ops.movement import Identity
from ....ops.resampling import Resample
from ....ops.resize import Places, Sampling, rounded_array
from ....types import Array, Floats, Splat
from ..node import NodeReader
from .rule import Application, Result

ALONE = 8  # times as long as an element of a vector takes one by itself


@dataclass(frozen=True, slots=True)
class AxisPlaces:
    """Where the `count` elements are taken from that an axis of `size` gets."""

    size: int
    count: int
    places: Places

    def positions(self) -> Iterator[int]:
        """Those places, times `places.divisor`."""
        return (self.places.slope * i + self.places.offset for i in range(self.count))

    def outside(self) -> Array:
        """Which of them are no place of the axis."""
        last = (self.size - 1) * self.places.divisor
        return np.array([not 0 <= position <= last for position in self.positions()], bool)

    def nearest(self, sampling: Sampling) -> Array:
        """The elements that stand there, of those that are."""
        found = rounded_array(np.array([*self.positions()], object), self.places.divisor, sampling)
        return np.array([min(max(0, int(at)), self.size - 1) for at in found], np.int64)


@dataclass(frozen=True, slots=True)
class ResizeKernel:
    """How an element is weighed by its distance from a place.

    cubic: Keys' kernel with this a; None for a linear one. scale: how many times as many elements
    the axis gets; where they get fewer, the kernel is that much wider. inside: elements that do not
    exist have no weight, instead of being the nearest one that does.
    """

    cubic: float | None
    scale: Fraction | int
    inside: bool

    @property
    def support(self) -> int:
        """Elements on either side of a place, where they do not get fewer."""
        return 1 if self.cubic is None else 2

    def weights(self, distances: Floats) -> Floats:
        """At distances, in elements of the narrow kernel."""
        x = np.abs(distances)
        if self.cubic is None:
            triangle: Floats = np.maximum(0.0, 1 - x)
            return triangle
        a = self.cubic
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        kernel: Floats = np.where(x <= 1, near, np.where(x < 2, far, 0.0))
        return kernel


def resampled(
    node: NodeReader,
    axes: Mapping[int, AxisPlaces],
    kernels: Mapping[int, ResizeKernel],
    outside: Mapping[int, Array],
) -> Result:
    """The input of a node with other elements along some axes.

    outside: which of these have no place, but the node's own value.
    """
    type_, value = node.type(0), node.value(0)
    if not type_.is_float:
        value = node.emit(Cast("float32"), value)
    dtype = node.builder.types[value].dtype
    tables = {axis: _table(places, kernels[axis]) for axis, places in axes.items()}
    taps = {axis: weights.shape[1] for axis, (_, weights) in tables.items()}
    for axis in least_steps(axes, taps, type_.rank - 1):
        starts, weights = tables[axis]
        first = node.table("starts", starts)
        value = node.emit(
            Resample(axis), value, first, node.table("weights", weights.astype(dtype))
        )
    return _finished(node, value, outside)


def least_steps(
    axes: Mapping[int, AxisPlaces], taps: Mapping[int, int], last: int
) -> Sequence[int]:
    """The order in which axes get other numbers of elements that takes the fewest steps; along the
    last axis of all, each element is read by itself.
    """

    def steps(order: Sequence[int]) -> int:
        sizes, total = {axis: places.size for axis, places in axes.items()}, 0
        for axis in order:
            sizes[axis] = axes[axis].count
            total += math.prod(sizes.values()) * taps[axis] * (ALONE if axis == last else 1)
        return total

    return min(permutations(sorted(axes)), key=steps)


def picked(node: NodeReader, indices: Mapping[int, Array], outside: Mapping[int, Array]) -> Result:
    """The elements of the input of a node that stand at `indices` along some axes."""
    value = node.value(0)
    for axis, places in indices.items():
        at = node.table("places", places)
        value = node.emit(Gather(axis), value, at)
    return _finished(node, value, outside)


def _finished(node: NodeReader, value: str, outside: Mapping[int, Array]) -> Application:
    """`value` in the element type of the node, with its own value outside of the input."""
    type_, made = node.type(0), node.builder.types[value]
    beyond = node.real("extrapolation_value", 0.0)
    for axis, flags in outside.items():
        if flags.any():
            shape = (-1, *(1,) * (type_.rank - axis - 1))
            condition = node.table("outside", flags.reshape(shape))
            number = np.asarray(beyond).astype(made.dtype).item()
            other = node.table("extrapolation", Splat(number, made.dtype, ()))
            value = node.emit(Where(), condition, other, value)
    if made.dtype == type_.dtype:
        return Identity(), (value,)
    return Cast(type_.dtype), (node.emit(Round(), value),)


def _table(axis: AxisPlaces, kernel: ResizeKernel) -> tuple[Array, Floats]:
    """Where each element begins to read its axis, and the weights of what it reads."""
    size, count, divisor = axis.size, axis.count, axis.places.divisor
    step = min(kernel.scale, Fraction(1))
    first = math.floor(-kernel.support / step) + 1
    taps = np.arange(first, 2 - first)
    found = [divmod(position, divisor) for position in axis.positions()]
    # beyond either end all elements are the same: a place far away is one that is near
    reach = len(taps)
    wholes = np.array([min(max(whole, -reach), size + reach) for whole, _ in found], np.int64)
    rests = np.array([rest / divisor for _, rest in found], np.float64)
    weights = kernel.weights(float(step) * (taps - rests.reshape(-1, 1)))
    indices = wholes.reshape(-1, 1) + taps
    if kernel.inside:
        real = np.where((indices >= 0) & (indices < size), weights, 0.0)
        weights = np.where(real.sum(axis=1, keepdims=True) == 0, weights, real)
    weights = weights / weights.sum(axis=1, keepdims=True)
    kept = np.clip(indices, 0, max(0, size - 1))
    width = int((kept[:, -1] - kept[:, 0]).max(initial=0)) + 1
    starts = np.minimum(kept[:, 0], max(0, size - width))
    table = np.zeros((count, width))
    np.add.at(table, (np.arange(count).reshape(-1, 1), kept - starts.reshape(-1, 1)), weights)
    return starts, table


def regions(node: NodeReader, axes: list[int]) -> dict[int, tuple[Fraction, Fraction]]:
    """The part of each axis that a node crops, from 0 to 1."""
    roi = node.constant(1, 64)
    if roi.shape != (2 * len(axes),) or roi.dtype.kind != "f" or not np.isfinite(roi).all():
        raise ModelError(
            f"model: {node.title} crops by {node.type(1)}; expected {2 * len(axes)} finite "
            "numbers.",
            code="onnx-resize-roi",
        )
    ends = [Fraction(float(number)) for number in roi]
    return {d: (ends[n], ends[n + len(axes)]) for n, d in enumerate(axes)}


def cropped(
    size: AnySize, count: AnySize, scale: Fraction, region: tuple[Fraction, Fraction]
) -> Places:
    """Where the `count` elements of a region of an axis of `size` are taken from, as TensorFlow's
    crop_and_resize says.
    """
    (start, end), last = region, closed(size) - 1
    if closed(count) > 1:
        step, first = (end - start) * last / (scale * closed(size) - 1), start * last
    else:
        step, first = Fraction(0), (start + end) * last / 2
    divisor = math.lcm(step.denominator, first.denominator)
    return Places(int(step * divisor), int(first * divisor), divisor)
