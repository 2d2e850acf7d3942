"""The analytical time on a GPU: kernels are counted, and what binds each of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilewright.schedule.cost.grid import KERNEL_SECONDS
from tilewright.schedule.estimate import estimate
from tilewright.schedule.rules.default import default_schedule
from tilewright.schedule.schedule import Schedule
from tilewright.tir.instructions.warp_products import WARP_PRODUCTS
from tilewright.tir.target.target import GpuTarget, Target
from tilewright.tir.te import te

from ..grids import products_of_warps
from ..programs import chain, matmul, matmul_relu, pool, widened_matmul

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


@pytest.mark.parametrize(
    ("intrinsic", "rate"),
    [
        ("mma_m16n8k16_f16", 312e12),
        ("mma_m16n8k16_bf16", 312e12),
        ("mma_m16n8k8_tf32", 156e12),
        ("mma_m16n8k32_s8", 624e12),
    ],
)
def test_a_nest_that_uses_tensor_cores_has_their_rate(intrinsic: str, rate: float) -> None:
    unit = WARP_PRODUCTS[intrinsic]
    func = widened_matmul(2048, str(unit.element))
    steps = products_of_warps(intrinsic, unit.points)
    found = estimate(Schedule(func, TARGET).apply(steps), TARGET)
    assert found == pytest.approx(KERNEL_SECONDS + 2 * 2048**3 / rate)


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "int8"])
def test_a_rule_that_uses_tensor_cores_has_the_price_of_its_nest(kind: str) -> None:
    func = widened_matmul(2048, kind)
    made = default_schedule(func, TARGET)
    assert "mma_m16n8k" in str(made)
    assert estimate(func, TARGET) == estimate(made, TARGET)


def test_what_tensor_cores_do_not_compute_is_not_priced_at_their_rate() -> None:
    """float32 is rounded on them, so a rule waits until somebody asks; a strict build takes none
    that sums in its own way.
    """
    plain = KERNEL_SECONDS + 2 * 2048**3 / FLOPS
    assert estimate(widened_matmul(2048, "float32"), TARGET) == pytest.approx(plain)
    assert estimate(widened_matmul(2048, "float16"), TARGET, strict=True) == pytest.approx(plain)


def test_one_warp_reaches_a_part_of_what_tensor_cores_of_a_newer_gpu_do() -> None:
    hopper = Target.parse("cuda:sm_90a")
    found = estimate(widened_matmul(4096, "float16"), hopper) - KERNEL_SECONDS
    assert found == pytest.approx(2 * 4096**3 / (0.63 * 989e12))


def test_a_caller_may_mean_another_board() -> None:
    func = chain(4096, 4096)
    slower = replace(GpuTarget.of(TARGET), gb_per_s=2039 / 2)
    found, known = estimate(func, slower) - KERNEL_SECONDS, estimate(func, TARGET) - KERNEL_SECONDS
    assert found == pytest.approx(2 * known)
