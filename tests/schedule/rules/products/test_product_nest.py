"""schedule/rules/products/product_nest.py: where the loop over panels stands."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tilewright.schedule.rules.default import default_schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target

from ...programs import conv

IMAGE = 30 * 30 * 4  # bytes, with its border
BASE = replace(Target.parse("c:avx512"), l1_bytes=1 << 10)


def loops_outside(func: PrimFunc, target: Target) -> list[str]:
    """The loops of the product down to that over panels, o_0."""
    text = str(default_schedule(func, target).func)
    nest = text.partition('block("W_packed"')[2]
    loops = re.findall(r"for (\w+) in ", nest)
    return loops[: loops.index("o_0") + 1]


@pytest.mark.parametrize(
    ("batch", "cache", "expected"),
    [
        (2, 2 * IMAGE, ["n", "o_0"]),
        (2, 2 * IMAGE - 1, ["o_0"]),  # an image does not stay
        (1, 2 * IMAGE, ["o_0"]),
        (2, 4 * IMAGE, ["n", "h_0", "o_0"]),  # all weights stay
    ],
)
def test_an_image_stays_in_the_cache_while_panels_pass(
    batch: int, cache: int, expected: list[str]
) -> None:
    func = conv(28, 28, 1, 160, stride=2, batch=batch)
    assert loops_outside(func, replace(BASE, l2_bytes=cache)) == expected


@pytest.mark.parametrize(
    ("cache", "outputs", "first"),
    [
        (3 * IMAGE, 640, "o_0"),  # all weights do not stay anyway
        (64 * IMAGE, 640, "o_0"),
        (64 * IMAGE, 160, "h_0"),  # fewer weights than threads read of each other's rows
        (IMAGE, 160, "o_0"),
    ],
)
def test_many_weights_pass_once_where_the_image_stays(cache: int, outputs: int, first: str) -> None:
    """They are asked for a panel early, between the taps of windows as well."""
    target = replace(BASE, l2_bytes=cache, threads=2)
    sch = default_schedule(conv(28, 28, 8, outputs), target)
    nest = str(sch.func).partition('block("W_packed"')[2]
    loops = [loop for loop in re.findall(r"for (\w+) in ", nest) if loop in ("o_0", "h_0")]
    assert loops[0] == first
    assert ("prefetch(W_packed" in nest) == (first == "o_0")
