"""A kernel of the fake driver takes 10 us, and writing memory 50."""

from __future__ import annotations

import pytest

from tilewright.runtime.cuda.device.context import DeviceContext, DeviceKernel, Stream
from tilewright.runtime.cuda.device.timing import measure_on
from tilewright.runtime.cuda.driver.errors import DeviceError

from ..fake_driver import FakeDriver
from .test_launch import CUBIN


@pytest.fixture
def kernel(context: DeviceContext) -> DeviceKernel:
    return context.load(CUBIN).kernel("scale")


def test_a_warm_sample_is_a_graph_of_a_millisecond(
    kernel: DeviceKernel, context: DeviceContext, fake: FakeDriver
) -> None:
    timing = measure_on(
        context, lambda stream: kernel.launch((1, 1, 1), (32, 1, 1), b"", stream=stream), 0.0
    )
    assert timing.repeats == 100
    assert timing.cache == "warm"
    assert len(timing.samples) == 5
    assert timing.samples == pytest.approx([10e-6] * 5)
    calls = fake.calls()
    assert calls.count("cuMemsetD8Async") == 0
    launches = [call for call in calls if call.startswith("cuGraphLaunch")]
    # 1, 4, 16 and 64 calls, to find out how many are wanted
    assert len(launches) == 4 + 5
    assert len({call.split()[1] for call in launches[4:]}) == 1


def test_a_cold_sample_is_one_call_after_the_caches_were_written(
    kernel: DeviceKernel, context: DeviceContext, fake: FakeDriver
) -> None:
    def work(stream: Stream) -> None:
        kernel.launch((1, 1, 1), (32, 1, 1), b"", stream=stream)
        kernel.launch((2, 1, 1), (32, 1, 1), b"", stream=stream)

    timing = measure_on(context, work, 0.0, cache="cold")
    assert (timing.repeats, timing.cache) == (1, "cold")
    assert timing.samples == pytest.approx([20e-6] * 5)
    calls = [call.partition(" ")[0] for call in fake.calls()]
    first = calls.index("cuMemsetD8Async")
    assert calls[first : first + 5] == [
        *("cuMemsetD8Async", "cuEventRecord", "cuGraphLaunch"),
        *("cuEventRecord", "cuEventSynchronize"),
    ]
    assert calls.count("cuLaunchKernel") == 2 + 2  # the warm-up, and what is recorded
    assert calls.count("cuMemsetD8Async") == 5


def test_a_call_of_more_than_a_millisecond_is_a_sample(
    kernel: DeviceKernel, context: DeviceContext, fake: FakeDriver
) -> None:
    def work(stream: Stream) -> None:
        for _ in range(120):
            kernel.launch((1, 1, 1), (32, 1, 1), b"", stream=stream)

    timing = measure_on(context, work, 0.0)
    assert timing.repeats == 1
    assert timing.median == pytest.approx(1.2e-3)


def test_a_call_that_does_nothing_ends_too(context: DeviceContext, fake: FakeDriver) -> None:
    event = context.event()

    def work(stream: Stream) -> None:
        event.record(stream)

    assert measure_on(context, work, 0.0).median == 0.0


def test_what_the_call_raises_is_told(
    kernel: DeviceKernel, context: DeviceContext, fake: FakeDriver
) -> None:
    def work(stream: Stream) -> None:
        kernel.launch((1, 1, 1), (32, 1, 1), b"", stream=stream)

    fake.fail("cuLaunchKernel", 400)
    with pytest.raises(DeviceError, match="launching 'scale' failed: invalid resource handle"):
        measure_on(context, work, 0.0)
