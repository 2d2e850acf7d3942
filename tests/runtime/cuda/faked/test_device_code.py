from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from tilewright.codegen.artifact import Parameter, ToldSize
from tilewright.codegen.cuda.artifact import CudaArtifact, KernelLaunch, Part, Stop, Temporary
from tilewright.runtime.cuda.device import code as device_code
from tilewright.runtime.cuda.device.array import DeviceArray
from tilewright.runtime.cuda.device.availability import Available, NoDevice, Unavailable
from tilewright.runtime.cuda.device.code import DeviceCode
from tilewright.runtime.cuda.device.context import DeviceContext, DeviceMemory
from tilewright.runtime.cuda.device.loaded import Loaded
from tilewright.runtime.cuda.driver.errors import LaunchError
from tilewright.runtime.machine.timing import measure
from tilewright.tir.dim import Dim
from tilewright.tir.dtype import FLOAT32
from tilewright.tir.sizes import size_of
from tilewright.tir.target.target import Target

from ..fake_driver import FakeDriver

SOURCE = """
extern "C" __global__ void pack_weights(const float *w, float *packed)
{
    packed[threadIdx.x] = w[threadIdx.x];
}
extern "C" __global__ void first(const float *a, float *between)
{
    between[threadIdx.x] = a[threadIdx.x];
}
extern "C" __global__ void second(const float *between, const float *packed, float *c)
{
    c[threadIdx.x] = between[threadIdx.x] * packed[threadIdx.x];
}
"""
ONE = (1, 1, 1)


def parameter(name: str, size: int, role: str) -> Parameter:
    return Parameter(name, FLOAT32, (size,), role)  # type: ignore[arg-type]


W, PACKED = parameter("W", 6, "constant"), parameter("packed", 7, "prepared")
A, C = parameter("A", 8, "input"), parameter("C", 9, "output")
ARTIFACT = CudaArtifact(
    "layer",
    SOURCE,
    Target.parse("cuda:sm_90a"),
    run=Part(
        (A, PACKED, C),
        (
            KernelLaunch("first", (2, 1, 1), (8, 1, 1), ("A", "between")),
            KernelLaunch("second", ONE, (9, 1, 1), ("between", "packed", "C"), shared_bytes=64),
        ),
        (Temporary("between", FLOAT32, (10,)),),
    ),
    prepare=Part((W, PACKED), (KernelLaunch("pack_weights", ONE, (6, 1, 1), ("W", "packed")),)),
)
INPUT = np.arange(8, dtype=np.float32)


@pytest.fixture(autouse=True)
def _device(context: DeviceContext, monkeypatch: pytest.MonkeyPatch, nvrtc: object) -> None:
    found = Available(context.driver, (context.device,))
    monkeypatch.setattr(device_code, "availability", lambda: found)


def made() -> DeviceCode:
    return DeviceCode(ARTIFACT, {"W": np.ones(6, np.float32)})


def launches(fake: FakeDriver) -> list[tuple[str, ...]]:
    """Kernel, grid, block, shared bytes, stream of each launch, and the sizes of its arrays."""
    calls = [call.split() for call in fake.calls() if call.startswith("cuLaunchKernel")]
    return [
        (*words[1:6], *(word.partition(":")[2] for word in words[7:] if word.startswith("d")))
        for words in calls
    ]


FIRST = ("first", "(2,1,1)", "(8,1,1)", "0", "default", "32", "40")
SECOND = ("second", "(1,1,1)", "(9,1,1)", "64", "default", "40", "28", "36")


def test_a_call_copies_in_launches_in_order_and_copies_out(fake: FakeDriver) -> None:
    code = made()
    output = np.full(9, 7, np.float32)
    code.run([INPUT, output], 1)
    assert launches(fake) == [
        ("pack_weights", "(1,1,1)", "(6,1,1)", "0", "default", "24", "28"),
        FIRST,
        SECOND,
    ]
    assert output.tolist() == [0.0] * 9  # what the fake's memory holds
    code.run([INPUT, output], 1)
    calls = fake.calls()
    assert [call.partition(" ")[0] for call in calls] == [
        *("cuMemAlloc", "cuMemcpyHtoD", "cuStreamSynchronize", "cuMemAlloc", "cuMemAlloc"),
        *("cuLaunchKernel", "cuLaunchKernel", "cuMemcpyDtoH"),
        *("cuMemFree", "cuMemFree", "cuMemFree"),
    ]


def test_what_a_kernel_writes_for_the_next_is_what_that_reads(fake: FakeDriver) -> None:
    code = made()
    code.run([INPUT, np.empty(9, np.float32)], 1)
    prepare, first, second = (c.split() for c in fake.calls() if c.startswith("cuLaunchKernel"))
    assert first[-1] == second[-3]  # between
    assert prepare[-1] == second[-2]  # packed


def test_a_bound_call_runs_on_arrays_that_stay(fake: FakeDriver) -> None:
    code = made()
    call = code.bind([INPUT, np.empty(9, np.float32)], 1)
    fake.calls()
    call()
    call()
    names = [line.split()[0] for line in fake.calls()]
    assert names == ["cuLaunchKernel", "cuLaunchKernel", "cuCtxSynchronize"] * 2


def test_a_bound_call_is_timed_by_the_device(fake: FakeDriver) -> None:
    """Two kernels of the fake's take 20 us."""
    code = made()
    call = code.bind([INPUT, np.empty(9, np.float32)], 1)
    warm, cold = measure(call, 0.0), measure(call, 0.0, cache="cold")
    assert (warm.repeats, warm.median) == (50, pytest.approx(20e-6))
    assert (cold.repeats, cold.median) == (1, pytest.approx(20e-6))


def test_an_array_that_vectors_cannot_be_loaded_from_is_refused(context: DeviceContext) -> None:
    empty = DeviceArray(DeviceMemory(context, 0x1004, 0, owner=None), (0,), np.float32)
    with pytest.raises(LaunchError) as caught:
        Loaded(context, {}).bound(ARTIFACT.run, {"A": empty, "between": empty})
    assert str(caught.value) == (
        "LaunchError: launch: 'A' begins at 0x1004; expected a multiple of 16 bytes, since kernels "
        "load as many at once. [cuda-aligned]\n"
        "  Hint: a copy of a slice begins at one."
    )


def test_it_pickles_without_what_is_on_the_device(fake: FakeDriver) -> None:
    code = made()
    code.run([INPUT, np.empty(9, np.float32)], 1)
    again = pickle.loads(pickle.dumps(code))
    fake.calls()
    again.run([INPUT, np.empty(9, np.float32)], 1)
    assert [launch[0] for launch in launches(fake)] == ["pack_weights", "first", "second"]


def test_a_size_goes_with_the_call_and_makes_its_grid(fake: FakeDriver) -> None:
    n = Dim("n", low=0, high=8)
    a, c = (replace(p, shape=(size_of(n),)) for p in (A, C))
    launch = KernelLaunch(
        "sized", (4, 1, 1), (2, 1, 1), ("A", "C", "n"), stops=(Stop(0, "n", 1, 2, 0),)
    )
    source = 'extern "C" __global__ void sized(const float *a, float *c, int n) { c[0] = a[n]; }'
    part = Part((a, c), (launch,), sizes=("n",))
    artifact = CudaArtifact("some", source, ARTIFACT.target, part, sizes=(ToldSize(n, 0),))
    code = DeviceCode(artifact, {})
    for size, blocks in ((5, 3), (8, 4), (1, 1)):
        code.run([INPUT[:size], np.empty(size, np.float32)], 1)
        (words,) = [call.split() for call in fake.calls() if call.startswith("cuLaunchKernel")]
        assert words[2] == f"({blocks},1,1)"
        assert bytes.fromhex(words[6])[16:] == size.to_bytes(4, "little")
        assert [word.partition(":")[2] for word in words[7:]] == [str(4 * size)] * 2
    code.run([INPUT[:0], np.empty(0, np.float32)], 1)
    assert not [call for call in fake.calls() if call.startswith("cuLaunchKernel")]


def test_without_a_gpu_a_run_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        device_code, "availability", lambda: Unavailable("there is none", "get one")
    )
    with pytest.raises(NoDevice) as caught:
        DeviceCode(ARTIFACT, {}).run([INPUT, np.empty(9, np.float32)], 1)
    assert str(caught.value) == (
        "NoDevice: cuda: there is none. [cuda-unavailable]\n  Hint: get one"
    )
