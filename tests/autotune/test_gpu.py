"""A search on a real device: `pytest -m gpu tests/autotune/test_gpu.py`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.autotune.log.file import read_log
from tilewright.autotune.log.record import Workload
from tilewright.autotune.measure.lowering import write
from tilewright.autotune.measure.machine import Machine
from tilewright.autotune.measure.measurement import Subject
from tilewright.autotune.measure.worker_process import Deadlines
from tilewright.autotune.space.space import TuningSpace
from tilewright.autotune.tuning_log import TuningLog
from tilewright.codegen.cuda.artifact import CudaArtifact
from tilewright.runtime.cuda.device.availability import Unavailable, availability
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target

from ..schedule.nests import softmax
from .samples import on_grid, scaled

pytestmark = pytest.mark.gpu

FUNC = scaled(4096)
BAD = {
    "crashed": "y[1l << 40] = x[i];",
    "timed-out": 'for (;;) asm volatile("nanosleep.u32 100;");',
    "wrong": "y[i] = x[i];",
}


def spoiled(good: CudaArtifact, body: str) -> CudaArtifact:
    """The candidate with another body, that a thread runs for element i."""
    (launch,) = good.run.launches
    index = "const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);"
    head = f'extern "C" __global__ void {launch.kernel}(const float *x, float *y)'
    return replace(good, source=f"{head}\n{{\n    {index}\n    {body}\n}}\n")


@pytest.fixture(scope="module")
def target() -> Target:
    found = availability()
    if isinstance(found, Unavailable):
        pytest.skip(f"{found.reason}: {found.hint}")
    return Target.parse(f"cuda:{found.devices[0].arch}")


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    with Machine(Deadlines(check=5.0)) as machine:
        yield machine


def product(size: int) -> PrimFunc:
    a = te.placeholder((size, size), "float32", name="A")
    b = te.placeholder((size, size), "float32", name="B", constant=True)
    k = te.reduce_axis(size, name="k")
    c = te.compute((size, size), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.func(a, b, c, name="product")


def test_a_search_ends_with_a_kernel_that_is_right_and_no_slower(
    target: Target, tmp_path: Path
) -> None:
    func, log = product(512), tmp_path / "gpu.jsonl"
    result = tw.tune(func, target, trials=12, log=log)
    best = result.best
    assert best is not None, [one.text for one in result.history[:1]]
    assert best.seconds is not None
    assert result.default_time is not None
    assert best.seconds <= result.default_time
    assert (best.method.cache, best.conditions.driver[:4]) == ("cold", "CUDA")
    assert read_log(log).trials == result.history
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((512, 512), dtype=np.float32) for _ in range(2))
    kernel = tw.build(func, target, schedules=TuningLog(log), constants={"B": b})
    assert np.allclose(kernel(a), a @ b, rtol=0, atol=1e-3)


def test_a_softmax_is_tuned_with_warm_caches(target: Target) -> None:
    result = tw.tune(softmax(512, 1024), target, trials=8)
    assert result.best is not None, [one.text for one in result.history[:1]]
    assert result.best.method.cache == "warm"
    assert 1e-7 < (result.best.seconds or 0.0) < 1e-3


def test_bad_candidates_cost_a_verdict_each(target: Target, machine: Machine) -> None:
    """An illegal address, a kernel that does not end, wrong numbers; the good one is timed."""
    written = write(TuningSpace(FUNC, target, on_grid).candidate(), target)
    good = written.artifact
    assert isinstance(good, CudaArtifact)
    codes = [spoiled(good, body) for body in BAD.values()]
    subject = Subject(FUNC, target, "on_grid", Workload.of(FUNC).key)
    job = replace(subject.job([], 3, bar=None), candidates=(*codes, good))
    results = machine.measure(job).results
    told = "\n".join(f"{one.outcome}: {one.text}" for one in results)
    assert [result.outcome for result in results] == [*BAD, "ok"], told
    assert 1e-7 < min(results[-1].samples) < 1e-3
