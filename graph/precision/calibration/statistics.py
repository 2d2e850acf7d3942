"""What is known of the values of a model from some items of data; of parts it adds up to that of
all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ...errors import ModelError
from ...ir.ir import Graph
from ..channels.products import channel_axes, product_channels
from ..prepared import calibrated_values
from .histogram import Float32s, ValueHistogram
from .ranges import Bounds, moving_average

Part = TypeVar("Part")


class CalibrationError(ModelError):
    """The data of a calibration, or what a model makes of them, give no ranges."""


@dataclass(frozen=True, slots=True)
class WantedStatistics:
    """What is asked of a model's values.

    finite: those that must not be infinite: inputs, and what products read and make. axes:
    of each value whose channels are looked at, the axis. bins: of the histograms, None
    without. share: of the moving average, None without.
    """

    names: tuple[str, ...]
    finite: frozenset[str]
    axes: Mapping[str, int]
    bins: int | None = None
    share: float | None = None

    @staticmethod
    def of(prepared: Graph, bins: int | None, share: float | None) -> WantedStatistics:
        """What is asked of all values of a model."""
        products = list(product_channels(prepared))
        read = (name for product in products for name, _ in product.reads)
        made = (product.node.outputs[0] for product in products)
        finite = frozenset((*prepared.inputs, *read, *made))
        names = calibrated_values(prepared)
        return WantedStatistics(names, finite, channel_axes(prepared), bins, share)


@dataclass(frozen=True, slots=True, eq=False)
class ValueStatistics:
    """Of one value: the least and the largest element; in moving averages over the items; its
    histogram; of each channel the largest magnitude, and the sum of its elements, so many in each.

    `low` and `high` are None where it had no element, and infinite where it had such elements; then
    there is nothing else.
    """

    low: np.float32 | None = None
    high: np.float32 | None = None
    average: Bounds | None = None
    histogram: ValueHistogram | None = None
    peaks: Float32s | None = None
    sums: NDArray[np.float64] | None = None
    per_channel: int = 0

    @property
    def seen(self) -> Bounds | None:
        """The least and the largest element."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def means(self) -> Float32s | None:
        """The mean of each channel."""
        return None if self.sums is None else (self.sums / self.per_channel).astype(np.float32)

    @property
    def is_finite(self) -> bool:
        """Whether no element was infinite."""
        return self.seen is None or bool(np.isfinite(self.seen).all())

    def merged(self, later: ValueStatistics, share: float | None) -> ValueStatistics:
        """The statistics of the items of both. share: of the moving average.

        Requires: where there is a moving average, `later` is of one item.
        """
        one, other = self.seen, later.seen
        if one is None or other is None:
            return self if other is None else later
        low, high = min(one[0], other[0]), max(one[1], other[1])
        if not (self.is_finite and later.is_finite):
            return ValueStatistics(low, high)
        average = None
        if share is not None and self.average is not None:
            average = moving_average(self.average, other, share)
        return ValueStatistics(
            low,
            high,
            average,
            _both(self.histogram, later.histogram, ValueHistogram.merged),
            _both(self.peaks, later.peaks, np.maximum),
            _both(self.sums, later.sums, np.add),
            self.per_channel + later.per_channel,
        )


@dataclass(frozen=True, slots=True, eq=False)
class ModelStatistics:
    """Of each value that is asked for, and of how many items."""

    values: Mapping[str, ValueStatistics]
    items: int

    @staticmethod
    def of(wanted: WantedStatistics, arrays: Mapping[str, NDArray[np.generic]]) -> ModelStatistics:
        """The statistics of one item. Raises: CalibrationError for a value that has NaN."""
        found = {name: _of_value(wanted, name, arrays[name]) for name in wanted.names}
        return ModelStatistics(found, 1)

    def merged(self, later: ModelStatistics, share: float | None = None) -> ModelStatistics:
        """The statistics of the items of both, the same in whatever order, except the last digits
        of means. share: of a moving average, which has an order; `later` is then of one item.
        """
        pairs = ((name, one, later.values[name]) for name, one in self.values.items())
        merged = {name: one.merged(other, share) for name, one, other in pairs}
        return ModelStatistics(merged, self.items + later.items)


def _of_value(wanted: WantedStatistics, name: str, array: NDArray[np.generic]) -> ValueStatistics:
    """The statistics of a value in one item. Raises: CalibrationError."""
    numbers = np.asarray(array, np.float32)
    if not numbers.size:
        return ValueStatistics()
    low, high = np.float32(numbers.min()), np.float32(numbers.max())
    if not np.isfinite([low, high]).all():
        if np.isnan(low) or name in wanted.finite:
            raise _no_numbers(name, numbers)
        return ValueStatistics(low, high)
    peaks = sums = None
    per_channel = 0
    if (axis := wanted.axes.get(name)) is not None:
        others = _others(numbers, axis)
        peaks = np.maximum(numbers.max(axis=others), -numbers.min(axis=others))
        sums = numbers.sum(axis=others, dtype=np.float64)
        per_channel = numbers.size // numbers.shape[axis]
    histogram = None if wanted.bins is None else ValueHistogram.of(numbers, wanted.bins)
    average = None if wanted.share is None else (low, high)
    return ValueStatistics(low, high, average, histogram, peaks, sums, per_channel)


def _no_numbers(name: str, array: Float32s) -> CalibrationError:
    """The error for a value that has NaN, or infinities where there may be none."""
    kind = np.isnan if np.isnan(array).any() else np.isinf
    place = np.unravel_index(int(np.argmax(kind(array))), array.shape)
    at = ", ".join(map(str, place))
    return CalibrationError(
        f"calibrate: '{name}' is {array[place]} at [{at}]; expected finite numbers.",
        code="calibrate-finite",
        hints=("leave out the item, or look at what the model makes of it.",),
    )


def _others(array: Float32s, axis: int) -> tuple[int, ...]:
    """All axes but one."""
    return tuple(n for n in range(array.ndim) if n != axis % array.ndim)


def _both(one: Part | None, other: Part | None, merge: Callable[[Part, Part], Part]) -> Part | None:
    """Two parts merged, where both are there."""
    return None if one is None or other is None else merge(one, other)
