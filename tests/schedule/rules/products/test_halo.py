"""schedule/rules/products/halo.py: when the border of an image is copied with a few rows of it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target

from ...programs import conv
from ...rule_checks import check

# images of 24 x 3 of 8 channels do not fit into its level-2 cache; small weights and a few rows do
SMALL = replace(Target.parse("c:avx512"), l1_bytes=1 << 10, l2_bytes=8 << 10)


def is_copied_by_rows(func: PrimFunc, target: Target = SMALL) -> bool:
    """Whether the schedule of the rule, which is right, copies the data block by block."""
    text = str(check(func, target))
    return re.search(r"for h_0_0 in .*block\(\"X_pad\"", text, re.DOTALL) is not None


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("stride", "height", "batch"), [(1, 26, 1), (2, 24, 1), (2, 25, 2), (3, 40, 1)]
)
def test_rows_of_an_image_are_copied_where_they_are_read(
    stride: int, height: int, batch: int
) -> None:
    assert is_copied_by_rows(conv(height, 3, 8, 4, stride=stride, batch=batch))


def test_an_image_that_stays_in_the_cache_is_copied_at_once() -> None:
    assert not is_copied_by_rows(conv(12, 3, 8, 4, stride=2))


def test_an_image_that_every_panel_of_weights_reads_is_copied_at_once() -> None:
    assert not is_copied_by_rows(conv(24, 3, 8, 24, stride=2))


def test_rows_that_fill_the_cache_are_copied_at_once() -> None:
    assert not is_copied_by_rows(conv(24, 8, 8, 4, stride=2))


def test_an_image_of_fewer_blocks_than_threads_is_copied_at_once() -> None:
    assert not is_copied_by_rows(conv(24, 3, 8, 4, stride=2), replace(SMALL, threads=12))
