from __future__ import annotations

import gc
import threading

import ml_dtypes
import numpy as np
import pytest

from tilewright.runtime.cuda.device.context import DeviceContext
from tilewright.runtime.cuda.driver.driver import Driver
from tilewright.runtime.cuda.driver.errors import (
    DeviceError,
    DeviceMemoryError,
    DeviceUseError,
)

from ..fake_driver import FakeDriver


def test_a_device_says_what_it_is(driver: Driver) -> None:
    (device,) = driver.devices()
    assert (device.index, device.name, device.capability) == (0, "Fake H200", (9, 0))
    assert device.arch == "sm_90a"
    assert (device.memory_bytes, device.l2_bytes) == (1 << 30, 60 << 20)
    assert (device.multiprocessors, device.threads, device.registers) == (132, 2048, 65536)
    assert (device.shared_bytes, device.block_shared_bytes) == (228 << 10, 227 << 10)
    assert (device.block_threads, device.max_block) == (1024, (1024, 1024, 64))
    assert device.max_grid == (2147483647, 65535, 65535)
    assert driver.version() == (13, 0)
    assert driver.name.partition(" ")[0] in {"PyCUDA", "cuda-bindings"}


def test_every_call_makes_its_context_current_and_lets_it_go(
    context: DeviceContext, fake: FakeDriver
) -> None:
    memory = context.allocate(64)
    assert fake.depth() == 0
    assert fake.pushes_and_pops() == (1, 1)
    with context:
        assert fake.depth() == 1
        memory.fill(0)
        memory.fill(1)
        with context:
            memory.fill(2)
        assert fake.depth() == 1
    assert fake.pushes_and_pops() == (1, 1)


def test_a_failure_lets_the_context_go_too(context: DeviceContext, fake: FakeDriver) -> None:
    fake.fail("cuMemAlloc", 801)
    with pytest.raises(DeviceError):
        context.allocate(64)
    assert fake.depth() == 0
    with pytest.raises(ZeroDivisionError), context:
        _ = 1 // 0
    assert fake.depth() == 0


def test_memory_comes_back_when_nobody_holds_it(context: DeviceContext, fake: FakeDriver) -> None:
    memory = context.allocate(1000)
    assert fake.calls() == ["cuMemAlloc 1000"]
    assert (memory.size, fake.alive("d")) == (1000, 1)
    del memory
    gc.collect()
    assert fake.calls() == ["cuMemFree"]
    assert fake.alive("d") == 0


def test_memory_is_given_back_once(context: DeviceContext, fake: FakeDriver) -> None:
    memory = context.allocate(1000)
    memory.free()
    memory.free()
    del memory
    gc.collect()
    assert fake.calls() == ["cuMemAlloc 1000", "cuMemFree"]


def test_memory_comes_back_in_another_thread_too(context: DeviceContext, fake: FakeDriver) -> None:
    held = [context.allocate(64), context.stream(), context.event(), context.pin(64)]
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    gc.collect()
    assert [fake.alive(kind) for kind in "dseh"] == [0, 0, 0, 0]


def test_no_bytes_need_no_memory(context: DeviceContext, fake: FakeDriver) -> None:
    empty, pinned = context.allocate(0), context.pin(0)
    empty.copy_in(np.empty((0, 3)))
    empty.copy_out(np.empty((0, 3)))
    empty.fill(0)
    empty.copy_from(context.allocate(0))
    assert pinned.array((0, 2), np.float32).shape == (0, 2)
    assert empty.pointer == 0
    assert fake.calls() == []


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.bool_, ml_dtypes.bfloat16, np.float64])
def test_what_goes_in_comes_out(dtype: type, context: DeviceContext, fake: FakeDriver) -> None:
    array = np.arange(24).reshape(2, 3, 4).astype(dtype)
    memory, other = context.allocate(array.nbytes), context.allocate(array.nbytes)
    memory.copy_in(array)
    other.copy_from(memory)
    result = np.zeros_like(array)
    other.copy_out(result)
    assert result.tobytes() == array.tobytes()
    other.fill(255)
    other.copy_out(result)
    assert set(result.tobytes()) == {255}
    assert fake.calls()[2:] == [
        f"cuMemcpyHtoD {array.nbytes} default",
        "cuStreamSynchronize default",  # what is not pinned may yet be on its way
        f"cuMemcpyDtoDAsync {array.nbytes} default",
        "cuStreamSynchronize default",
        f"cuMemcpyDtoH {array.nbytes} default",
        f"cuMemsetD8Async 255 {array.nbytes} default",
        "cuStreamSynchronize default",
        f"cuMemcpyDtoH {array.nbytes} default",
    ]


def test_a_part_of_memory_is_copied(context: DeviceContext, fake: FakeDriver) -> None:
    memory = context.allocate(16)
    memory.fill(0)
    memory.copy_in(np.array([7, 8], np.int32), at=8)
    result = np.zeros(4, np.int32)
    memory.copy_out(result)
    assert result.tolist() == [0, 0, 7, 8]
    scalar = np.zeros((), np.int32)
    memory.copy_out(scalar, at=12)
    assert scalar == 8


def test_a_copy_that_does_not_fit_is_refused(context: DeviceContext, fake: FakeDriver) -> None:
    memory = context.allocate(16)
    fake.calls()
    refused = {
        lambda: memory.copy_in(np.zeros(5, np.int32)): (
            "copying 20 bytes at 0 of memory of 16. [cuda-copy-bounds]"
        ),
        lambda: memory.copy_out(np.zeros(2, np.int32), at=12): (
            "copying 8 bytes at 12 of memory of 16. [cuda-copy-bounds]"
        ),
        lambda: memory.copy_in(np.zeros((4, 4), np.int8).T[1:]): (
            "copying an array of strides (1, 4); expected row-major order without gaps. "
            "[cuda-copy-layout]\n  Hint: np.ascontiguousarray(array), for a copy to the device."
        ),
        lambda: memory.copy_from(context.allocate(8)): (
            "copying 8 bytes to memory of 16; expected as many. [cuda-copy-size]"
        ),
    }
    for copy, text in refused.items():
        with pytest.raises(DeviceUseError) as caught:
            copy()
        assert str(caught.value) == f"DeviceUseError: cuda: {text}"
    assert not [call for call in fake.calls() if call.startswith("cuMemcpy")]


def test_pinned_memory_lives_as_long_as_its_arrays(
    context: DeviceContext, fake: FakeDriver
) -> None:
    array = context.pin(24).array((2, 3), np.float32)
    row = array[1]
    del array
    gc.collect()
    assert fake.alive("h") == 1
    row[:] = 3
    del row
    gc.collect()
    assert fake.calls() == ["cuMemHostAlloc 24 0", "cuMemFreeHost"]


def test_copies_on_a_stream_are_put_into_it(context: DeviceContext, fake: FakeDriver) -> None:
    stream, memory = context.stream(), context.allocate(8)
    array = context.pin(8).array((2,), np.float32)
    array[:] = 1, 2
    memory.copy_in(array, stream)
    array[:] = 0
    memory.copy_out(array, stream)
    memory.fill(3, stream)
    stream.synchronize()
    assert array.tolist() == [1, 2]
    calls = fake.calls()
    name = calls[-1].split()[1]
    assert name.startswith("stream")
    assert [call for call in calls if name in call] == [
        f"cuMemcpyHtoDAsync 8 {name}",
        f"cuMemcpyDtoHAsync 8 {name}",
        f"cuMemsetD8Async 3 8 {name}",
        f"cuStreamSynchronize {name}",
    ]
    memory.fill(3, stream)
    memory.copy_from(context.allocate(8), stream)
    assert [call for call in fake.calls() if name in call] == [
        f"cuMemsetD8Async 3 8 {name}",
        f"cuMemcpyDtoDAsync 8 {name}",
    ]


def test_events_order_streams_and_tell_time(context: DeviceContext, fake: FakeDriver) -> None:
    memory = context.allocate(16)
    fake.calls()
    first, second = context.stream(), context.stream()
    begin, end = context.event(), context.event()
    begin.record(first)
    second.wait(begin)
    memory.fill(0, second)
    end.record(second)
    end.synchronize()
    assert end.seconds_since(begin) == pytest.approx(50e-6)
    context.event().record()
    calls = [call.partition(" ")[0] for call in fake.calls()]
    assert calls == [
        *("cuStreamCreate", "cuStreamCreate", "cuEventCreate", "cuEventCreate"),
        *("cuEventRecord", "cuStreamWaitEvent", "cuMemsetD8Async", "cuEventRecord"),
        *(
            "cuEventSynchronize",
            "cuEventElapsedTime",
            "cuEventCreate",
            "cuEventRecord",
            "cuEventDestroy",
        ),
    ]


def test_free_memory_is_told(context: DeviceContext, fake: FakeDriver) -> None:
    assert context.memory() == (1 << 29, 1 << 30)


def test_more_memory_than_there_is_is_refused_with_the_numbers(
    context: DeviceContext, fake: FakeDriver
) -> None:
    with pytest.raises(DeviceMemoryError) as caught:
        context.allocate(1 << 31)
    assert str(caught.value) == (
        "DeviceMemoryError: cuda: allocating 2147483648 bytes failed: the device has 536870912 "
        "bytes free of 1073741824. [cuda-memory]\n"
        "  Hint: give memory back, also that of other processes: see nvidia-smi."
    )
    assert isinstance(caught.value, MemoryError)


def test_a_failed_call_says_what_it_was_for(context: DeviceContext, fake: FakeDriver) -> None:
    fake.fail("cuStreamCreate", 400)
    with pytest.raises(DeviceError) as caught:
        context.stream()
    assert str(caught.value) == (
        "DeviceError: cuda: making a stream failed: invalid resource handle "
        "(CUDA_ERROR_INVALID_HANDLE, 400). [cuda-call]"
    )
    assert (caught.value.status, caught.value.sticky, context.lost) == (400, False, False)


def test_threads_use_one_context(context: DeviceContext, fake: FakeDriver) -> None:
    wrong: list[str] = []

    def work(number: int) -> None:
        for size in range(1, 40):
            array = np.full(size, number, np.int32)
            memory = context.allocate(array.nbytes)
            memory.copy_in(array)
            result = np.zeros_like(array)
            memory.copy_out(result)
            if result.tolist() != array.tolist() or fake.depth():
                wrong.append(f"thread {number}, size {size}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
