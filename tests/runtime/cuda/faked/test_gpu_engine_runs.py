"""A whole engine on the fake device, behind which its kernels are emulated: what its run does
wrong is found there, too. The fake runs a graph in another order each time, as its streams allow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tilewright.codegen.cuda.program_artifact import CudaProgram
from tilewright.codegen.cuda.streams import Placed, place_on_streams
from tilewright.driver import compile_ahead_cuda
from tilewright.driver.build_program import build_program
from tilewright.driver.check.engine import EngineChecker, EngineCheckError
from tilewright.driver.check.gpu_engine_runs import DeviceRuns
from tilewright.driver.check.program import ProgramCheckError
from tilewright.driver.compile_ahead_cuda import CompiledCuda
from tilewright.driver.jobs import ProgramOptions
from tilewright.runtime.cuda.device import (
    code as device_code,
)
from tilewright.runtime.cuda.device import (
    loaded_program,
)
from tilewright.runtime.cuda.device import (
    program as device_program,
)
from tilewright.runtime.cuda.device.availability import Available
from tilewright.runtime.cuda.device.context import DeviceContext, Stream
from tilewright.runtime.cuda.device.frame import DeviceFrame
from tilewright.runtime.cuda.toolchain.compile import Cubin
from tilewright.runtime.model.model import Model
from tilewright.tir.program.program import Copy, Program

from ....driver.check.test_engine import Reference, copying
from ....driver.check.test_gpu_engine_runs import bound, emitted, with_source, with_steps
from ....tiny_program import M, N, constants, overlapping, tiny
from ..emulated_device import emulate_on_device
from ..fake_driver import FakeDriver

pytestmark = pytest.mark.needs_cxx

Check = Callable[..., str]


@pytest.fixture(autouse=True)
def _device(context: DeviceContext, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Available(context.driver, (context.device,))
    for module in (compile_ahead_cuda, device_code, device_program):
        monkeypatch.setattr(module, "availability", lambda: found)
    monkeypatch.setenv("FAKE_CUDA_REPLAY", "1")


def cubins(artifact: CudaProgram) -> list[Cubin]:
    """What the fake driver takes for the kernels of a program."""
    found = []
    for kernel in artifact.kernels:
        parts = [part for part in (kernel.run, kernel.prepare) if part is not None]
        names = {launch.kernel for part in parts for launch in part.launches}
        entries = "".join(f".visible .entry {name}() {{ ret; }}\n" for name in sorted(names))
        text = f".version 8.0\n.target sm_90\n{entries}\0".encode()
        found.append(Cubin(kernel.name, "compute_90", text, None, "NVRTC", 0.0))
    return found


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake: FakeDriver) -> Check:
    """The check of an engine, by default of the tiny one, whose artifact may be another."""

    def checked(
        artifact: CudaProgram | None = None,
        program: Program | None = None,
        meant: Program | None = None,
    ) -> str:
        program, kept = program or tiny(), constants()
        artifact = artifact or emitted(program)
        emulate_on_device([kernel.source for kernel in artifact.kernels], tmp_path, monkeypatch)
        runs = DeviceRuns(artifact, cubins(artifact), bound(artifact, kept))
        reference = Reference(meant or program, kept)
        return str(EngineChecker(runs, Model(program, kept), reference).check())

    return checked


def test_a_right_engine_passes_and_its_verdict_says_on_what(check: Check) -> None:
    assert check().startswith(
        "ok twice on the Fake H200, equal bits; error over bound: random data 0."
    )


@pytest.mark.usefixtures("nvrtc")
def test_an_engine_is_run_whole_where_a_device_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake: FakeDriver
) -> None:
    program, kept = tiny(), constants()
    sources = [kernel.source for kernel in emitted(program).kernels]
    emulate_on_device(sources, tmp_path, monkeypatch)
    options = ProgramOptions(oracle=Reference(program, kept))
    report = build_program(program, kept, "cuda:sm_90a", options=options).explain()
    assert {kernel.check for kernel in report.kernels} == {"ok"}
    assert report.whole.startswith("ok twice on the Fake H200, equal bits")


def test_a_place_that_is_given_away_too_early_is_found(check: Check) -> None:
    with pytest.raises(EngineCheckError, match=r"something writes over arena.* which 'add' reads"):
        check(program=overlapping(), meant=tiny())


def test_a_launch_that_is_dropped_is_found(check: Check) -> None:
    artifact = emitted(tiny())
    first, second, _, add = artifact.launches
    with pytest.raises(EngineCheckError, match=r"step 2 is add\(.*; its program has relu\("):
        check(with_steps(artifact, first, second, add))


def test_launches_that_are_exchanged_are_found(check: Check) -> None:
    artifact = emitted(tiny())
    first, second, relu, add = artifact.launches
    with pytest.raises(EngineCheckError, match=r"step 0 is relu\(.*; its program has mm1\("):
        check(with_steps(artifact, relu, second, first, add))


def test_a_wait_that_is_missing_is_found(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_waits(program: CudaProgram) -> tuple[Placed, ...]:
        return tuple(replace(item, waits=()) for item in place_on_streams(program))

    monkeypatch.setattr(loaded_program, "place_on_streams", without_waits)
    with pytest.raises(EngineCheckError) as refused:
        check()
    assert "has other bits in its second run than in its first run" in str(refused.value)
    assert "Note: 'add' does not wait for 'second matmul', and touches" in str(refused.value)


def test_a_copy_that_is_cut_short_is_found(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    """By 4 bytes, and only where it is recorded."""
    whole = DeviceFrame._put

    def put(self: DeviceFrame, step: object, stream: Stream) -> None:
        if not isinstance(step, Copy):
            whole(self, step, stream)  # type: ignore[arg-type]
            return
        target, source = self._place(step.target), self._place(step.source)
        size = target.size - 4
        target.part(0, size).copy_from(source.part(0, size), stream)

    monkeypatch.setattr(DeviceFrame, "_put", put)
    with pytest.raises(EngineCheckError, match="on random data output y: error"):
        check(program=copying())


def test_a_wrong_kernel_is_named(check: Check) -> None:
    with pytest.raises(ProgramCheckError) as refused:
        check(with_source(emitted(tiny()), "add", "+ B[", "- B["))
    assert refused.value.functions == ("add",)


@pytest.mark.parametrize(
    ("name", "line", "what"),
    [
        ("mm1", "((float *)A)[0] = 1;", "into its input 'x' in its first run, on random data"),
        ("mm1", "((float *)B)[0] += 1;", "into its weights, on random data"),
        ("add", f"S[{N * M + 300}] = 1;", "outside of its memory in its first run"),
    ],
)
def test_a_write_where_nothing_may_be_written_is_found(
    name: str, line: str, what: str, check: Check
) -> None:
    store = {"mm1": "C[", "add": "S["}[name]
    with pytest.raises(EngineCheckError, match=f"it wrote {what}"):
        check(with_source(emitted(tiny()), name, store, f"{line} {store}"))


def test_a_device_without_memory_for_it_is_said(
    fake: FakeDriver, context: DeviceContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, kept = tiny(), constants()
    artifact = emitted(program)
    made = CompiledCuda(artifact, tuple(cubins(artifact)), "device")
    fake.fail("cuMemAlloc", 2, times=3)
    found = made.engine_runs(bound(artifact, kept), program)
    fake.fail("cuMemAlloc", 0)
    assert isinstance(found, str)
    assert found.startswith("not run: ")
