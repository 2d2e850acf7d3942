"""The same layer on a real device: `pytest -m gpu tests/runtime/cuda/test_gpu.py`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.runtime.cuda.device.array import DeviceArray
from tilewright.runtime.cuda.device.availability import Unavailable, availability
from tilewright.runtime.cuda.device.context import DeviceContext, Stream
from tilewright.runtime.cuda.device.graph import Recording
from tilewright.runtime.cuda.device.launch import pack
from tilewright.runtime.cuda.device.probe import DeviceProbe
from tilewright.runtime.cuda.device.timing import measure_on
from tilewright.runtime.cuda.toolchain.compile import Cubin, compile_cuda
from tilewright.runtime.cuda.toolchain.inspection import resources
from tilewright.runtime.machine.timing import CacheState

pytestmark = pytest.mark.gpu

SOURCE = """
extern "C" __global__ void __launch_bounds__(256) scale(float *x, int n, float by)
{
    int i = (int)(blockIdx.x * 256 + threadIdx.x);
    if (i < n)
        x[i] = x[i] * by;
}
extern "C" __global__ void reversed(float *x)
{
    extern __shared__ float tile[];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}
extern "C" __global__ void wild(float *x)
{
    x[1l << 40] = 1.0f;
}
"""
WILD = """
from tests.runtime.cuda.test_gpu import illegal
print(illegal())
"""


@pytest.fixture(scope="module")
def context() -> DeviceContext:
    found = availability()
    if isinstance(found, Unavailable):
        pytest.skip(f"{found.reason}: {found.hint}")
    return found.context()


@pytest.fixture(scope="module")
def cubin(context: DeviceContext) -> Cubin:
    return compile_cuda(SOURCE, context.device.arch, name="scale")


def test_a_kernel_computes(context: DeviceContext, cubin: Cubin) -> None:
    kernel = context.load(cubin).kernel("scale")
    host = np.random.default_rng(0).standard_normal(100_003).astype(np.float32)
    array = DeviceArray.of(context, host)
    arguments = pack(array, np.int32(host.size), np.float32(3))
    kernel.launch((-(-host.size // 256), 1, 1), (256, 1, 1), arguments)
    assert np.array_equal(array.numpy(), host * np.float32(3))


def test_text_for_the_driver_computes_too(context: DeviceContext) -> None:
    major, minor = context.device.capability
    kernel = context.load(compile_cuda(SOURCE, f"compute_{major}{minor}")).kernel("scale")
    array = DeviceArray.of(context, np.arange(4, dtype=np.float32))
    kernel.launch((1, 1, 1), (256, 1, 1), pack(array, np.int32(3), np.float32(2)))
    assert array.numpy().tolist() == [0, 2, 4, 3]


def test_the_driver_and_cuobjdump_agree_on_what_a_kernel_takes(
    context: DeviceContext, cubin: Cubin
) -> None:
    module, said = context.load(cubin), resources(cubin)
    for name in ("scale", "reversed"):
        attributes = module.kernel(name).attributes
        assert attributes.registers == said[name].registers
        assert attributes.local_bytes == said[name].stack_bytes
        assert attributes.max_threads >= 256


def test_as_much_shared_memory_as_there_is_can_be_had(context: DeviceContext, cubin: Cubin) -> None:
    kernel = context.load(cubin).kernel("reversed")
    host = np.arange(256, dtype=np.float32)
    array = DeviceArray.of(context, host)
    for size in (1024, 100_000, context.device.block_shared_bytes):
        kernel.launch((1, 1, 1), (256, 1, 1), pack(array), shared_bytes=size)
    assert np.array_equal(array.numpy(), host[::-1])


def test_streams_events_and_pinned_memory_work_together(
    context: DeviceContext, cubin: Cubin
) -> None:
    kernel, count = context.load(cubin).kernel("scale"), 1 << 20
    stream, begin, end = context.stream(), context.event(), context.event()
    host = context.pin(4 * count).array((count,), np.float32)
    host[:] = 1
    memory = context.allocate(host.nbytes)
    begin.record(stream)
    memory.copy_in(host, stream)
    for _ in range(10):
        arguments = pack(memory, np.int32(count), np.float32(2))
        kernel.launch((count // 256, 1, 1), (256, 1, 1), arguments, stream=stream)
    memory.copy_out(host, stream)
    end.record(stream)
    end.synchronize()
    assert set(host.tolist()) == {1024.0}
    assert 1e-5 < end.seconds_since(begin) < 1


def test_recorded_work_runs_as_often_as_it_is_launched(
    context: DeviceContext, cubin: Cubin
) -> None:
    kernel, stream = context.load(cubin).kernel("scale"), context.stream()
    array = DeviceArray.of(context, np.ones(256, np.float32))
    recording = Recording(stream)
    with recording:
        for _ in range(3):
            arguments = pack(array, np.int32(256), np.float32(2))
            kernel.launch((1, 1, 1), (256, 1, 1), arguments, stream=stream)
    stream.synchronize()
    assert set(array.numpy().tolist()) == {1.0}
    assert recording.graph.nodes == 3
    for _ in range(2):
        recording.graph.launch(stream)
    stream.synchronize()
    assert set(array.numpy().tolist()) == {64.0}


@pytest.mark.parametrize("cache", ["warm", "cold"])
def test_a_large_kernel_takes_the_time_of_its_memory(
    cache: CacheState, context: DeviceContext, cubin: Cubin
) -> None:
    kernel, count = context.load(cubin).kernel("scale"), 1 << 26
    array = DeviceArray.empty(context, (count,), np.float32)
    arguments = pack(array, np.int32(count), np.float32(1))

    def work(stream: Stream) -> None:
        kernel.launch((count // 256, 1, 1), (256, 1, 1), arguments, stream=stream)

    timing = measure_on(context, work, 0.2, cache=cache)
    assert 50e9 < 2 * array.nbytes / timing.median < 10e12


def test_the_probe_runs_as_often_as_it_is_asked(context: DeviceContext) -> None:
    probe = DeviceProbe(context)
    assert all(1e3 < probe.gflops() < 1e6 for _ in range(2))


def test_branches_on_two_streams_are_recorded_together(
    context: DeviceContext, cubin: Cubin
) -> None:
    kernel, main, side = context.load(cubin).kernel("scale"), context.stream(), context.stream()
    first = DeviceArray.of(context, np.ones(256, np.float32))
    second = DeviceArray.of(context, np.ones(256, np.float32))
    forked, joined = context.event(), context.event()
    recording = Recording(main)
    with recording:
        forked.record(main)
        side.wait(forked)
        for stream, array in ((main, first), (side, second)):
            arguments = pack(array, np.int32(256), np.float32(2))
            kernel.launch((1, 1, 1), (256, 1, 1), arguments, stream=stream)
        joined.record(side)
        main.wait(joined)
        arguments = pack(second, np.int32(256), np.float32(5))
        kernel.launch((1, 1, 1), (256, 1, 1), arguments, stream=main)
    assert recording.graph.nodes == 3
    recording.graph.launch(main)
    main.synchronize()
    assert set(first.numpy().tolist()) == {2.0}
    assert set(second.numpy().tolist()) == {10.0}


@pytest.mark.parametrize("shape", [(64, 64, 64), (130, 70, 65)])
def test_a_built_product_equals_numpy_s(
    shape: tuple[int, int, int], context: DeviceContext
) -> None:
    m, n, k = shape
    a, b = te.placeholder((m, k), "float32", name="A"), te.placeholder((k, n), "float32", name="B")
    axis = te.reduce_axis(k, name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis=axis), name="C")
    kernel = tw.build(te.func(a, b, c, name="product"), f"cuda:{context.device.arch}")
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(size, dtype=np.float32) for size in ((m, k), (k, n)))
    exact = x.astype(np.float64) @ y
    bound = 8 * np.sqrt(k) * np.finfo(np.float32).eps * (np.abs(x) @ np.abs(y))
    assert np.all(np.abs(kernel(x, y) - exact) <= bound)
    assert 1e-7 < kernel.time(x, y, seconds=0.05).median < 1e-1


def test_pytorch_sees_our_memory_and_we_see_its(context: DeviceContext) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    array = DeviceArray.of(context, np.arange(12, dtype=np.float32).reshape(3, 4))
    for theirs in (torch.from_dlpack(array), torch.as_tensor(array, device="cuda")):
        assert theirs.data_ptr() == array.pointer
        theirs += 1
    torch.cuda.synchronize()
    assert np.array_equal(array.numpy(), np.arange(2, 14).reshape(3, 4))
    theirs = torch.arange(5, device="cuda", dtype=torch.bfloat16)
    ours = DeviceArray.view(context, theirs)
    assert ours.pointer == theirs.data_ptr()
    assert ours.numpy().astype(int).tolist() == [0, 1, 2, 3, 4]


def illegal() -> str:
    """Run a kernel that writes where it may not, and give what is said of it."""
    from tilewright.runtime.cuda.device.availability import Available
    from tilewright.runtime.cuda.driver.errors import DeviceError

    found = availability()
    assert isinstance(found, Available)
    context = found.context()
    cubin = compile_cuda(SOURCE, context.device.arch)
    array = DeviceArray.of(context, np.zeros(256, np.float32))
    context.load(cubin).kernel("wild").launch((1, 1, 1), (1, 1, 1), pack(array))
    try:
        context.synchronize()
    except DeviceError as error:
        return f"{error.status} {error.sticky} {context.lost}"
    return "nothing"


def test_an_illegal_address_loses_its_process_and_no_other(context: DeviceContext) -> None:
    command = [sys.executable, "-c", WILD]
    root = Path(__file__).parents[3]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.stdout == "700 True True\n", done.stderr
    test_a_kernel_computes(context, compile_cuda(SOURCE, context.device.arch, name="scale"))
