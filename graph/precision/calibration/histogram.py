"""A histogram of a value, whose bins lie on powers of two.

The bins are of equal width and symmetric about 0, and reach to a power of two beyond the largest
magnitude. So an edge is exact in float32, a bin of a wider histogram is the sum of two bins, and
histograms of parts of the data add up to that of all of it, in whatever order. It takes the same
memory however the data grow. (onnxruntime's keeps the width of the first batch's bins: its number
of bins grows with the magnitudes of later batches.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
Float32s = NDArray[np.float32]

LEAST_EXPONENT = -100  # what is smaller counts as about 0
MOST_EXPONENT = 128  # of float32
_LARGEST = float(np.finfo(np.float32).max)
_BLOCK = 1 << 16  # numbers at a time, so that they stay in a cache
_MOST_STEPS = 40  # of halving, after which all is in the two bins about 0


@dataclass(frozen=True, slots=True, eq=False)
class ValueHistogram:
    """How many elements lie in each bin; the first bin begins at -2**exponent, the last one ends at
    2**exponent. counts: as many bins below 0 as above.
    """

    exponent: int
    counts: Counts

    @staticmethod
    def of(array: Float32s, bins: int) -> ValueHistogram:
        """The histogram of finite numbers in `bins` bins on either side of 0: at least so many, of
        both sides together, cover the magnitudes that there are.

        Requires: bins is a power of two.
        """
        flat = array.reshape(-1)
        peak = max(float(flat.max(initial=0.0)), -float(flat.min(initial=0.0)))
        exponent = max(int(np.frexp(peak)[1]), LEAST_EXPONENT) if peak else LEAST_EXPONENT
        scale = np.float32(bins * 2.0**-exponent)
        counts = np.zeros(2 * bins, np.int64)
        for start in range(0, flat.size, _BLOCK):
            counts += _counted(flat[start : start + _BLOCK], scale, bins)
        return ValueHistogram(exponent, counts)

    def merged(self, other: ValueHistogram) -> ValueHistogram:
        """The histogram of the elements of both, which have the same number of bins."""
        exponent = max(self.exponent, other.exponent)
        counts = [_widened(one.counts, exponent - one.exponent) for one in (self, other)]
        return ValueHistogram(exponent, counts[0] + counts[1])

    def __str__(self) -> str:
        counts, edges = self.trimmed()
        bins = f"{len(counts)} bins from {edges[0]:.4g} to {edges[-1]:.4g}"
        return f"histogram of {self.elements} elements in {bins}"

    __repr__ = __str__

    @property
    def elements(self) -> int:
        """The number of elements."""
        return int(self.counts.sum())

    def trimmed(self, most: int | None = None) -> tuple[Counts, Float32s]:
        """The counts of the bins that are not empty, with as many on the other side of 0, and their
        edges. most: of bins; neighbours are joined until there are no more.
        """
        half, exponent, counts = len(self.counts) // 2, self.exponent, self.counts
        while most is not None and 2 * _reach(counts) > most:
            counts, exponent = _widened(counts, 1), exponent + 1
        reach = max(_reach(counts), 1)
        width = 2.0**exponent / half
        edges = np.clip(np.arange(-reach, reach + 1) * width, -_LARGEST, _LARGEST)
        return counts[half - reach : half + reach], edges.astype(np.float32)


def _counted(numbers: Float32s, scale: np.float32, bins: int) -> Counts:
    """How many numbers lie in each bin. scale: a power of two."""
    places = numbers * scale
    np.floor(places, out=places)
    places[(numbers < 0) & (places == 0)] = -1  # however small it became
    places += bins
    return np.bincount(places.astype(np.intp), minlength=2 * bins)


def _reach(counts: Counts) -> int:
    """How many bins on either side of 0 hold all elements."""
    half = len(counts) // 2
    places = np.flatnonzero(counts)
    return max(half - int(places[0]), int(places[-1]) + 1 - half) if len(places) else 0


def _widened(counts: Counts, steps: int) -> Counts:
    """The counts in as many bins, each as wide as 2**steps of the old ones."""
    if not steps:
        return counts
    half, joined = len(counts) // 2, 1 << min(steps, _MOST_STEPS)
    starts = np.arange(0, half, joined)
    above = np.add.reduceat(counts[half:], starts)
    below = np.add.reduceat(counts[:half][::-1], starts)[::-1]
    wide = np.zeros_like(counts)
    wide[half : half + len(above)] = above
    wide[half - len(below) : half] = below
    return wide
