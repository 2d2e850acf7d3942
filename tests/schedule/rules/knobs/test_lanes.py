"""How many elements a vector has: of windows of bytes as many as of 32 bits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from tilewright.schedule.rules.knobs.lanes import vector_lanes
from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import CpuTarget, Target
from tilewright.tir.te import te

from ..test_rules import TARGETS, check


def pool(kind: str, combine: Callable[..., Expr]) -> PrimFunc:
    """Windows of 3 by 3 over [9, 10, channels]."""
    x = te.placeholder((9, 10, 40), kind, name="x")
    i, j = te.reduce_axis(3, name="i"), te.reduce_axis(3, name="j")
    y = te.compute((7, 8, 40), lambda h, w, c: combine(x[h + i, w + j, c], axis=(i, j)), name="y")
    return te.func(x, y, name="pool")


def rows(kind: str) -> PrimFunc:
    """The largest number of each row."""
    x = te.placeholder((9, 40), kind, name="x")
    k = te.reduce_axis(40, name="k")
    y = te.compute((9,), lambda h: te.max(x[h, k], axis=k), name="y")
    return te.func(x, y, name="rows")


def lanes(func: PrimFunc, target: str) -> int:
    return vector_lanes(func.block("y"), CpuTarget.of(Target.parse(target)))


@pytest.mark.parametrize(("target", "expected"), [("c:avx512", 16), ("c:avx2", 8), ("c:neon", 4)])
@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_windows_of_bytes_have_the_lanes_of_32_bits(kind: str, target: str, expected: int) -> None:
    assert lanes(pool(kind, te.max), target) == expected
    assert lanes(pool(kind, te.min), target) == expected


def test_sums_and_rows_of_bytes_run_number_by_number() -> None:
    wrapping = pool("uint8", partial(te.sum, dtype="uint8"))
    assert lanes(wrapping, "c:avx512") == 1
    assert lanes(rows("uint8"), "c:avx512") == 1
    assert lanes(rows("float32"), "c:avx512") == 16


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("combine", [te.max, te.min])
def test_extremes_of_windows_of_bytes_are_right(
    kind: str, combine: Callable[..., Expr], target: str
) -> None:
    check(pool(kind, combine), target)
