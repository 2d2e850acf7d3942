"""Tuning for a GPU that is not here: what is refused, and what the log of another machine gives."""

from __future__ import annotations

import json
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.autotune.log.conditions import conditions
from tilewright.autotune.log.file import LogWriter
from tilewright.autotune.log.flat import flat
from tilewright.autotune.log.record import (
    Conditions,
    Method,
    Trial,
    Workload,
    line_of,
    record_of,
)
from tilewright.autotune.log.setting import Setting, differences
from tilewright.autotune.measure.jobs import Job
from tilewright.autotune.measure.lowering import write
from tilewright.autotune.measure.measurement import Subject
from tilewright.autotune.model.features import features
from tilewright.autotune.space.space import TuningSpace
from tilewright.autotune.tuning_log import TuningLog
from tilewright.codegen.artifact import Parameter
from tilewright.codegen.cuda.artifact import CudaArtifact, KernelLaunch, Part
from tilewright.driver.tuning import cuda_tuner
from tilewright.driver.tuning.cuda_tuner import MOST_SOURCE, CudaTuner
from tilewright.driver.tuning.errors import TuneError
from tilewright.runtime.cuda.device.availability import NoDevice, Unavailable
from tilewright.runtime.cuda.toolchain.compile import cuda_flags
from tilewright.runtime.cuda.toolchain.nvrtc import Nvrtc, NvrtcNotFound
from tilewright.tir.dtype import FLOAT32
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

from .samples import on_grid, scaled

TARGET = Target.parse("cuda:sm_90a")
NONE = Unavailable("there is none", "get one.")
FUNC = scaled(4096)


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_tuner, "availability", lambda: NONE)


def measured(place: int, seconds: float, device: str = "NVIDIA H200") -> Trial:
    """A trial of one of the points of `on_grid`."""
    candidate = TuningSpace(FUNC, TARGET, on_grid).candidate((place,))
    at = Conditions(
        TARGET.to_json(), device, "NVRTC 13.0", cuda_flags("sm_90a"), "0.1.0", "CUDA 13.0"
    )
    return Trial(
        workload=Workload.of(FUNC).key,
        conditions=at,
        rule="on_grid",
        is_default=place == 0,
        trace=candidate.schedule.trace,
        source=f"{place:016}",
        outcome="ok",
        text="",
        proof="proved",
        method=Method("warm", 0, 100, 3, 50_000.0),
        samples=(seconds, 1.1 * seconds, 1.2 * seconds),
        time=f"2026-11-23T12:00:00.{place:06d}Z",
    )


def log(folder: Path, *trials: Trial) -> TuningLog:
    path = folder / "gpu.jsonl"
    with LogWriter(path) as writer:
        writer.append(Workload.of(FUNC), *trials)
    return TuningLog(path)


def test_a_search_without_a_gpu_is_refused_before_any_work(tmp_path: Path) -> None:
    def asked(sch: tw.Schedule) -> None:
        raise AssertionError

    with pytest.raises(NoDevice) as refused:
        tw.tune(FUNC, "cuda:sm_90a", rule=asked, log=tmp_path / "never.jsonl")
    assert str(refused.value) == (
        "NoDevice: cuda: there is none. [cuda-unavailable]\n  Hint: get one."
    )
    assert not list(tmp_path.iterdir())


def test_an_executor_may_have_the_gpu_that_is_not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of this one the workers have none either, which is theirs to say."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    with ThreadPoolExecutor(1) as executor, pytest.raises(TuneError) as refused:
        tw.tune(FUNC, "cuda:sm_90a", rule=on_grid, trials=1, executor=executor)
    assert str(refused.value).startswith("TuneError: tune: a worker of the executor cannot measure")
    assert "tune: no process that measures can be started here. [tune-start]" in str(refused.value)


def test_a_space_is_told_without_a_gpu() -> None:
    told = str(tw.tuning_space(FUNC, "cuda:sm_90a", rule=on_grid))
    assert told == (
        "'scaled', rule on_grid, cuda:sm_90a: 6 points, 100% of 6 legal\n"
        "  threads  64, of 6: 64, 32, 128, 256, 512, 1024"
    )


def test_a_log_of_a_gpu_gives_its_schedule_where_none_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda_tuner, "find_nvrtc", missing)
    known = log(tmp_path, measured(0, 3e-6), measured(3, 1e-6), measured(2, 2e-6))
    advice = known.advice(FUNC, TARGET)
    assert (advice.origin, advice.why) == (
        "similar",
        "GPU 'NVIDIA H200', and none is here; compiler 'NVRTC 13.0', and none is here; "
        "a candidate that is not confirmed yet",
    )
    kernel = tw.build(FUNC, "cuda:sm_90a", schedules=known, verify="off")
    assert isinstance(kernel.artifact, CudaArtifact)
    assert kernel.artifact.run.launches[0].block == (256, 1, 1)
    assert known.seconds(FUNC, TARGET) is None
    other = known.advice(FUNC, Target.parse("cuda:sm_80"))
    assert (other.schedule, other.why) == (None, "it was tuned for other instructions")


def missing() -> Nvrtc:
    raise NvrtcNotFound("compile: NVRTC is not here.", code="nvrtc-missing")


def test_what_is_measured_for_a_gpu_that_is_not_here_has_no_name(nvrtc: Nvrtc) -> None:
    at = conditions(TARGET)
    assert (at.cpu, at.driver, at.compiler) == ("", "", str(nvrtc))
    assert at.flags[0] == "--gpu-architecture=sm_90a"


def test_a_record_of_a_gpu_names_its_driver_and_one_of_a_cpu_has_none() -> None:
    trial = measured(1, 1e-6)
    assert record_of(line_of(trial)) == trial
    assert json.loads(line_of(trial))["conditions"]["driver"] == "CUDA 13.0"
    assert flat(trial, {})["driver"] == "CUDA 13.0"
    bare = replace(trial, conditions=replace(trial.conditions, driver=""))
    assert "driver" not in json.loads(line_of(bare))["conditions"]


def test_settings_of_gpus_are_told_in_words() -> None:
    one = Setting.of(measured(0, 1e-6).conditions, "warm")
    other = Setting.of(measured(0, 1e-6, "NVIDIA H100").conditions, "warm")
    assert str(one) == "NVIDIA H200, cuda:sm_90a, driver of CUDA 13.0, warm caches"
    assert differences(one, other) == ("GPU 'NVIDIA H200', not 'NVIDIA H100'",)
    assert differences(one, replace(one, driver="CUDA 12.8")) == (
        "driver 'CUDA 13.0', not 'CUDA 12.8'",
    )


def test_a_job_of_cuda_arrives_as_it_was() -> None:
    written = write(TuningSpace(FUNC, TARGET, on_grid).candidate((2,)), TARGET)
    job = Subject(FUNC, TARGET, "on_grid", Workload.of(FUNC).key).job([written], bar=None)
    assert Job.decode(job.encode()) == job
    assert Job.decode(job.encode()).candidates == (written.artifact,)


def test_more_registers_than_a_block_has_are_refused(nvrtc: Nvrtc) -> None:
    """A kernel that says nothing of its threads may have 255 registers for each."""
    chains = "".join(f"a{n} = a{n} * a{n} + a{(n + 1) % 200};" for n in range(200))
    values = ", ".join(f"a{n} = x[{n}]" for n in range(200))
    total = " + ".join(f"a{n}" for n in range(200))
    source = (
        'extern "C" __global__ void wide(float *x, int turns)\n'
        f"{{ float {values}; for (int i = 0; i < turns; ++i) {{ {chains} }} *x = {total}; }}\n"
    )
    x = Parameter("x", FLOAT32, (200,), "output")
    launch = KernelLaunch("wide", (1, 1, 1), (1024, 1, 1), ("x",))
    with pytest.raises(TuneError) as refused:
        CudaTuner().compile(CudaArtifact("wide", source, TARGET, Part((x,), (launch,))), 60.0)
    told = str(refused.value)
    assert told.startswith("TuneError: tune: a block of 'wide' has 1024 threads of 2")
    assert told.endswith("in all; expected at most 65536 on sm_90a. [tune-registers]")


def test_a_source_that_would_take_all_memory_is_refused() -> None:
    x = Parameter("x", FLOAT32, (1,), "output")
    launch = KernelLaunch("long", (1, 1, 1), (1, 1, 1), ("x",))
    code = CudaArtifact("long", " " * (MOST_SOURCE + 1), TARGET, Part((x,), (launch,)))
    with pytest.raises(TuneError) as refused:
        CudaTuner().compile(code, 60.0)
    assert str(refused.value) == (
        "TuneError: tune: the source of 'long' has 1048577 characters; expected at most 1048576: "
        "NVRTC compiles it in this process. [tune-source]"
    )


def product(m: int, n: int, k: int) -> PrimFunc:
    a, b = te.placeholder((m, k), "float32", name="A"), te.placeholder((k, n), "float32", name="B")
    axis = te.reduce_axis(k, name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis=axis), name="C")
    return te.func(a, b, c, name="product")


def by_hand(sch: tw.Schedule) -> None:
    """Blocks of 16 x 16 threads, each of 4 x 2 elements; slices of 8 terms are shared."""
    i, j, k = sch.loops("C")
    rows, ii = sch.split(i, (None, 64))
    columns, jj = sch.split(j, (None, 32))
    slices, kk = sch.split(k, (None, 8))
    part, ty = sch.split(ii, (None, 16))
    width, tx = sch.split(jj, (None, 16))
    sch.reorder(rows, columns, slices, kk, ty, tx, part, width)
    sch.bind(rows, "blockIdx.y")
    sch.bind(columns, "blockIdx.x")
    sch.bind(ty, "threadIdx.y")
    sch.bind(tx, "threadIdx.x")
    copy = sch.cache_read("C", "A")
    sch.compute_at(copy, slices)
    sch.set_scope(copy, "shared")
    sch.stage("C", "C", columns, "register")


def test_a_grid_is_told_to_the_cost_model() -> None:
    candidate = TuningSpace(product(256, 256, 64), TARGET, by_hand).candidate()
    found = features(candidate.schedule, TARGET)
    assert {name: round(2**value) for name, value in found.items() if name.startswith("grid")} == {
        "grid: kernels": 2,
        "grid: blocks": 4 * 8,
        "grid: threads of a block": 256,
        "grid: shared bytes": 1 + 64 * 8 * 4,
        "grid: own bytes of a thread": 1 + 4 * 2 * 4,
        "grid: points of a thread": 1 + 4 * 2 * 64 + 4 * 2 + 64 * 8 * 8,
    }
    assert all(math.isfinite(value) for value in found.values())
