"""Products that a warp computes together: their text, that they are right and hit no bank twice,
what NVRTC makes of them, what is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

import tilewright as tw
from tilewright.runtime.cuda.emulator.emulated_code import EmulatedCode
from tilewright.runtime.cuda.toolchain.compile import compile_cuda
from tilewright.runtime.cuda.toolchain.inspection import instruction_mix, resources
from tilewright.runtime.kernel import Kernel
from tilewright.schedule.errors import ScheduleError
from tilewright.schedule.schedule import Schedule
from tilewright.tir.errors import TargetError
from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.instructions.warp_products import WARP_PRODUCTS
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

from ...schedule.grids import Steps, products_of_warps

pytestmark = pytest.mark.sampled(7)

A100 = Target.parse("cuda:sm_80")


@dataclass(frozen=True, slots=True)
class Case:
    """A product of m x k and k x n elements, and how B lies."""

    intrinsic: str
    transposed: bool

    def func(self, m: int, n: int, k: int) -> PrimFunc:
        product = WARP_PRODUCTS[self.intrinsic]
        element, total = str(product.element), str(product.total)
        a = te.placeholder((m, k), element, name="A")
        b = te.placeholder((n, k) if self.transposed else (k, n), element, name="B")
        q = te.reduce_axis(k, name="k")

        def wide(value: Expr) -> Expr:
            return value if element == total else te.cast(value, total)

        def term(i: Expr, j: Expr) -> Expr:
            return wide(a[i, q]) * wide(b[j, q] if self.transposed else b[q, j])

        c = te.compute((m, n), lambda i, j: te.sum(term(i, j), axis=q), name="C")
        return te.func(a, b, c, name="product")

    def steps(self) -> Steps:
        points = WARP_PRODUCTS[self.intrinsic].points
        return products_of_warps(self.intrinsic, points, transposed=self.transposed)

    def arrays(self, m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A and B of small integers, and their product, which is exact."""
        random = np.random.default_rng(1)
        kind = WARP_PRODUCTS[self.intrinsic].element.numpy
        shape = (n, k) if self.transposed else (k, n)
        a, b = (random.integers(-4, 5, s).astype(kind) for s in ((m, k), shape))
        whole = a.astype(np.float64) @ (b.T if self.transposed else b).astype(np.float64)
        return a, b, whole.astype(WARP_PRODUCTS[self.intrinsic].total.numpy)


CASES = [Case(name, transposed) for name in WARP_PRODUCTS for transposed in (False, True)]
SIZES = 70, 50, 72


@cache
def kernel(case: Case) -> Kernel:
    return tw.build(Schedule(case.func(*SIZES), A100).apply(case.steps()), A100)


def test_a_product_of_warps_reads_as_a_person_would_have_written_it(
    golden: Callable[[str, str], None],
) -> None:
    steps = products_of_warps("mma_m16n8k16_f16", 16, warps=(1, 1), tiles=(1, 2))
    func = Case("mma_m16n8k16_f16", transposed=True).func(16, 16, 64)
    golden("cuda/product_of_warps.cu", tw.build(Schedule(func, A100).apply(steps), A100).source)


@pytest.mark.needs_cxx
@pytest.mark.parametrize("case", CASES, ids=str)
def test_emulated_it_is_right_and_meets_no_bank_twice(case: Case) -> None:
    built = kernel(case)
    assert built.proof is not None
    assert built.proof.status == "proved"
    emulated = tw.emulated(built, checked=True)
    a, b, expected = case.arrays(*SIZES)
    np.testing.assert_array_equal(emulated(a, b), expected)
    assert isinstance(emulated.code, EmulatedCode)
    report = emulated.code.report
    assert all(barrier.needed for barrier in report.barriers)
    rows = [line for line in report.table.splitlines() if "ldmatrix" in line]
    by_rows = case.transposed or WARP_PRODUCTS[case.intrinsic].element.bytes == 2
    assert any("ldmatrix_x4" in line for line in rows)
    assert any("ldmatrix_x2" in line for line in rows) == by_rows
    assert all("1 for the worst" in line for line in rows)


@pytest.mark.usefixtures("cubin_tools")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_nvrtc_makes_instructions_of_it_without_a_spill(case: Case, arch: str) -> None:
    cubin = compile_cuda(kernel(case).source, arch, name="product")
    (used,) = resources(cubin).values()
    assert used.local_bytes == 0
    (mix,) = instruction_mix(cubin).values()
    name = "IMMA" if case.intrinsic.endswith("s8") else "HMMA"
    products = sum(count for one, count in mix.counts.items() if one.startswith(name))
    assert products == 2 * 2 * 4  # steps of a slice, tiles of a warp


def test_a_block_whose_threads_are_no_warps_is_refused() -> None:
    steps = products_of_warps("mma_m16n8k16_f16", 16, warps=(1, 1), tiles=(1, 1), fetching=64)
    func = Case("mma_m16n8k16_f16", transposed=False).func(16, 8, 32)
    sch = Schedule(func, A100).apply(steps)
    with pytest.raises(TargetError) as caught:
        tw.build(sch, A100)
    assert str(caught.value) == (
        "TargetError: cuda: a warp of 'product' computes 'mma_m16n8k16_f16' together, in a block "
        "with 64 threads along threadIdx.x; expected 32, one warp. [cuda-warp]\n"
        "  Hint: bind other warps to threadIdx.y and threadIdx.z, also where they copy."
    )


def test_a_strict_build_refuses_its_roundings() -> None:
    case = Case("mma_m16n8k8_tf32", transposed=False)
    sch = Schedule(case.func(*SIZES), A100).apply(case.steps())
    with pytest.raises(ScheduleError) as caught:
        tw.build(sch, A100, strict=True)
    assert str(caught.value).splitlines()[0] == (
        "ScheduleError: build: loop 'i_3' of 'product' is computed by 'mma_m16n8k8_tf32', which "
        "rounds the factors to 11 significant bits; expected the order and the roundings of the "
        "definition, since the build is strict. [strict-intrinsic]"
    )
