"""Which sizes to pad to: those that add the fewest rows over the runs of a log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class BucketChoice:
    """Sizes to pad to, the smallest first. added: the rows that this adds to all runs together;
    computed: those that are computed then.
    """

    sizes: tuple[int, ...]
    added: int
    computed: int

    @property
    def waste(self) -> float:
        """Which share of the rows that are computed were added."""
        return self.added / self.computed if self.computed else 0.0


def choose_buckets(runs: Mapping[int, int], count: int) -> BucketChoice:
    """The best `count` sizes, or as many as there are, for so many runs of each size, of which
    there is at least one.

    Some best choice has only sizes that occur, the largest among them, so that a dynamic programme
    over these finds it: the best j for the first k sizes end with size k, before which stand the
    best j - 1 for fewer.
    """
    sizes = np.array(sorted(runs), np.int64)
    weights = np.array([runs[size] for size in sizes.tolist()], np.int64)
    many = np.concatenate([[0], np.cumsum(weights)])  # runs of the first k sizes
    rows = np.concatenate([[0], np.cumsum(weights * sizes)])
    # added[k]: the fewest rows that the first k sizes get, out of reach where no size serves them
    added = np.full(len(sizes) + 1, np.iinfo(np.int64).max // 4)
    added[0] = 0
    starts: list[list[int]] = []
    for _ in range(min(count, len(sizes))):
        best, chosen = added.copy(), [0] * (len(sizes) + 1)
        for end in range(1, len(sizes) + 1):
            served = many[end] - many[:end]
            totals = added[:end] + sizes[end - 1] * served - (rows[end] - rows[:end])
            chosen[end] = int(totals.argmin())
            best[end] = totals[chosen[end]]
        added = best
        starts.append(chosen)
    found, end = [], len(sizes)
    for chosen in reversed(starts):
        if end:
            found.append(int(sizes[end - 1]))
            end = chosen[end]
    return BucketChoice(tuple(found[::-1]), int(added[-1]), int(added[-1] + rows[-1]))
