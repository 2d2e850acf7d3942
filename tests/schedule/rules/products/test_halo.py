"""schedule/rules/products/halo.py: when the border of an image is copied with a few rows of it, and
when in the order in which a sum walks it.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tilewright.schedule.rules.default import default_schedule
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target

from ...programs import conv
from ...rule_checks import check

# images of 24 x 3 of 8 channels do not fit into its level-2 cache; small weights and a few rows do
SMALL = replace(Target.parse("c:avx512"), l1_bytes=1 << 10, l2_bytes=8 << 10)


def stored_shape(sch: Schedule) -> tuple[int, ...]:
    """The shape in which a schedule stores the data."""
    (shape,) = (b.shape for b in sch.func.allocations if b.name == "X_pad")
    return shape


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


@pytest.mark.parametrize(("stride", "batch"), [(1, 1), (2, 2)])
def test_the_channels_of_a_part_of_a_sum_lie_together(stride: int, batch: int) -> None:
    sch = check(conv(4, 3, 128, 3, stride=stride, batch=batch), SMALL)
    assert stored_shape(sch) == (4, batch, 6, 5, 32)


def test_data_of_a_short_sum_are_stored_by_pixels() -> None:
    assert stored_shape(default_schedule(conv(4, 3, 112, 3), SMALL)) == (1, 6, 5, 112)


def test_data_that_rows_copy_where_they_read_them_are_stored_by_pixels() -> None:
    near = replace(SMALL, l2_bytes=256 << 10)
    sch = default_schedule(conv(24, 12, 128, 4, stride=2), near)
    assert re.search(r"for h_0_0 in .*block\(\"X_pad\"", str(sch), re.DOTALL)
    assert stored_shape(sch) == (1, 26, 14, 128)


def test_a_strict_sum_reads_its_data_as_they_lie() -> None:
    sch = default_schedule(conv(4, 3, 128, 3), SMALL, strict=True)
    assert stored_shape(sch) == (1, 6, 5, 128)
