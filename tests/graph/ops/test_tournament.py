"""Rounds in which the first elements of a row are found."""

from __future__ import annotations

import pytest

from tilewright.graph.ops.tournament import rounds


@pytest.mark.parametrize(("size", "count"), [(8400, 100), (1000, 5), (50_000, 10), (1900, 40)])
def test_blocks_become_smaller_and_each_round_leaves_less(size: int, count: int) -> None:
    blocks = rounds(size, count)
    assert blocks
    assert list(blocks) == sorted(set(blocks), reverse=True)
    for block in blocks:
        assert count < -(-size // block)
        assert count * block < size
        size = count * block


@pytest.mark.parametrize(("size", "count"), [(40, 3), (1000, 1000), (1000, 0), (0, 0)])
def test_a_short_row_or_most_of_one_is_ranked_at_once(size: int, count: int) -> None:
    assert rounds(size, count) == ()
