"""When a group may be computed otherwise than its operators say."""

from __future__ import annotations

import pytest

from tilewright.graph.kernels.algorithms import ALGORITHMS, ROUNDING_MORE, Algorithm
from tilewright.graph.kernels.fused_kernel import FusedKernel, KernelOperand, KernelStep
from tilewright.graph.ops.activation import Relu
from tilewright.graph.types import TensorType
from tilewright.tir.target.target import Target

CPU, GPU = Target.parse("c:avx512"), Target.parse("cuda:sm_90a")
RELU = FusedKernel(
    (KernelOperand("x", TensorType("float32", (4, 5))),), (KernelStep(Relu(), (0,)),)
)


def same(what: FusedKernel) -> FusedKernel | None:
    return what


def admitted(algorithm: Algorithm, *, gpu: bool = False, strict: bool = False) -> bool:
    found = algorithm.admit(RELU, GPU if gpu else CPU, strict, 1e-3)
    return found is not None


def test_a_strict_build_takes_only_what_keeps_the_order() -> None:
    assert admitted(Algorithm("a", "by a", same))
    assert not admitted(Algorithm("a", "by a", same), strict=True)
    assert admitted(Algorithm("a", "by a", same, keeps_order=True), strict=True)


def test_one_for_gpus_is_for_these_alone() -> None:
    assert not admitted(Algorithm("a", "by a", same, gpu=True))
    assert admitted(Algorithm("a", "by a", same, gpu=True), gpu=True)


def test_one_for_cpus_is_for_these_alone() -> None:
    assert admitted(Algorithm("a", "by a", same, cpu=True))
    assert not admitted(Algorithm("a", "by a", same, cpu=True), gpu=True)


@pytest.mark.parametrize(("error", "expected"), [(1e-3, True), (2e-3, False)])
def test_one_that_rounds_more_needs_a_tolerance(error: float, expected: bool) -> None:
    algorithm = Algorithm("a", "by a", same, expected_error=lambda _: error)
    assert admitted(algorithm) is expected
    assert algorithm.admit(RELU, CPU, False, None) is None
    assert algorithm.error(RELU) == error


def test_what_cannot_be_computed_so_is_not() -> None:
    for algorithm in ALGORITHMS.values():
        assert algorithm.admit(RELU, GPU, False, 1.0) is None


def test_one_of_them_rounds_more() -> None:
    assert set(ROUNDING_MORE) == {"winograd-4x4"}
    assert ALGORITHMS["matmul"].error(RELU) == 0.0
