"""Histograms on powers of two: exact, and the same in whatever order they are added up."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tilewright.graph.precision.calibration.histogram import (
    LEAST_EXPONENT,
    MOST_EXPONENT,
    Float32s,
    ValueHistogram,
)

ANY = arrays(
    np.float32,
    st.integers(0, 30),
    elements=st.floats(allow_nan=False, allow_infinity=False, width=32),
)


def counted(array: Float32s, exponent: int, bins: int) -> list[int]:
    """The histogram by exact arithmetic, number by number."""
    counts = [0] * (2 * bins)
    for number in map(float, array):
        place = number * bins / 2.0**exponent  # exact in float64
        counts[bins + int(np.floor(place))] += 1
    return counts


def test_a_small_histogram_is_as_counted_by_hand() -> None:
    found = ValueHistogram.of(np.array([0, 0.1, -0.1, 0.9, -3.0, 3.9], np.float32), 4)
    assert found.exponent == 2
    assert list(found.counts) == [0, 1, 0, 1, 3, 0, 0, 1]
    counts, edges = found.trimmed()
    assert list(counts) == [0, 1, 0, 1, 3, 0, 0, 1]
    assert list(edges) == [-4, -3, -2, -1, 0, 1, 2, 3, 4]
    counts, edges = found.trimmed(4)
    assert (list(counts), list(edges)) == ([1, 1, 3, 1], [-4, -2, 0, 2, 4])
    assert str(found) == "histogram of 6 elements in 8 bins from -4 to 4"


def test_bins_that_are_empty_on_both_sides_are_trimmed() -> None:
    found = ValueHistogram.of(np.array([1.125, -0.5], np.float32), 16)
    counts, edges = found.trimmed()
    assert (found.exponent, len(counts), edges[0], edges[-1]) == (1, 20, -1.25, 1.25)
    assert found.elements == counts.sum() == 2


@given(array=ANY, bins=st.sampled_from([1, 2, 8, 128]))
def test_each_number_is_counted_in_its_bin(array: Float32s, bins: int) -> None:
    found = ValueHistogram.of(array, bins)
    assert LEAST_EXPONENT <= found.exponent <= MOST_EXPONENT
    assert list(found.counts) == counted(array, found.exponent, bins)


@pytest.mark.parametrize("number", [1.1754944e-38, 1e-45])
def test_what_becomes_0_when_it_is_scaled_keeps_its_side(number: float) -> None:
    numbers = np.array([number, -number, 2.0**23], np.float32)
    assert list(ValueHistogram.of(numbers, 1).counts) == [1, 2]
    small = ValueHistogram.of(numbers[:2], 1).merged(ValueHistogram.of(numbers[2:], 1))
    assert list(small.counts) == [1, 2]


@given(first=ANY, second=ANY, bins=st.sampled_from([1, 2, 8, 128]))
def test_a_merged_histogram_is_that_of_all_elements(
    first: Float32s, second: Float32s, bins: int
) -> None:
    whole = ValueHistogram.of(np.concatenate([first, second]), bins)
    parts = [ValueHistogram.of(one, bins) for one in (first, second)]
    for a, b in (parts, parts[::-1]):
        merged = a.merged(b)
        assert merged.exponent == whole.exponent
        assert np.array_equal(merged.counts, whole.counts)


def test_it_has_the_bins_of_numpy() -> None:
    array = np.random.default_rng(0).standard_normal(200_001).astype(np.float32)
    found = ValueHistogram.of(array, 64)
    expected, _ = np.histogram(array, 128, range=(-(2.0**found.exponent), 2.0**found.exponent))
    assert np.array_equal(found.counts, expected)


@pytest.mark.parametrize("order", [1, -1])
def test_memory_is_bounded_however_magnitudes_differ(order: int) -> None:
    sizes = [1e-30, 1.0, 1e10, 3.4e38][::order]
    parts = [ValueHistogram.of(np.full(5, size, np.float32), 8) for size in sizes]
    whole = reduce(ValueHistogram.merged, parts)
    assert list(whole.counts) == [0] * 8 + [15] + [0] * 6 + [5]
    counts, edges = whole.trimmed()
    assert len(counts) == 16
    assert np.isfinite(edges).all()


def test_no_elements_have_a_histogram_too() -> None:
    found = ValueHistogram.of(np.zeros(0, np.float32), 8)
    assert found.elements == 0
    assert found.merged(ValueHistogram.of(np.ones(2, np.float32), 8)).elements == 2
    assert list(found.trimmed()[0]) == [0, 0]
