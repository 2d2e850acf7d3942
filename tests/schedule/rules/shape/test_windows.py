"""schedule/rules/shape/windows.py: which padding is taken into the windows that read it."""

from __future__ import annotations

import pytest

from tilewright.schedule.estimate import estimate
from tilewright.schedule.rules.shape.windows import is_border, is_depthwise, is_pool
from tilewright.tir.dim import Dim
from tilewright.tir.func import PrimFunc
from tilewright.tir.sizes import as_expression, size_of
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

from ...programs import pool
from ...rule_checks import check

AVX512 = Target.parse("c:avx512")


def squares() -> PrimFunc:
    """Sums of squares over windows."""
    x = te.placeholder((9, 8, 20), "float32", name="X")
    r, s = te.reduce_axis(3, name="r"), te.reduce_axis(3, name="s")
    y = te.compute(
        (7, 6, 20),
        lambda h, v, c: te.sum(x[h + r, v + s, c] * x[h + r, v + s, c], axis=(r, s)),
        name="Y",
    )
    return te.func(x, y, name="squares")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("pad", [0, 1])
@pytest.mark.parametrize("stride", [1, 2])
def test_padding_is_taken_into_small_windows(pad: int, stride: int) -> None:
    sch = check(pool(9, 22, 20, pad=pad, stride=stride), AVX512)
    assert sch.blocks() == ("Y", "Y_reg_out")


def test_padding_of_large_windows_stays_a_copy() -> None:
    sch = check(pool(9, 8, 20, kernel=4, pad=1), AVX512)
    assert "X_pad" in sch.blocks()


def test_a_window_that_takes_its_padding_in_is_one_pass() -> None:
    whole, copied = (
        estimate(pool(56, 56, 64, kernel=kernel, pad=1, stride=1), AVX512) for kernel in (3, 4)
    )
    assert whole < copied


def test_a_pool_reads_data_alone_and_slides() -> None:
    assert is_pool(pool(9, 8, 20, pad=1).blocks[-1])
    assert not is_depthwise(pool(9, 8, 20, pad=1).blocks[-1])
    assert not is_pool(squares().blocks[-1])
    assert not is_pool(pool(9, 8, 20, kernel=4).blocks[-1])


@pytest.mark.parametrize("rows", [6, Dim("rows", low=1, high=9)])
@pytest.mark.parametrize(("more", "is_narrow"), [(2, True), (6, True), (7, False)])
def test_a_border_is_narrow_around_an_open_size_too(
    rows: int | Dim, more: int, is_narrow: bool
) -> None:
    x = te.placeholder((3, rows, 8), "float32", name="X")
    size = rows if isinstance(rows, int) else size_of(rows)
    padded = te.compute(
        (3, size + more, 8),
        lambda n, h, c: te.select(
            te.all_of(h >= 1, h < as_expression(size) + 1), x[n, h - 1, c], 0.0
        ),
        name="pad",
    )
    y = te.compute((3, size + more, 8), lambda n, h, c: padded[n, h, c] * 2.0, name="Y")
    sizes = [] if isinstance(rows, int) else te.dims_of_tensors(padded)
    func = te.func(x, y, name="padded", sizes=[dim for dim in sizes if dim is not rows])
    assert is_border(func, func.block("pad")) is is_narrow
