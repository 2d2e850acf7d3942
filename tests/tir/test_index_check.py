"""What the word of a check says about the values that it was made of."""

from __future__ import annotations

import pytest

from tilewright.tir.index_check import IndexCheck

MASK = (1 << 64) - 1


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([], None),
        ([0], None),
        ([0, 9, 3], None),
        ([10], 10),
        ([3, 12, 11], 12),
        ([-1], -1),
        ([99, -5, 3], -5),  # read as unsigned, a negative value is the largest
        ([-(1 << 63)], -(1 << 63)),
        ([(1 << 63) - 1], (1 << 63) - 1),
    ],
)
def test_the_largest_value_as_uint64_tells_whether_one_lay_outside(
    values: list[int], found: int | None
) -> None:
    word = max((value & MASK for value in values), default=0)
    assert IndexCheck("token", 10).failure(word) == found


def test_of_an_extent_that_a_call_decides_the_word_holds_what_lies_outside_alone() -> None:
    closed, opened = IndexCheck("token", 10), IndexCheck("token", "n")
    assert (closed.fails_from, closed.most) == (10, "9")
    assert (opened.fails_from, opened.most) == (1, "n - 1")
    assert [opened.failure(word) for word in (0, 1, 10, -1 & MASK)] == [None, 1, 10, -1]
