"""Runs whose sizes differ, on the fake device: launches, copies, recordings."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.cuda.program_artifact import CudaProgram
from tilewright.driver import compile_ahead_cuda
from tilewright.runtime.arrays import ArgumentValueError, Array
from tilewright.runtime.cuda.device import code as device_code
from tilewright.runtime.cuda.device import frame as frame_module
from tilewright.runtime.cuda.device import program as device_program
from tilewright.runtime.cuda.device.array import DeviceArray
from tilewright.runtime.cuda.device.availability import Available
from tilewright.runtime.cuda.device.context import DeviceContext
from tilewright.runtime.cuda.device.frame import MOST_GRAPHS, DeviceFrame
from tilewright.runtime.cuda.toolchain.compile import compile_cuda
from tilewright.runtime.engine.engine import Engine
from tilewright.runtime.engine.gpu_code import GpuCode
from tilewright.runtime.engine.parts import EngineParts
from tilewright.runtime.model.report import EngineReport, MemoryPlan

from ....gpu_program import DOUBLED, N, doubling, open_rows, rows_of
from ....graph.open_models import perceptron
from ..emulated_device import emulate_on_device
from ..fake_driver import FakeDriver
from .test_device_interface import shown

pytestmark = pytest.mark.needs_cxx

SEEN = ["cuGraphLaunch", "cuStreamSynchronize"]  # a run that records nothing


@pytest.fixture(autouse=True)
def _device(context: DeviceContext, monkeypatch: pytest.MonkeyPatch, nvrtc: object) -> None:
    found = Available(context.driver, (context.device,))
    for module in (compile_ahead_cuda, device_code, device_program):
        monkeypatch.setattr(module, "availability", lambda: found)
    monkeypatch.setenv("FAKE_CUDA_REPLAY", "1")


@pytest.fixture
def emulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake's device computes."""
    emulate_on_device([DOUBLED], tmp_path, monkeypatch)


def made(program: CudaProgram | None = None) -> Engine:
    """y = 2x of up to 8 rows."""
    code = GpuCode(program or open_rows(), (compile_cuda(DOUBLED, "sm_90a", name="doubled"),))
    return Engine(EngineParts(code, (), EngineReport(()), MemoryPlan(0, 0, 0, 0)))


def made_frame(program: CudaProgram | None = None) -> DeviceFrame:
    code = made(program).parts.code.load((), None)
    assert isinstance(code, device_program.DeviceProgram)
    return code.frame(1)


def rows(count: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal((count, N), dtype=np.float32)


def names(fake: FakeDriver) -> list[str]:
    return [call.partition(" ")[0] for call in fake.calls()]


def run(frame: DeviceFrame, count: int, seed: int = 0) -> None:
    """A run on so many rows, which is right."""
    x, y = rows(count, seed), np.full((count, N), np.nan, np.float32)
    frame.point([x], [y])
    frame.run(1)
    np.testing.assert_array_equal(y, 2 * x)


def recorded(fake: FakeDriver, frame: DeviceFrame, counts: Sequence[int]) -> list[int]:
    """For which of these runs, one after the other, something is recorded."""
    found = []
    for seed, count in enumerate(counts):
        fake.calls()
        run(frame, count, seed)
        if names(fake) != SEEN:
            found.append(count)
    return found


@pytest.mark.usefixtures("emulated")
def test_launches_copies_and_arguments_are_those_of_the_rows_that_there_are(
    fake: FakeDriver,
) -> None:
    frame = made_frame()
    fake.calls()
    run(frame, 5)
    calls = [call.split() for call in fake.calls()]
    (launch,) = (words for words in calls if words[0] == "cuLaunchKernel")
    assert launch[1:4] == ["doubled", "(5,1,1)", "(64,1,1)"]
    x, between, n = struct.unpack("<QQi", bytes.fromhex(launch[6]))
    assert (n, x - between) == (5, 8 * 4 * N)  # behind the arena of all rows
    copied = [words[1] for words in calls if words[0].startswith("cuMemcpy")]
    assert copied == [str(5 * 4 * N)] * 3


@pytest.mark.usefixtures("emulated")
def test_a_size_that_was_seen_records_nothing(fake: FakeDriver) -> None:
    frame = made_frame()
    assert recorded(fake, frame, [3, 8, 3, 1, 8, 3, 1]) == [3, 8, 1]
    assert fake.alive("x") == 3


@pytest.mark.usefixtures("emulated")
def test_the_recordings_that_were_used_last_are_kept(
    fake: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = made_frame()
    assert MOST_GRAPHS == 32
    monkeypatch.setattr(frame_module, "MOST_GRAPHS", 3)
    assert recorded(fake, frame, [1, 2, 3, 1, 4, 1, 3, 2]) == [1, 2, 3, 4, 2]
    for count in range(9):
        run(frame, count)
        assert fake.alive("x") == fake.alive("g") + 3


@pytest.mark.usefixtures("emulated")
def test_no_rows_launch_nothing(fake: FakeDriver) -> None:
    frame = made_frame()
    fake.calls()
    run(frame, 0)
    assert not [name for name in names(fake) if name.startswith(("cuLaunchK", "cuMemcpy"))]


@pytest.mark.usefixtures("emulated")
def test_sizes_that_may_not_be_are_refused_and_nothing_is_launched(
    context: DeviceContext, fake: FakeDriver
) -> None:
    engine = made()
    x = DeviceArray.of(context, rows(3))
    fake.calls()
    with pytest.raises(ArgumentValueError, match="axis 0 of 'x' has 9 elements; expected 'rows'"):
        engine(rows(9))
    with pytest.raises(ArgumentValueError, match="'rows' is 3 in 'x' and 2 in 'y'"):
        engine.run({"x": x}, out={"y": np.empty((2, N), np.float32)})
    assert fake.calls() == []
    np.testing.assert_array_equal(engine(x), 2 * rows(3))


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("protocol", ["ours", "__cuda_array_interface__", "DLPack"])
def test_arrays_of_the_device_may_have_every_size(
    protocol: str, context: DeviceContext, fake: FakeDriver
) -> None:
    engine = made()
    show = {"ours": lambda a: a, "DLPack": Exchanged, "__cuda_array_interface__": shown}[protocol]
    for count in (2, 8, 2):
        x, y = (DeviceArray.of(context, rows(count, seed)) for seed in (count, 99))
        fake.calls()
        engine.run({"x": show(x)}, out={"y": show(y)})
        assert not [name for name in names(fake) if name.startswith("cuMemcpyH")]
        np.testing.assert_array_equal(y.numpy(), 2 * rows(count, count))
        np.testing.assert_array_equal(engine.run({"x": show(x)})["y"], 2 * rows(count, count))


class Exchanged:
    """An array of another library that speaks DLPack alone."""

    def __init__(self, array: DeviceArray) -> None:
        self.__dlpack__ = array.__dlpack__
        self.__dlpack_device__ = array.__dlpack_device__


@pytest.mark.usefixtures("emulated")
def test_other_arrays_of_the_device_have_recordings_of_their_own(
    context: DeviceContext, fake: FakeDriver
) -> None:
    frame = made_frame()
    arrays = [[DeviceArray.of(context, rows(4, seed)) for seed in (n, 9)] for n in range(2)]
    for n in (0, 1, 0, 1):
        fake.calls()
        frame.point(arrays[n][:1], arrays[n][1:])
        frame.run(1)
    assert names(fake) == SEEN
    assert fake.alive("x") == 2
    for n in range(2):
        np.testing.assert_array_equal(arrays[n][1].numpy(), 2 * rows(4, n))


def test_time_and_profile_are_of_the_sizes_pointed_to(
    fake: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FAKE_CUDA_REPLAY")  # which keeps what few launches do
    again = doubling(rows_of("arena"), rows_of("output"), "again")
    frame = made_frame(replace(open_rows(), body=(*open_rows().body[:2], again)))
    frame.point([rows(3)], [np.empty((3, N), np.float32)])
    fake.calls()
    timing, profile = frame.measure(0.0, "warm"), frame.profile(1, 1)
    grids = {call.split()[2] for call in fake.calls() if call.startswith("cuLaunchKernel")}
    assert grids == {"(3,1,1)"}
    assert timing.median == pytest.approx(20e-6)  # 10 of them a kernel of the fake's
    assert [(step.label, step.seconds) for step in profile.steps] == [
        ("twice", pytest.approx(10e-6)),
        ("again", pytest.approx(10e-6)),
    ]


@pytest.mark.usefixtures("emulated")
def test_a_bound_engine_is_timed_by_the_device(fake: FakeDriver) -> None:
    bound = made().context().bind({"x": rows(3)})
    assert bound.time(0.0, cache="cold").median == pytest.approx(10e-6)


def test_an_engine_is_checked_at_two_choices_on_the_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake: FakeDriver
) -> None:
    shapes = {"batch": (1, 3, 9)}
    made = tw.compile(perceptron(), "cuda:sm_90a", shapes=shapes, verify="off", cache=False)
    sources = [kernel.source for kernel in made.parts.artifact.kernels]
    emulate_on_device(sources, tmp_path, monkeypatch)
    engine = tw.compile(perceptron(), "cuda:sm_90a", shapes=shapes, cache=False)
    report = engine.explain()
    assert {kernel.check for kernel in report.kernels} == {"ok"}
    for place in ("batch 3", "batch 1"):
        assert f"at {place}: ok twice on the Fake H200, equal bits" in report.whole
    emulated = tw.emulated(engine)
    for batch in (9, 2):
        x = np.random.default_rng(batch).standard_normal((batch, 24), dtype=np.float32)
        assert engine(x).tobytes() == emulated(x).tobytes()
