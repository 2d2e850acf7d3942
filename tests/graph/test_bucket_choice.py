"""graph/bucket_choice.py: the best sizes to pad to, beside all choices."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.graph.bucket_choice import BucketChoice, choose_buckets


def added(runs: dict[int, int], sizes: tuple[int, ...]) -> int:
    """The rows that are added where each run is padded to the smallest size that holds it."""
    return sum(often * (min(s for s in sizes if s >= n) - n) for n, often in runs.items())


def best(runs: dict[int, int], count: int) -> int:
    largest, others = max(runs), sorted(runs)[:-1]
    chosen = combinations(others, min(count, len(runs)) - 1)
    return min(added(runs, (*some, largest)) for some in chosen)


@given(
    st.dictionaries(st.integers(1, 40), st.integers(1, 9), min_size=1, max_size=8),
    st.integers(1, 9),
)
def test_no_other_choice_adds_fewer_rows(runs: dict[int, int], count: int) -> None:
    choice = choose_buckets(runs, count)
    assert choice.added == added(runs, choice.sizes) == best(runs, count)
    assert choice.computed == choice.added + sum(n * often for n, often in runs.items())
    assert len(choice.sizes) == min(count, len(runs))
    assert choice.sizes == tuple(sorted(choice.sizes))


@pytest.mark.parametrize(
    ("runs", "count", "sizes", "added"),
    [
        ({1: 10, 2: 1, 8: 1}, 1, (8,), 76),
        ({1: 10, 2: 1, 8: 1}, 2, (1, 8), 6),
        ({1: 10, 2: 1, 8: 1}, 3, (1, 2, 8), 0),
        ({3: 5}, 4, (3,), 0),
    ],
)
def test_what_is_chosen(
    runs: dict[int, int], count: int, sizes: tuple[int, ...], added: int
) -> None:
    computed = added + sum(n * often for n, often in runs.items())
    choice = choose_buckets(runs, count)
    assert choice == BucketChoice(sizes, added, computed)
    assert choice.waste == added / computed


def test_many_sizes_take_little_time() -> None:
    assert len(choose_buckets({n: 1 + n % 7 for n in range(1, 2001)}, 16).sizes) == 16
