"""Passes in order: verified where that is asked for, timed, named in errors."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from tilewright.codegen.lower.loops.unroll import Unroll
from tilewright.codegen.lower.lower import contraction, lower, lower_parts, lower_to_nest
from tilewright.codegen.lower.passes import NEST, cpu, gpu, lowering
from tilewright.codegen.lower.run_passes import Pipeline, Verified, run_passes
from tilewright.driver.lower import choose_schedule
from tilewright.schedule.schedule import Schedule
from tilewright.tir.errors import TargetError
from tilewright.tir.func import PrimFunc
from tilewright.tir.parsing.parser import parse
from tilewright.tir.stmt import For
from tilewright.tir.target.target import Target
from tilewright.tir.verify.verify import VerificationError

from ...driver.golden_kernels import GOLDEN
from ...driver.kernels import KERNELS

pytestmark = pytest.mark.sampled(5)

AVX2 = Target.parse("c:avx2")
A100 = Target.parse("cuda:sm_80")
TEXT = (
    "def f(A: float32[9], C: output(float32[9])):\n    for i in unrolled(9):\n        C[i] = A[i]\n"
)
OF_CPUS = ("network", "scatter", "suppression")  # kernels that no rule of a GPU takes
LOWERED_TEXT = (
    "def f(A: float32[16], C: output(float32[16])):\n    C[ramp(0, 1, 16)] = A[ramp(0, 1, 16)]\n"
)


@dataclass(frozen=True)
class Forget:
    """A broken pass: the body of a loop without the loop."""

    def __call__(self, func: PrimFunc) -> PrimFunc:
        assert isinstance(func.body, For)
        return func.with_body(func.body.body)


@dataclass(frozen=True)
class Stumble:
    """A broken pass: it expects what is not there."""

    def __call__(self, func: PrimFunc) -> PrimFunc:
        raise KeyError("stumbled")


def with_first(pipeline: Pipeline, step: object) -> Pipeline:
    assert callable(step)
    return replace(pipeline, passes=(step, *pipeline.passes))


@pytest.mark.parametrize("target", [AVX2, A100])
def test_each_pass_is_watched_in_order(target: Target) -> None:
    seen: list[str] = []

    def watch(name: str, func: PrimFunc, seconds: float) -> None:
        assert seconds >= 0
        seen.append(name)

    result = run_passes(parse(TEXT), lowering(target), watch=watch)
    assert seen == [type(step).__name__ for step in lowering(target).passes]
    assert len(str(result).splitlines()) == 10


def test_a_gpu_has_passes_of_its_own_where_it_has_threads_and_no_vectors() -> None:
    of_cpu, of_gpu = (
        [type(step).__name__ for step in pipeline.passes] for pipeline in (cpu(AVX2), gpu(A100))
    )
    assert of_gpu[:2] == ["JoinThreads", "CopyAtOnce"]
    # a GPU searches, has no registers of vectors, divides floats of 64 bits slowly, and its
    # compiler keeps running values in registers
    alone = {"CarriedLoads", "ExpandScatters", "ExpandSuppressions", "IntegerQuotients"}
    alone |= {"RowPairs", "ShuffledLoads", "TransposeTiles"}
    assert alone <= {*of_cpu}
    shared = ["WideAccesses" if n == "Vectorize" else n for n in of_cpu if n not in alone]
    of_gpu.remove("MaskedFloats")  # a CPU converts integers as fast as it adds
    assert of_gpu[2:] == shared


def test_an_error_names_its_pass_first() -> None:
    few = replace(cpu(AVX2), passes=(Unroll(AVX2, max_steps=4),))
    with pytest.raises(TargetError, match=r"^TargetError: Unroll: unroll: loops 'i' "):
        run_passes(parse(TEXT), few)


def test_a_function_of_another_stage_is_refused() -> None:
    with pytest.raises(VerificationError):
        lower(parse(LOWERED_TEXT), AVX2)
    assert lower(parse(LOWERED_TEXT), AVX2, verified=Verified.NOWHERE).name == "f"


def test_what_a_broken_pass_returns_is_refused_under_its_name() -> None:
    for pipeline in (NEST, cpu(AVX2), gpu(A100)):
        with pytest.raises(VerificationError, match=r"^VerificationError: Forget: verify: "):
            run_passes(parse(TEXT), with_first(pipeline, Forget()), verified=Verified.EACH)


def test_a_pass_that_stumbles_is_named() -> None:
    with pytest.raises(KeyError) as caught:
        run_passes(parse(TEXT), with_first(NEST, Stumble()))
    assert caught.value.__notes__ == ["in the pass Stumble"]


def lower_verified(what: PrimFunc | Schedule, target: Target) -> None:
    """Lower a function as a build does, verified after each pass."""
    func = contraction(choose_schedule(what, target)[0].func, target)
    nest = lower_to_nest(func, verified=Verified.EACH)
    lower_parts(nest, target, verified=Verified.EACH)


@pytest.mark.parametrize("name", GOLDEN)
def test_each_pass_keeps_the_golden_functions_valid_for_a_cpu(name: str) -> None:
    kernel = GOLDEN[name]
    func = kernel.make()
    what = func if kernel.steps is None else Schedule(func).apply(kernel.steps)
    lower_verified(what, kernel.target("avx512"))


@pytest.mark.parametrize("name", [name for name in KERNELS if name not in OF_CPUS])
def test_each_pass_keeps_functions_valid_for_a_gpu(name: str) -> None:
    lower_verified(KERNELS[name](), A100)
