"""The analytical time on a GPU: kernels are counted, and what binds each of them."""

from __future__ import annotations

import pytest

from tilewright.schedule.cost.grid import KERNEL_SECONDS
from tilewright.schedule.estimate import estimate
from tilewright.tir.target import Target
from tilewright.tir.te import te

from ..programs import chain, matmul, matmul_relu, pool

TARGET = Target.parse("cuda:sm_80")
FLOPS, BYTES = 19.5e12, 2039e9


def test_a_product_is_bound_by_arithmetic_a_chain_by_memory() -> None:
    product, moved = 2 * 1024**3 / FLOPS, 4 * 4096 * 4096
    assert estimate(matmul(1024, 1024, 1024), TARGET) == pytest.approx(KERNEL_SECONDS + product)
    found = estimate(chain(4096, 4096), TARGET) - KERNEL_SECONDS
    assert 2 * moved / BYTES <= found <= 4 * moved / BYTES


def test_what_is_pointwise_behind_a_sum_is_in_its_kernel() -> None:
    apart = estimate(matmul(64, 64, 64), TARGET)
    assert estimate(matmul_relu(64, 64, 64), TARGET) < apart + KERNEL_SECONDS / 2


def test_a_row_is_one_kernel() -> None:
    x = te.placeholder((64, 64), "float32", name="X")
    k = te.reduce_axis(64, name="k")
    s = te.compute((64,), lambda i: te.sum(x[i, k], axis=k), name="S")
    y = te.compute((64, 64), lambda i, j: x[i, j] / s[i], name="Y")
    func = te.func(x, y, name="shares")
    assert KERNEL_SECONDS < estimate(func, TARGET) < 2 * KERNEL_SECONDS


def test_padding_is_no_kernel() -> None:
    assert estimate(pool(8, 8, 4, kernel=3, pad=1, stride=1), TARGET) < 2 * KERNEL_SECONDS
