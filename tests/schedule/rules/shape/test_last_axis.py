"""What a pointwise block does along its last axis: where its indices turn, and rows that it lays
side by side.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tilewright as tw
from tilewright.schedule.rules.shape.last_axis import (
    is_of_few_rows,
    is_one_row,
    steps_unevenly,
    turning_points,
)
from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.te import te

from ...rule_checks import check


def folded(size: int, before: int, after: int, place: Callable[[Expr], Expr]) -> PrimFunc:
    """Rows of X with elements before and behind them."""
    x = te.placeholder((3, size), "float32", name="X")
    shape = (3, before + size + after)
    return te.func(
        x, te.compute(shape, lambda i, j: x[i, place(j - before)], name="Y"), name="folded"
    )


def nearest(size: int) -> Callable[[Expr], Expr]:
    return lambda j: te.maximum(te.minimum(j, size - 1), 0)


def mirrored(size: int) -> Callable[[Expr], Expr]:
    def place(j: Expr) -> Expr:
        away = te.maximum(j, -j)
        return te.minimum(away, 2 * (size - 1) - away)

    return place


def interleaved(rows: int, columns: int) -> PrimFunc:
    x = te.placeholder((rows, columns), "float32", name="X")
    y = te.compute((columns, rows), lambda i, j: x[j, i] * 2.0, name="Y")
    return te.func(x, y, name="interleaved")


@pytest.mark.parametrize(
    ("func", "points"),
    [
        (folded(40, 3, 5, nearest(40)), (4, 43)),
        (folded(40, 3, 5, mirrored(40)), (4, 43)),
        (folded(40, 0, 5, nearest(40)), (40,)),
        (folded(40, 0, 1, nearest(40)), (40,)),
        (folded(5, 3, 0, mirrored(5)), (4,)),
        (folded(40, 0, 0, lambda j: 39 - j), ()),
    ],
)
def test_loops_are_cut_where_another_side_of_an_index_counts(
    func: PrimFunc, points: tuple[int, ...]
) -> None:
    (block,) = func.blocks
    assert turning_points(block, block.iters[-1]) == points


@pytest.mark.parametrize("target", ["c:avx2", "c:avx512"])
@pytest.mark.parametrize("fold", [nearest, mirrored])
def test_what_is_folded_at_its_ends_is_read_in_vectors_between_them(
    fold: Callable[[int], Callable[[Expr], Expr]], target: str
) -> None:
    sch = check(folded(40, 3, 5, fold(40)), target)
    source = tw.build(sch, target).source
    assert "gather" not in source
    assert "loadu" in source


def test_a_choice_that_more_than_its_axis_decides_cuts_no_loop() -> None:
    x = te.placeholder((40,), "float32", name="X")
    y = te.compute((20, 40), lambda i, j: x[te.minimum(j, i)], name="Y")
    (block,) = te.func(x, y, name="f").blocks
    assert turning_points(block, block.iters[-1]) == ()


@pytest.mark.parametrize(("target", "rows"), [("c:avx2", 3), ("c:avx512", 3), ("c:avx512", 5)])
def test_a_few_rows_are_laid_side_by_side_by_shuffles(target: str, rows: int) -> None:
    func = interleaved(rows, 50)
    (block,) = func.blocks
    assert is_of_few_rows(block)
    assert not is_one_row(block)
    sch = check(func, target)
    lanes = 8 if target == "c:avx2" else 16
    assert any(
        step.endswith(f'factors=(None, {rows}, {lanes}), tail="mask")') for step in sch.steps
    )
    assert "gather" not in tw.build(sch, target).source.split("for (")[1]


def test_where_there_are_no_such_shuffles_rows_stay_rows() -> None:
    for target in ("c:neon", "c:scalar"):
        assert not any("fuse" in step for step in check(interleaved(3, 50), target).steps)


def test_what_is_no_few_rows() -> None:
    x = te.placeholder((40, 3), "float32", name="X")
    for element in (
        lambda i, j: x[i, j],
        lambda i, j: x[39 - i, j],
        lambda i, j: te.select(j < 1, x[i, j], 0.0),
    ):
        (block,) = te.func(x, te.compute((40, 3), element, name="Y"), name="f").blocks
        assert not is_of_few_rows(block)


def stretched(count: int, slope: int, divisor: int) -> PrimFunc:
    """Each element of a row of 20 a few times."""
    x = te.placeholder((3, 20), "float32", name="X")
    y = te.compute((3, count), lambda i, j: x[i, j * slope // divisor], name="Y")
    return te.func(x, y, name="stretched")


def test_a_row_whose_vectors_read_at_uneven_distances_is_written_out() -> None:
    func = stretched(56, 19, 55)
    (block,) = func.blocks
    assert steps_unevenly(block)
    sch = check(func, "c:avx512")
    assert "unroll(j_0)" in sch.steps
    assert "gather" not in tw.build(sch, "c:avx512").source
    assert "unroll(j_0)" not in check(func, "c:scalar").steps


def test_a_row_of_many_vectors_or_of_even_distances_is_not() -> None:
    assert "unroll(j_0)" not in check(stretched(160, 1, 8), "c:avx512").steps
    (block,) = stretched(20, 1, 1).blocks
    assert not steps_unevenly(block)
