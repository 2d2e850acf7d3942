from __future__ import annotations

import gc
import struct
from dataclasses import replace

import numpy as np
import pytest

from tilewright.runtime.cuda.device.context import DeviceContext, DeviceKernel
from tilewright.runtime.cuda.device.graph import Recording
from tilewright.runtime.cuda.device.launch import pack
from tilewright.runtime.cuda.driver.driver import KernelAttributes
from tilewright.runtime.cuda.driver.errors import DeviceError, DeviceUseError, LaunchError
from tilewright.runtime.cuda.toolchain.compile import Cubin, compile_cuda

from ..fake_driver import FakeDriver

PTX = b".version 8.0\n.target sm_90\n.visible .entry scale(.param .u64 x) { ret; }\n\0"
CUBIN = Cubin("scale by 3", "compute_90", PTX, None, "NVRTC", 0.0)


@pytest.fixture
def kernel(context: DeviceContext) -> DeviceKernel:
    return context.load(CUBIN).kernel("scale")


def launches(fake: FakeDriver) -> list[str]:
    return [call for call in fake.calls() if call.startswith("cuLaunchKernel")]


@pytest.mark.usefixtures("nvrtc")
def test_a_cubin_of_nvrtc_is_loaded(context: DeviceContext, fake: FakeDriver) -> None:
    source = 'extern "C" __global__ void scale(float *x) { x[threadIdx.x] *= 3.0f; }'
    module = context.load(compile_cuda(source, "sm_90a"))
    assert module.kernel("scale").name == "scale"
    assert fake.calls()[0] == "cuModuleLoadData"


def test_a_kernel_says_what_it_takes(kernel: DeviceKernel) -> None:
    assert kernel.attributes == KernelAttributes(
        registers=40, local_bytes=0, shared_bytes=1024, max_threads=512
    )


def test_a_launch_passes_everything_on(
    kernel: DeviceKernel, context: DeviceContext, fake: FakeDriver
) -> None:
    x, y = context.allocate(64), context.allocate(64)
    arguments = pack(x, np.int32(7), y, np.float32(0.5), np.int8(-1), np.float64(2))
    assert arguments == struct.pack("<Qi4xQfb3xd", x.pointer, 7, y.pointer, 0.5, -1, 2)
    fake.calls()
    stream = context.stream()
    kernel.launch((3, 2, 1), (32, 4, 2), arguments, shared_bytes=256, stream=stream)
    kernel.launch((1, 1, 1), (1, 1, 1), b"")
    first, second = launches(fake)
    assert first.split()[:4] == ["cuLaunchKernel", "scale", "(3,2,1)", "(32,4,2)"]
    assert first.split()[4] == "256"
    assert first.split()[5].startswith("stream")
    assert bytes.fromhex(first.split()[6]) == arguments
    assert second.split() == ["cuLaunchKernel", "scale", "(1,1,1)", "(1,1,1)", "0", "default"]


def test_launches_run_in_the_order_of_their_calls(kernel: DeviceKernel, fake: FakeDriver) -> None:
    for number in range(50):
        kernel.launch((number + 1, 1, 1), (1, 1, 1), b"")
    assert [int(call[22:].partition(",")[0]) for call in launches(fake)] == list(range(1, 51))


def test_no_block_is_nothing_to_do(kernel: DeviceKernel, fake: FakeDriver) -> None:
    kernel.launch((4, 0, 1), (32, 1, 1), b"")
    assert fake.calls() == []


def test_more_shared_memory_than_usual_is_asked_for_once(
    kernel: DeviceKernel, fake: FakeDriver
) -> None:
    kernel.launch((1, 1, 1), (32, 1, 1), b"", shared_bytes=47 << 10)
    assert [call.split()[0] for call in fake.calls()] == ["cuLaunchKernel"]
    for _ in range(2):
        kernel.launch((1, 1, 1), (32, 1, 1), b"", shared_bytes=100_000)
    kernel.launch((1, 1, 1), (32, 1, 1), b"", shared_bytes=226 << 10)
    calls = [call for call in fake.calls() if call.startswith("cuFuncSetAttribute")]
    assert calls == ["cuFuncSetAttribute 8 100000", f"cuFuncSetAttribute 8 {226 << 10}"]


def test_a_launch_may_go_to_every_limit(kernel: DeviceKernel, fake: FakeDriver) -> None:
    kernel.launch((2147483647, 65535, 65535), (8, 1, 64), b"", shared_bytes=231424)
    kernel.launch((1, 1, 1), (512, 1, 1), b"")
    assert len(launches(fake)) == 2


@pytest.mark.parametrize(
    ("grid", "block", "shared", "excess"),
    [
        (
            (1, 65536, 1),
            (32, 1, 1),
            0,
            "grid is (1, 65536, 1), at most (2147483647, 65535, 65535)",
        ),
        ((1, 1, 1), (32, 1, 65), 0, "block is (32, 1, 65), from (1, 1, 1) to (1024, 1024, 64)"),
        ((1, 1, 1), (32, 0, 1), 0, "block is (32, 0, 1), from (1, 1, 1) to (1024, 1024, 64)"),
        (
            (1, 1, 1),
            (513, 1, 1),
            0,
            "block (513, 1, 1) is 513 threads, its 40 registers a thread and __launch_bounds__ "
            "allow 512",
        ),
        (
            (1, 1, 1),
            (32, 1, 1),
            231425,
            "1024 static and 231425 dynamic bytes of shared memory make 232449, at most 232448",
        ),
    ],
)
def test_a_launch_beyond_a_limit_is_refused_with_the_numbers(
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    shared: int,
    excess: str,
    kernel: DeviceKernel,
    fake: FakeDriver,
) -> None:
    with pytest.raises(LaunchError) as caught:
        kernel.launch(grid, block, b"", shared_bytes=shared)
    assert str(caught.value) == (
        f"LaunchError: launch: 'scale' does not fit the Fake H200: {excess}. [cuda-launch]"
    )
    assert fake.calls() == []


def test_a_module_comes_back_with_its_last_kernel(context: DeviceContext, fake: FakeDriver) -> None:
    module = context.load(CUBIN)
    kernel = module.kernel("scale")
    del module
    gc.collect()
    kernel.launch((1, 1, 1), (1, 1, 1), b"")
    assert fake.alive("m") == 1
    del kernel
    gc.collect()
    assert fake.calls()[-1] == "cuModuleUnload"


def test_a_kernel_that_is_not_there_is_told(context: DeviceContext, fake: FakeDriver) -> None:
    module = context.load(CUBIN)
    with pytest.raises(DeviceError) as caught:
        module.kernel("other")
    assert str(caught.value) == (
        "DeviceError: cuda: finding 'other' in 'scale by 3' failed: named symbol not found "
        "(CUDA_ERROR_NOT_FOUND, 500). [cuda-call]"
    )


def test_what_is_no_cubin_is_told(context: DeviceContext, fake: FakeDriver) -> None:
    with pytest.raises(DeviceError) as caught:
        context.load(replace(CUBIN, image=b"nonsense\0"))
    assert str(caught.value) == (
        "DeviceError: cuda: loading 'scale by 3' for compute_90 failed: device kernel image is "
        "invalid (CUDA_ERROR_INVALID_IMAGE, 200). [cuda-call]\n"
        "  Note: it is compiled by NVRTC; the Fake H200 is sm_90a, its driver knows CUDA 13.0."
    )


def test_recorded_work_runs_as_one(
    kernel: DeviceKernel, context: DeviceContext, fake: FakeDriver
) -> None:
    stream, memory = context.stream(), context.allocate(16)
    memory.fill(1)
    fake.calls()
    recording = Recording(stream)
    with recording:
        memory.fill(2, stream)
        kernel.launch((1, 1, 1), (32, 1, 1), pack(memory), stream=stream)
        kernel.launch((2, 1, 1), (32, 1, 1), pack(memory), stream=stream)
    graph = recording.graph
    assert graph.nodes == 3
    result = np.zeros(16, np.uint8)
    memory.copy_out(result)
    assert set(result.tolist()) == {1}  # recorded, not done
    fake.calls()
    graph.launch(stream)
    graph.launch(stream)
    calls = [call.partition(" ")[0] for call in fake.calls()]
    assert calls == ["cuGraphLaunch", "cuGraphLaunch"]
    assert (fake.alive("g"), fake.alive("x")) == (0, 1)
    del graph, recording
    gc.collect()
    assert fake.alive("x") == 0


def test_a_graph_is_there_when_its_recording_has_ended(
    context: DeviceContext, fake: FakeDriver
) -> None:
    with pytest.raises(DeviceUseError) as caught:
        _ = Recording(context.stream()).graph
    assert str(caught.value) == (
        "DeviceUseError: cuda: nothing was recorded yet. [cuda-recording]\n"
        "  Hint: with recording: launch and copy on recording.stream"
    )


def test_an_error_ends_a_recording_and_is_the_one_that_is_told(
    context: DeviceContext, fake: FakeDriver
) -> None:
    stream = context.stream()
    recording = Recording(stream)
    with pytest.raises(ZeroDivisionError), recording:
        _ = 1 // 0
    assert [call.partition(" ")[0] for call in fake.calls()][1:] == [
        "cuStreamBeginCapture",
        "cuStreamEndCapture",
        "cuGraphDestroy",
    ]
    with recording:
        context.allocate(4).fill(0, stream)
    assert recording.graph.nodes == 1


def test_a_graph_that_cannot_be_made_leaves_nothing(
    context: DeviceContext, fake: FakeDriver
) -> None:
    fake.fail("cuGraphInstantiateWithFlags", 801)
    with (
        pytest.raises(DeviceError, match="making a graph failed: operation not supported"),
        Recording(context.stream()),
    ):
        pass
    assert fake.alive("g") == 0
