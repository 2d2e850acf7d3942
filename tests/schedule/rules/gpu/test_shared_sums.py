"""schedule/rules/gpu/shared_sums.py: long sums of few elements, on the warps of a block."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright.schedule.rules.gpu.shared_sums import WARPS, has_shared_sums
from tilewright.schedule.trace.decisions import Random
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

from ...programs import gelu_matmul, matmul, matmul_relu
from ...rule_checks import Answered, check
from .test_rules import softmax, total

A100 = Target.parse("cuda:sm_80")


def columns(terms: int, rows: int, width: int) -> PrimFunc:
    """Sums along the first axis."""
    x = te.placeholder((terms, rows, width), "float32", name="X")
    k = te.reduce_axis(terms, name="k")
    s = te.compute((rows, width), lambda i, j: te.sum(x[k, i, j], axis=k), name="S")
    return te.func(x, s, name="columns")


def squares(terms: int, others: int, width: int) -> PrimFunc:
    """Sums along two axes, of which the second is the longer one."""
    x = te.placeholder((others, terms, width), "float32", name="X")
    i, k = te.reduce_axis(others, name="i"), te.reduce_axis(terms, name="k")
    s = te.compute((width,), lambda j: te.sum(x[i, k, j] * x[i, k, j], axis=(i, k)), name="S")
    return te.func(x, s, name="squares")


FUNCTIONS: dict[str, Callable[[], PrimFunc]] = {
    "a row of a product": lambda: matmul(1, 40, 64),
    "a few rows": lambda: matmul(3, 70, 36),
    "and what follows": lambda: matmul_relu(2, 33, 30),
    "what follows in several steps": lambda: gelu_matmul(3, 40, 32),
    "weights that are constants": lambda: matmul(2, 40, 48, constant=True),
    "fewer elements than lanes": lambda: matmul(1, 10, 64),
    "rows of blocks of their own": lambda: columns(32, 9, 40),
    "two axes": lambda: squares(40, 3, 36),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_sums_are_right(name: str) -> None:
    check(FUNCTIONS[name](), A100)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("warps", WARPS[:3])
def test_any_number_of_warps_shares_a_sum(warps: int) -> None:
    answered = Answered({"warps of a sum of C": warps})
    check(matmul_relu(2, 40, 65), A100, answered)
    assert answered.met == {"warps of a sum of C"}


def test_other_answers_are_right_too() -> None:
    for seed in range(2):
        check(matmul_relu(1, 40, 70), A100, Random(seed))


def test_sums_of_many_elements_or_few_terms_are_not_shared() -> None:
    shared = {"few": matmul(1, 40, 64), "many": matmul(64, 1024, 64), "short": matmul(1, 40, 15)}
    found = {name: has_shared_sums(func.blocks[0]) for name, func in shared.items()}
    assert found == {"few": True, "many": False, "short": False}
    assert not any(has_shared_sums(block) for block in (*total(77).blocks, softmax(2, 9).blocks[1]))


@pytest.mark.needs_cxx
def test_each_weight_is_read_once_by_one_kernel_with_one_barrier() -> None:
    func = matmul_relu(3, 64, 96)
    kernel = tw.build(func, A100)
    assert kernel.source.count("__global__") == kernel.source.count("__syncthreads();") == 1
    emulated = tw.emulated(kernel, checked=True)
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(-4, 5, p.buffer.shape).astype(np.float32) for p in func.parameters[:3])
    assert np.array_equal(emulated(a, b, c), np.maximum(a @ b + c, 0))
    report = emulated.code.report
    assert sum(s.parts for s in report.sites if s.buffer == "B") == 64 * 96 * 4 // 32
    assert all(site.bank_conflict_degree == 1 for site in report.sites)


def test_strict_builds_sum_in_order() -> None:
    assert tw.build(matmul(1, 40, 64), A100, strict=True).proof.status == "proved"
