"""schedule/rules/shape/windows.py: which padding is taken into the windows that read it."""

from __future__ import annotations

import pytest

from tilewright.schedule.estimate import estimate
from tilewright.schedule.rules.shape.windows import is_depthwise, is_pool
from tilewright.tir.func import PrimFunc
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
