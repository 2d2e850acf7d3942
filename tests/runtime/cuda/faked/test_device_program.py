from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tilewright.codegen.artifact import Parameter
from tilewright.codegen.cuda.program_artifact import CudaProgram
from tilewright.runtime.cuda.device import program as device_program
from tilewright.runtime.cuda.device.array import DeviceArray
from tilewright.runtime.cuda.device.availability import Available
from tilewright.runtime.cuda.device.context import DeviceContext
from tilewright.runtime.cuda.device.frame import DeviceFrame
from tilewright.runtime.cuda.device.program import DeviceProgram
from tilewright.runtime.cuda.driver.errors import (
    DeviceError,
    DeviceMemoryError,
    DeviceUseError,
)
from tilewright.runtime.cuda.toolchain.compile import Cubin, compile_cuda
from tilewright.runtime.index_checks import IndexRangeError
from tilewright.runtime.machine.timing import OwnClock, measure
from tilewright.tir.dtype import UINT64
from tilewright.tir.errors import TargetError
from tilewright.tir.index_check import IndexCheck
from tilewright.tir.program.program import Copy, Slice
from tilewright.tir.target.target import Target

from ....gpu_program import KERNELS, N, branches, passed_on, piece, program
from ..fake_driver import FakeDriver

X = np.arange(N, dtype=np.float32)
W = np.ones(N, np.float32)


@pytest.fixture(autouse=True)
def _device(context: DeviceContext, monkeypatch: pytest.MonkeyPatch, nvrtc: object) -> None:
    found = Available(context.driver, (context.device,))
    monkeypatch.setattr(device_program, "availability", lambda: found)


def cubins(arch: str = "sm_90a") -> list[Cubin]:
    return [compile_cuda(kernel.source, arch, name=kernel.name) for kernel in KERNELS]


def code(made: CudaProgram) -> DeviceProgram:
    return DeviceProgram(made, cubins(), (W, None))


def ready(made: CudaProgram, fake: FakeDriver) -> DeviceFrame:
    """A frame that has run once; what the library did until then is forgotten."""
    frame = code(made).frame(1)
    frame.point([X], [np.empty(N, np.float32)])
    frame.run(1)
    fake.calls()
    return frame


def names(fake: FakeDriver) -> list[str]:
    return [call.partition(" ")[0] for call in fake.calls()]


def launches(calls: list[str]) -> list[tuple[str, ...]]:
    """Kernel, stream, and where the arrays lie, of each launch."""
    found = (call.split() for call in calls if call.startswith("cuLaunchKernel"))
    return [(words[1], words[5], *words[7:]) for words in found]


def test_the_first_frame_loads_the_kernels_copies_the_constants_and_prepares(
    fake: FakeDriver,
) -> None:
    program_code = code(branches())
    assert fake.calls() == []
    frame = program_code.frame(1)
    asked = ("cuModuleGetFunction", "cuFuncGetAttribute")
    found = [name for name in names(fake) if name not in asked]
    assert found[:10] == [
        *("cuModuleLoadData", "cuModuleLoadData", "cuMemAlloc"),  # what a run reads
        *("cuMemAlloc", "cuMemcpyHtoD", "cuStreamSynchronize"),  # what `prepare` alone reads
        *("cuMemAlloc", "cuStreamCreate", "cuLaunchKernel", "cuStreamSynchronize"),
    ]
    assert sorted(found[10:13]) == ["cuMemFree", "cuMemFree", "cuStreamDestroy"]
    assert found[13:] == ["cuMemAlloc", "cuMemHostAlloc", "cuStreamCreate", "cuStreamCreate"]
    other = program_code.frame(1)
    assert names(fake) == ["cuMemAlloc", "cuMemHostAlloc", "cuStreamCreate", "cuStreamCreate"]
    assert frame is not other


def test_a_run_is_one_graph_recorded_at_the_first(fake: FakeDriver) -> None:
    frame = code(branches()).frame(1)
    fake.calls()
    frame.point([X], [np.empty(N, np.float32)])
    frame.run(1)
    calls = fake.calls()
    wanted = ("cuMemcpy", "cuLaunch", "cuEventRecord", "cuStreamWait", "cuStreamB", "cuStreamE")
    short = [" ".join(call.split()[:3]) for call in calls if call.startswith(wanted)]
    streams = sorted({word for call in calls for word in call.split() if "stream" in word})
    one, two = streams[-2:]
    events = sorted({word for call in calls for word in call.split() if word.startswith("event")})
    fork, first, last = events
    assert short == [
        f"cuStreamBeginCapture {one} 2",
        "cuMemcpyHtoDAsync 256 " + one,
        f"cuEventRecord {fork} {one}",
        f"cuStreamWaitEvent {two} {fork}",
        "cuLaunchKernel first (1,1,1)",
        "cuLaunchKernel second (1,1,1)",
        f"cuEventRecord {first} {one}",
        "cuLaunchKernel first (1,1,1)",
        "cuLaunchKernel second (1,1,1)",
        "cuLaunchKernel add (1,1,1)",
        f"cuStreamWaitEvent {two} {first}",
        "cuLaunchKernel add (1,1,1)",
        f"cuEventRecord {last} {two}",
        f"cuStreamWaitEvent {one} {last}",
        "cuMemcpyDtoHAsync 256 " + one,
        f"cuStreamEndCapture {one}",
    ]
    frame.run(1)
    assert names(fake) == ["cuGraphLaunch", "cuStreamSynchronize"]


def test_launches_take_their_arrays_where_the_plan_says(fake: FakeDriver) -> None:
    frame = code(branches()).frame(1)
    prepared = launches(fake.calls())[0]
    frame.point([X], [np.empty(N, np.float32)])
    frame.run(1)
    found = launches(fake.calls())
    arena = found[0][2].partition("+")[0]
    packed = prepared[3]
    assert packed.endswith(":256")  # a memory of its own size
    x, y, between = f"{arena}+2560", f"{arena}+2816", [f"{arena}+{at}" for at in (2048, 2304)]
    streams = [words[1] for words in found]
    assert streams == [streams[0]] * 2 + [streams[2]] * 4
    assert [words[2:] for words in found] == [
        (x, between[0]),
        (between[0], packed, f"{arena}:3072"),
        (x, between[1]),
        (between[1], packed, f"{arena}+256"),
        (f"{arena}+256", x, f"{arena}+512"),
        (f"{arena}:3072", f"{arena}+512", y),
    ]


def test_arrays_of_the_host_come_and_go(fake: FakeDriver) -> None:
    frame = ready(passed_on(), fake)
    for seed in range(2):
        x = np.random.default_rng(seed).standard_normal(N, dtype=np.float32)
        y = np.empty(N, np.float32)
        frame.point([x], [y])
        frame.run(1)
        np.testing.assert_array_equal(y, x)
    assert names(fake) == ["cuGraphLaunch", "cuStreamSynchronize"] * 2


def test_arrays_of_the_device_are_used_where_they_lie(
    context: DeviceContext, fake: FakeDriver
) -> None:
    frame = ready(passed_on(), fake)
    x, y = DeviceArray.of(context, X), DeviceArray.of(context, W)
    fake.calls()
    frame.point([x], [y])
    frame.run(1)
    calls = fake.calls()
    assert not [call for call in calls if call.startswith(("cuMemcpyHtoD", "cuMemcpyDtoH"))]
    np.testing.assert_array_equal(y.numpy(), X)
    frame.point([x], [y])
    fake.calls()
    frame.run(1)
    assert names(fake) == ["cuGraphLaunch", "cuStreamSynchronize"]
    other = np.empty(N, np.float32)
    frame.point([x], [other])
    frame.run(1)
    np.testing.assert_array_equal(other, X)


def test_runs_and_steps_are_timed_by_the_device(fake: FakeDriver) -> None:
    """A kernel of the fake's takes 10 us."""
    frame = ready(branches(), fake)
    assert isinstance(frame, OwnClock)
    warm, cold = measure(frame, 0.0), measure(frame, 0.0, cache="cold")
    assert (warm.median, cold.median) == (pytest.approx(60e-6), pytest.approx(60e-6))
    profile = frame.profile(1, 2)
    assert profile.whole == pytest.approx(60e-6)
    assert [(step.label, step.kernel) for step in profile.steps] == [
        *(("one", "scale"), ("other", "scale"), ("wide", "add"), ("sum", "add")),
    ]
    assert [step.seconds for step in profile.steps] == pytest.approx([20e-6, 20e-6, 10e-6, 10e-6])


def checked() -> CudaProgram:
    """A program whose input is the word of a check."""
    word = Parameter("S", UINT64, (), "output", IndexCheck("token", 8))
    part = replace(KERNELS[1].run, parameters=(*KERNELS[1].run.parameters[:2], word))
    kernel = replace(KERNELS[1], run=part)
    place, given = Slice("arena", 64, UINT64, ()), Slice("input", 0, UINT64, ())
    x = piece("input", 0)
    body = program(Copy(given, place)).body
    made = program(*body, replace(branches().launches[2], arguments=(x, x, place), label="gather"))
    inputs = (Parameter("x", UINT64, (), "input"),)
    return replace(made, inputs=inputs, kernels=(KERNELS[0], kernel), outputs=())


def test_words_of_checks_are_read_after_the_run(fake: FakeDriver) -> None:
    frame = code(checked()).frame(1)
    frame.point([np.array(7, np.uint64)], [])
    assert frame.run(1) == 1
    frame.point([np.array(9, np.uint64)], [])
    with pytest.raises(IndexRangeError) as caught:
        frame.run(1)
    assert caught.value.message == "hand: 'token' of gather is 9; expected 0 to 7."


def test_a_device_that_is_newer_gets_the_sources_compiled_for_it(
    fake: FakeDriver, caplog: pytest.LogCaptureFixture
) -> None:
    old = replace(passed_on(), target=Target.parse("cuda:sm_80"))
    with caplog.at_level("INFO", logger="tilewright"):
        DeviceProgram(old, cubins("sm_80"), (W, None)).frame(1)
    assert "engine: 'hand' for sm_80 is compiled for sm_90a" in caplog.text


def test_a_device_that_is_older_is_refused(fake: FakeDriver) -> None:
    new = replace(passed_on(), target=Target.parse("cuda:sm_100"))
    with pytest.raises(TargetError) as caught:
        DeviceProgram(new, cubins(), (W, None)).frame(1)
    assert str(caught.value) == (
        "TargetError: engine: 'hand' is built for sm_100, and the Fake H200 is sm_90a; expected "
        "one that is as new. [engine-gpu]\n"
        "  Hint: tw.compile(model, 'cuda:sm_90a') builds it for this one."
    )


def test_a_failure_while_recording_leaves_nothing_behind(fake: FakeDriver) -> None:
    frame = code(branches()).frame(1)
    frame.point([X], [np.empty(N, np.float32)])
    fake.fail("cuLaunchKernel", 1)
    with pytest.raises(DeviceError, match="launching 'first' failed: invalid argument"):
        frame.run(1)
    frame.run(1)  # it records anew


def test_a_device_without_memory_for_a_frame_says_so_and_may_be_asked_again(
    fake: FakeDriver,
) -> None:
    program_code = code(branches())
    program_code.frame(1)
    fake.fail("cuMemAlloc", 2, times=3)  # PyCUDA asks again when Python has freed what it can
    with pytest.raises(DeviceMemoryError, match="allocating 3072 bytes failed"):
        program_code.frame(1)
    fake.fail("cuMemAlloc", 0)
    program_code.frame(1)


def test_a_part_of_memory_lies_in_it(context: DeviceContext, fake: FakeDriver) -> None:
    memory = context.allocate(64)
    assert memory.part(16, 48).pointer == memory.pointer + 16
    with pytest.raises(DeviceUseError) as caught:
        memory.part(32, 33)
    assert str(caught.value) == "DeviceUseError: cuda: 33 bytes at 32 of memory of 64. [cuda-part]"
