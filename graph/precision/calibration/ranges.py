"""The range of a value that is stored in few levels, by each method of calibration.

As onnxruntime 1.32 has them in `quantization/calibrate.py`: on the same numbers `moving_average`,
`percentile_range` and `entropy_range` give what that gives, bit for bit, but where that gives a
range that ends before it begins, or found none: then all that was seen is kept.
`least_error_range` is not there.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .histogram import Counts, Float32s

CalibrationMethod = Literal["minmax", "moving", "entropy", "percentile", "mse"]
METHODS: tuple[CalibrationMethod, ...] = ("minmax", "moving", "entropy", "percentile", "mse")
WITH_HISTOGRAMS = ("entropy", "percentile", "mse")

Bounds = tuple[np.float32, np.float32]
Interval = tuple[float, float]  # the same, as Python's numbers

ENTROPY_LEVELS = 128
_SMOOTHING = 0.0001
_FACTORS = np.linspace(0.3, 1.0, 36)
_LEVELS = 255  # steps between the 256 levels of a byte


def moving_average(average: Bounds, new: Bounds, share: float) -> Bounds:
    """Both ends moved by a share of the way to those of a new item, in float32."""
    low, high = (
        old + np.float32(share) * (one - old) for old, one in zip(average, new, strict=True)
    )
    return low, high


def percentile_range(
    counts: Counts, edges: Float32s, seen: Bounds, percentile: float = 99.999
) -> Bounds:
    """The range that leaves out at most 100 - percentile per cent of the elements, half of them
    at either end; it lies within what was seen.
    """
    shares = np.cumsum(counts / counts.sum())
    cut = (100.0 - percentile) / 200.0
    left = np.searchsorted(shares, cut)
    right = min(int(np.searchsorted(shares, 1.0 - cut)), len(edges) - 1)
    return _within((edges[left], edges[right]), seen)


def entropy_range(
    counts: Counts, edges: Float32s, seen: Bounds, levels: int = ENTROPY_LEVELS
) -> Bounds:
    """The symmetric part of a histogram that loses the least when it is stored in `levels` levels.

    Every part about 0 of at least `levels` bins is tried. What lies outside of it is counted in its
    first and last bin; its bins are joined to levels, each spread evenly over those of its bins
    that hold something; and the divergence of Kullback and Leibler of the one from the other is
    taken, both smoothed. (S. Migacz, 8-bit inference with TensorRT, GTC 2017.) Where there are only
    `levels` bins there is one part, the whole: so onnxruntime's default, 128 bins of 128, is minmax
    until a later batch makes its histogram wider.
    Requires: at least `levels` bins.
    """
    middle, least = len(counts) // 2, levels // 2
    before = np.concatenate(([0], np.cumsum(counts)))
    best, chosen = np.inf, seen
    for reach in range(least, middle + 1):
        start, end = middle - reach, min(middle + reach + 1, len(counts))
        outside = int(before[start]), int(before[-1] - before[end])
        lost = _divergence(counts[start:end], outside, levels)
        if lost < best:
            best, chosen = lost, (edges[start], edges[end])
    return _within(chosen, seen)


def least_error_range(counts: Counts, edges: Float32s, seen: Bounds) -> Bounds:
    """Of 36 ranges, 0.3 to 1 times the one that was seen, that in whose 256 levels, one of them 0,
    the elements are stored with the least mean squared error; of equal ones the widest.
    """
    low, high = min(float(seen[0]), 0.0), max(float(seen[1]), 0.0)
    if low == high:
        return seen
    middles = (edges[:-1].astype(np.float64) + edges[1:]) / 2
    held = np.flatnonzero(counts)
    values, weights = middles[held], counts[held].astype(np.float64)
    errors = [float(weights @ _rounding(values, f * low, f * high) ** 2) for f in _FACTORS[::-1]]
    factor = np.float32(_FACTORS[::-1][int(np.argmin(errors))])
    return _within((factor * seen[0], factor * seen[1]), seen)


def _rounding(values: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    """By how much values are off in 256 levels from `low` to `high`, which hold 0."""
    step = (high - low) / _LEVELS
    zero = np.rint(-low / step)
    levels = np.clip(np.rint(values / step) + zero, 0, _LEVELS)
    rounded: NDArray[np.float64] = (levels - zero) * step
    return rounded - values


def _within(bounds: Bounds, seen: Bounds) -> Bounds:
    """Bounds cut to what was seen; that itself where nothing is left."""
    low, high = max(bounds[0], seen[0]), min(bounds[1], seen[1])
    return (low, high) if low <= high else seen


def _divergence(part: Counts, outside: tuple[int, int], levels: int) -> float:
    """What is lost where a part of a histogram is stored in levels. outside: the elements before
    and behind it.
    """
    held = part.copy()
    held[0] += outside[0]
    held[-1] += outside[1]
    width = len(part) // levels
    even = width * levels
    joined = part[:even].reshape(levels, width).sum(axis=1)
    joined[-1] += part[even:].sum()
    filled = np.count_nonzero(held[:even].reshape(levels, width), axis=1)
    spread = np.zeros(len(part), np.int64)  # whole numbers: the fraction is dropped
    spread[:even] = np.repeat(joined // np.maximum(filled, 1) * (filled > 0), width)
    p, q = _smoothed(held), _smoothed(spread)
    if p is None or q is None:
        return float(np.inf)
    p, q = p / np.sum(p), q / np.sum(q)
    return float(np.sum(p * np.log(p / q)))


def _smoothed(counts: Counts) -> Float32s | None:
    """The counts with a little in place of 0, taken from the others; None where all are 0."""
    held = counts != 0
    full = int(np.count_nonzero(held))
    if not full:
        return None
    taken = _SMOOTHING * (len(counts) - full) / full
    smooth = counts.astype(np.float32)
    smooth += np.where(held, np.float32(-taken), np.float32(_SMOOTHING))
    return smooth
