"""Candidates for a GPU that misbehave cost one record each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from tilewright.autotune.log.record import Workload
from tilewright.autotune.measure.jobs import Job, Result
from tilewright.autotune.measure.lowering import LoweredCandidate, write
from tilewright.autotune.measure.machine import Machine
from tilewright.autotune.measure.measurement import Subject
from tilewright.autotune.measure.worker_process import Deadlines
from tilewright.autotune.space.space import TuningSpace
from tilewright.codegen.cuda.artifact import CudaArtifact
from tilewright.tir.target.target import Target

from ..samples import on_grid, scaled

TARGET = Target.parse("cuda:sm_90a")
SPACE = TuningSpace(scaled(4096), TARGET, on_grid)
SUBJECT = Subject(SPACE.func, TARGET, "on_grid", Workload.of(SPACE.func).key)
THREADS = (64, 32, 128, 256, 512, 1024)


@pytest.fixture(scope="module")
def candidates() -> dict[int, LoweredCandidate]:
    return {n: write(SPACE.candidate((place,)), TARGET) for place, n in enumerate(THREADS)}


@pytest.fixture
def machine() -> Iterator[Machine]:
    with Machine(Deadlines(check=1.0, time=1.0)) as machine:
        yield machine


def job(*written: LoweredCandidate) -> Job:
    return SUBJECT.job(written, 2, bar=None)


def fates(
    machine: Machine, candidates: dict[int, LoweredCandidate], *threads: int
) -> dict[int, Result]:
    results = machine.measure(job(*(candidates[n] for n in threads))).results
    return dict(zip(threads, results, strict=True))


def test_each_bad_candidate_is_a_verdict_and_the_good_ones_are_timed(
    machine: Machine, candidates: dict[int, LoweredCandidate], plan: Callable[..., None]
) -> None:
    plan(
        before="""
        if (threads == 32 && arguments) return 700;
        if (threads == 128 && arguments) for (;;) sleep(1);
        if (threads == 512 && arguments) return 701;
        """,
        after="if (threads == 256) y[grid[0] * threads] = 0;",
    )
    found = fates(machine, candidates, *THREADS)
    assert {n: result.outcome for n, result in found.items()} == {
        64: "ok",
        32: "crashed",
        128: "timed-out",
        256: "wrong",
        512: "build-failed",
        1024: "build-failed",
    }
    assert found[64].samples == pytest.approx([16.4e-6] * 2)
    assert found[64].calls == 61
    assert found[32].text == (
        "cuda: waiting for the device failed: an illegal memory access was encountered "
        "(CUDA_ERROR_ILLEGAL_ADDRESS, 700)."
    )
    assert found[128].text == "longer than 1 s at 'check'"
    assert found[256].text == "check: kernel 'scaled': it wrote outside of 'y'."
    assert found[512].text == (
        "cuda: launching 'tw_scaled' failed: too many resources requested for launch "
        "(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701)."
    )
    assert found[1024].text.startswith("launch: 'tw_scaled' does not fit the Fake H200: block")


def test_a_worker_that_dies_and_one_that_fails_under_the_clock_are_replaced(
    machine: Machine, candidates: dict[int, LoweredCandidate], plan: Callable[..., None]
) -> None:
    """After a death each candidate has a worker of its own, since another one may be guilty. What
    is recorded has no arguments.
    """
    plan(
        before="""
        if (threads == 128 && arguments) abort();
        if (threads == 32 && !arguments) return 700;
        if (threads == 512) return 2;
        """
    )
    found = fates(machine, candidates, 64, 32, 128, 512)
    assert [result.outcome for result in found.values()] == [
        *("ok", "crashed", "crashed", "out-of-memory")
    ]
    assert found[64].samples == pytest.approx([16.4e-6] * 2)
    assert "an illegal memory access was encountered" in found[32].text
    assert found[128].text.startswith("the worker was killed by SIGABRT at 'check'")
    assert found[512].text == (
        "cuda: launching 'tw_scaled' failed: the device has 536870912 bytes free of 1073741824."
    )


def spilling(one: LoweredCandidate) -> LoweredCandidate:
    """The candidate with an array that no registers hold."""
    code = one.artifact
    assert isinstance(code, CudaArtifact)
    fill = "volatile float kept[64]; for (int n = 0; n < 64; ++n) kept[n] = x[n];"
    head, brace, tail = code.source.rpartition("{\n")
    text = f"{head}{brace}    {fill} y[0] = kept[(int)x[64]];\n{tail}"
    return replace(one, artifact=replace(code, source=text))


def test_who_spills_is_not_run_at_all_but_for_the_default(
    machine: Machine, candidates: dict[int, LoweredCandidate], plan: Callable[..., None]
) -> None:
    plan(before="if (threads == 32) abort();")
    default, other, third = (candidates[n] for n in (64, 32, 128))
    assert default.candidate.is_default
    found = machine.measure(job(spilling(default), spilling(other), third)).results
    assert [result.outcome for result in found] == ["ok", "build-failed", "ok"]
    assert found[1].text == (
        "spills 256 bytes per thread to local memory; the best candidate spills 0"
    )
