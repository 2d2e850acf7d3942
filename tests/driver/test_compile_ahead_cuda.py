"""Engines for a GPU: built without one, checked where that can be, run by the emulation."""

from __future__ import annotations

import pickle
from collections.abc import Mapping

import numpy as np
import pytest

import tilewright as tw
from tilewright.driver import compile_ahead_cuda
from tilewright.driver.build_program import build_program
from tilewright.driver.check.program import KernelCheck, ProgramCheckError
from tilewright.driver.compile_ahead_cuda import CompiledCuda
from tilewright.driver.jobs import ProgramOptions, VerifyProgram
from tilewright.driver.lower_program import LoweredKernel
from tilewright.runtime.cuda.device import program as device_program
from tilewright.runtime.cuda.device.availability import NoDevice, Unavailable
from tilewright.runtime.engine.engine import Engine
from tilewright.runtime.index_checks import IndexRangeError
from tilewright.schedule.rules.default import default_schedule
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.source import as_source
from tilewright.tir.errors import TargetError
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target

from .. import checked_program
from ..tiny_engine import tiny_engine
from ..tiny_program import constants, expected, image, tiny

pytestmark = [pytest.mark.needs_cxx, pytest.mark.usefixtures("nvrtc")]

GPU = "cuda:sm_90a"


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    none = Unavailable("there is none here", "get one.")
    for module in (compile_ahead_cuda, device_program):
        monkeypatch.setattr(module, "availability", lambda: none)


def built(verify: VerifyProgram = "all", **options: object) -> Engine:
    return build_program(tiny(), constants(), GPU, options=ProgramOptions(verify=verify), **options)  # type: ignore[arg-type]


def test_without_a_gpu_there_are_sources_cubins_and_a_plan() -> None:
    engine = built()
    artifact = engine.parts.artifact
    assert [cubin.image[:4] for cubin in engine.parts.code.cubins] == [b"\x7fELF"] * 3
    assert {cubin.arch for cubin in engine.parts.code.cubins} == {"sm_90a"}
    assert engine.source.count('extern "C" __global__') == len(artifact.kernels) == 3
    assert {type(kernel.source) for kernel in artifact.kernels} == {str}  # and no statements
    assert engine.plan.startswith("tiny for cuda:sm_90a: one arena of ")
    assert str(engine.memory_plan) == (
        "weights 5.5 KiB (shared) + arena 2.75 KiB + workspace 1.5 KiB per context; "
        "kept to save: 5.47 KiB"
    )
    report = engine.explain()
    assert {kernel.check for kernel in report.kernels} == {"not run: no GPU"}
    assert [kernel.symbol for kernel in report.kernels] == ["tw_mm1", "tw_relu", "tw_add"]
    assert {"nvrtc, beside the others", "wait for nvrtc"} <= dict(report.seconds).keys()


def test_without_a_gpu_a_run_says_why_and_what_else_there_is() -> None:
    with pytest.raises(NoDevice) as caught:
        built(verify="off")(image())
    assert str(caught.value) == (
        "NoDevice: engine: 'tiny' runs on a GPU, and none can be used: there is none here. "
        "[engine-no-gpu]\n"
        "  Hint: tw.emulated(engine) runs it on the CPU, slowly.\n"
        "  Hint: get one."
    )


@pytest.mark.parametrize("checked", [False, True])
def test_the_emulation_computes_what_the_program_means(checked: bool) -> None:
    engine = tw.emulated(tiny_engine(GPU), checked=checked)
    for seed in range(2):
        got = engine(image(seed))
        np.testing.assert_allclose(got, expected(image(seed)), rtol=1e-4, atol=1e-4)
    assert engine.verify()
    again = pickle.loads(pickle.dumps(engine))
    np.testing.assert_array_equal(again(image(seed)), got)


def test_an_engine_of_the_cpu_is_not_emulated() -> None:
    with pytest.raises(TargetError) as caught:
        tw.emulated(tiny_engine("python"))
    assert str(caught.value) == (
        "TargetError: emulated: the engine 'tiny' is built for python; expected one for a GPU. "
        "[emulated-engine]\n"
        "  Hint: tw.compile(model, 'cuda:sm_90a') builds one."
    )


def test_every_kernel_is_checked_by_the_emulation_that_is_asked_for() -> None:
    kernels = built("emulated").explain().kernels
    assert {kernel.check for kernel in kernels} == {"ok"}
    assert all(kernel.error is not None and kernel.error <= 1 for kernel in kernels)
    assert {kernel.check for kernel in built("off").explain().kernels} == {"off"}


def tuned(func: PrimFunc, target: Target) -> Schedule:
    schedule = default_schedule(func, target)
    schedule.origin = "tuned"
    return schedule


def planted(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Let the sum be a difference, in the first so many texts."""
    finish, left = CompiledCuda.checks, [times]

    def wrong(self: CompiledCuda, kernels: Mapping[str, LoweredKernel]) -> dict[str, KernelCheck]:
        source = self.artifact.kernels[-1].source
        if left[0] and "+ B[" in source:
            object.__setattr__(self.artifact.kernels[-1], "source", source.replace("+ B[", "- B["))
        left[0] -= bool(left[0]) and any(one.func.name == "add" for one in kernels.values())
        return finish(self, kernels)

    monkeypatch.setattr(CompiledCuda, "checks", wrong)


def test_a_given_schedule_that_fails_its_check_is_replaced_by_rule(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    planted(monkeypatch, 1)
    report = built("emulated", source=as_source(tuned)).explain()
    assert {kernel.name: kernel.origin for kernel in report.kernels} == {
        "mm1": "tuned",
        "relu": "tuned",
        "add": "rule",
    }
    assert {kernel.check for kernel in report.kernels} == {"ok"}
    assert "'add': its schedule (tuned) gave way: its kernel failed the check" in report.notes[0]


def test_a_kernel_by_rule_that_is_wrong_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    planted(monkeypatch, 1)
    report = built("emulated").explain()
    assert {kernel.check for kernel in report.kernels} == {"ok"}
    assert report.notes[0].endswith("; it is scheduled by rule 'plain'")


def test_a_kernel_that_is_wrong_in_every_way_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    planted(monkeypatch, 9)
    with pytest.raises(ProgramCheckError) as caught:
        built("emulated")
    assert caught.value.functions == ("add",)


def test_indices_are_checked_as_on_the_cpu() -> None:
    tables = checked_program.tables()
    how = ProgramOptions(verify="emulated")
    engine = build_program(checked_program.embedding(), tables, GPU, options=how)
    assert {kernel.check for kernel in engine.explain().kernels} == {"ok"}
    run = tw.emulated(engine, checked=True)
    token, kind = np.arange(6, dtype=np.int64), np.ones(6, np.int64)
    np.testing.assert_allclose(run(token, kind), checked_program.expected(token, kind))
    token[3] = 11
    with pytest.raises(IndexRangeError) as caught:
        run(token, kind)
    assert caught.value.message == "embedding: 'token' of word rows is 11; expected 0 to 9."
