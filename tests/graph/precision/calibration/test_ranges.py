"""The methods of calibration, by hand and beside onnxruntime's."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnxruntime.quantization.calibrate import HistogramCollector

from tilewright.graph.precision.calibration.histogram import Counts, Float32s, ValueHistogram
from tilewright.graph.precision.calibration.ranges import (
    METHODS,
    WITH_HISTOGRAMS,
    Bounds,
    entropy_range,
    least_error_range,
    moving_average,
    percentile_range,
)

SHAPES = ("normal", "relu", "tails", "outliers", "whole")


def seen(*numbers: float) -> Bounds:
    low, high = map(np.float32, numbers)
    return low, high


def batches(shape: str, seed: int) -> list[Float32s]:
    """Numbers of a shape, of which later batches are somewhat larger."""
    rng, found = np.random.default_rng(seed), []
    for growth in (1.0, 1.7, 1.2):
        numbers = rng.standard_normal(5_000) * growth
        if shape == "relu":
            numbers = np.maximum(numbers, 0)
        if shape == "tails":
            numbers = numbers**3
        if shape == "outliers":
            numbers[:20] *= 30
        if shape == "whole":
            numbers = np.round(numbers * 4)
        found.append(numbers.astype(np.float32))
    return found


def collected(
    method: str, arrays: Sequence[Float32s], bins: int, percentile: float = 99.999
) -> tuple[tuple[Any, ...], tuple[float, float]]:
    """The histogram that onnxruntime's collector makes of batches, and the range that it takes."""
    collector = HistogramCollector(method, False, bins, 128, percentile, "same")
    with contextlib.redirect_stdout(io.StringIO()):
        for array in arrays:
            collector.collect({"x": array})
        low, high, *_ = collector.compute_collection_result()["x"]
    return collector.get_histogram_dict()["x"], (float(low), float(high))


def test_the_methods() -> None:
    assert METHODS == ("minmax", "moving", "entropy", "percentile", "mse")
    assert set(WITH_HISTOGRAMS) < set(METHODS)


def test_a_moving_average_goes_a_share_of_the_way_in_float32() -> None:
    assert moving_average(seen(-1, 4), seen(-3, 0), 0.25) == seen(-1.5, 3)
    low, high = moving_average(seen(-0.1, 0.3), seen(-0.7, 0.9), 0.01)
    assert (low.dtype, high.dtype) == (np.float32, np.float32)
    expected = np.float32(-0.1) + np.float32(0.01) * (np.float32(-0.7) - np.float32(-0.1))
    assert low == expected


# -- percentile -----------------------------------------------------------------------------------


def test_a_percentile_leaves_out_the_rest_half_at_either_end() -> None:
    counts = np.array([1, 9, 40, 40, 9, 1], np.int64)
    edges = np.arange(-3, 4).astype(np.float32)
    assert percentile_range(counts, edges, seen(-2.5, 2.5), 100.0) == seen(-2.5, 2)
    assert percentile_range(counts, edges, seen(-2.5, 2.5), 97.0) == seen(-2, 1)
    assert percentile_range(counts, edges, seen(-1.5, 0.5), 97.0) == seen(-1.5, 0.5)


@pytest.mark.parametrize("percentile", [99.999, 99.9, 95.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_percentile_of_a_histogram_is_onnxruntimes(shape: str, percentile: float) -> None:
    arrays = batches(shape, 0)
    (counts, edges, low, high, _), expected = collected("percentile", arrays, 500, percentile)
    assert percentile_range(counts, edges, (low, high), percentile) == expected


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_percentile_of_data_is_onnxruntimes_to_one_bin(shape: str, count: int) -> None:
    """Of one batch to one bin of onnxruntime's; of more, whose bins are as wide as those of the
    first batch, to the wider one.
    """
    arrays = batches(shape, 1)[:count]
    (_, edges, low, high, _), expected = collected("percentile", arrays, 2048, 99.9)
    counts, own = ValueHistogram.of(np.concatenate(arrays), 2048).trimmed()
    got = percentile_range(counts, own, (low, high), 99.9)
    widths = [float(one[1]) - float(one[0]) for one in (edges, own)]
    assert count > 1 or widths[1] <= widths[0]
    assert np.abs(np.subtract(got, expected)).max() <= max(widths)


# -- entropy --------------------------------------------------------------------------------------


@pytest.mark.parametrize("bins", [128, 129, 400])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_entropy_of_a_histogram_is_onnxruntimes(shape: str, bins: int) -> None:
    arrays = batches(shape, 2)
    (counts, edges, low, high, _), expected = collected("entropy", arrays, bins)
    assert entropy_range(counts, edges, (low, high)) == expected


@pytest.mark.parametrize("seed", range(12))
def test_the_entropy_of_any_counts_is_onnxruntimes(seed: int) -> None:
    """Full bins at the ends, which no level has when there are more bins than levels hold."""
    rng = np.random.default_rng(seed)
    bins = int(rng.integers(128, 330))
    counts = rng.integers(0, 50, bins) * (rng.random(bins) < rng.choice([0.1, 0.5, 1.0]))
    counts[-8:] += rng.integers(0, 2_000, 8)
    edges = np.linspace(-4, 4, bins + 1).astype(np.float32)
    ends = edges[0], edges[-1]
    collector = HistogramCollector("entropy", False, bins, 128, 99.999, "same")
    expected = collector.get_entropy_threshold((counts, edges, *ends), 128)
    assert entropy_range(counts, edges, ends) == expected


def test_onnxruntimes_default_of_128_bins_is_minmax_for_a_single_batch() -> None:
    (first, *_) = batches("outliers", 3)
    (counts, edges, low, high, _), expected = collected("entropy", [first], 128)
    assert entropy_range(counts, edges, (low, high)) == (low, high) == expected


def test_entropy_cuts_off_a_far_outlier() -> None:
    numbers = np.append(batches("normal", 4)[0], np.float32(60))
    counts, edges = ValueHistogram.of(numbers, 1024).trimmed(1024)
    low, high = entropy_range(counts, edges, (numbers.min(), numbers.max()))
    assert (low, 3 < high < 20) == (numbers.min(), True)


@pytest.mark.parametrize("number", [3.0, -3.0, 0.0, 1e-30])
def test_equal_numbers_keep_their_range(number: float) -> None:
    """onnxruntime's end before they begin: (3.0, 2.998) by percentile, (3.0, 0.508) by entropy."""
    histogram = ValueHistogram.of(np.full(100, number, np.float32), 1024)
    ends = seen(number, number)
    assert entropy_range(*histogram.trimmed(1024), ends) == ends
    assert percentile_range(*histogram.trimmed(), ends) == ends


# -- least error ----------------------------------------------------------------------------------


def error(numbers: Float32s, low: float, high: float) -> float:
    """The mean squared error of numbers that are stored in bytes."""
    low, high = min(low, 0.0), max(high, 0.0)
    step = (high - low) / 255
    zero = np.rint(-low / step)
    stored = np.clip(np.rint(numbers / step) + zero, 0, 255)
    return float(np.mean(((stored - zero) * step - numbers) ** 2))


@pytest.mark.parametrize("shape", SHAPES)
def test_the_least_error_is_that_of_36_shares_of_the_range(shape: str) -> None:
    numbers = np.concatenate(batches(shape, 5))
    ends = float(numbers.min()), float(numbers.max())
    found = least_error_range(*ValueHistogram.of(numbers, 2048).trimmed(), seen(*ends))
    factors = np.linspace(0.3, 1.0, 36)
    tried = [error(numbers, f * ends[0], f * ends[1]) for f in factors]
    assert min(abs(factors - found[1] / ends[1])) < 1e-6
    assert error(numbers, *map(float, found)) <= 1.05 * min(tried)


@pytest.mark.parametrize("seed", range(12))
def test_the_least_error_of_numbers_in_the_middle_of_bins_is_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    edges = np.linspace(-1, 1, 257).astype(np.float32)
    counts = rng.integers(0, 9, 256) * (rng.random(256) < 0.2)
    counts[128:] *= rng.integers(1, 200)
    middles = np.repeat((edges[:-1] + edges[1:]) / 2, counts)
    ends = float(middles.min()), float(middles.max())
    factors = np.linspace(0.3, 1.0, 36)[::-1]
    best = factors[int(np.argmin([error(middles, f * ends[0], f * ends[1]) for f in factors]))]
    low, high = least_error_range(counts, edges, seen(*ends))
    assert (low, high) == tuple(np.float32(best) * np.float32(end) for end in ends)


def test_the_least_error_cuts_off_few_far_outliers() -> None:
    numbers = np.random.default_rng(6).uniform(-1, 1, 300_000).astype(np.float32)
    numbers = np.append(numbers, np.float32([-3, 3]))
    low, high = least_error_range(*ValueHistogram.of(numbers, 2048).trimmed(), seen(-3, 3))
    assert -low == high == np.float32(0.58) * np.float32(3)


@pytest.mark.parametrize("ends", [(0.0, 0.0), (2.0, 2.0), (-3.0, -1.0)])
def test_a_range_on_one_side_of_0_is_kept_where_nothing_is_gained(
    ends: tuple[float, float],
) -> None:
    numbers = np.linspace(*ends, 50).astype(np.float32)
    counts, edges = ValueHistogram.of(numbers, 2048).trimmed()
    low, high = least_error_range(counts, edges, seen(*ends))
    assert ends[0] <= low <= high <= ends[1]


def test_a_range_lies_within_what_was_seen() -> None:
    counts: Counts = np.array([0, 0, 5, 5], np.int64)
    edges = np.array([-2, -1, 0, 1, 2], np.float32)
    assert percentile_range(counts, edges, seen(0.5, 1.5), 100.0) == seen(0.5, 1.0)
