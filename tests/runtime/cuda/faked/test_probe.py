from __future__ import annotations

from collections.abc import Iterator

import pytest

from tilewright.runtime.cuda.device import probe
from tilewright.runtime.cuda.device.context import DeviceContext
from tilewright.runtime.cuda.device.probe import DeviceProbe
from tilewright.runtime.machine.timing import Sampler

from ..fake_driver import FakeDriver

pytestmark = pytest.mark.usefixtures("nvrtc")
OPERATIONS = 2 * (132 * 8 * 256) * 8 * 4096  # 8 blocks for each of 132 multiprocessors


def test_the_probe_counts_multiply_adds(context: DeviceContext, fake: FakeDriver) -> None:
    """A kernel of the fake's takes 10 us."""
    made = DeviceProbe(context)
    assert made.gflops() == pytest.approx(OPERATIONS / 10e-6 / 1e9)
    launches = {call.split()[2] for call in fake.calls() if call.startswith("cuLaunchKernel")}
    assert launches == {f"({132 * 8},1,1)"}


@pytest.mark.parametrize(
    ("samples", "taken", "counts"),
    [
        ([4e-3, 2e-3, 1e-3, 1.005e-3, 9.0], 4, 1.005e-3),  # a clock that comes up
        ([1e-3, 1e-3, 9.0], 2, 1e-3),
        ([1e-3, 2e-3] * 60, 101, 1e-3),  # one that never comes to rest
    ],
)
def test_a_reading_is_taken_when_the_clock_is_up(
    samples: list[float],
    taken: int,
    counts: float,
    context: DeviceContext,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left: Iterator[float] = iter(samples)
    monkeypatch.setattr(probe, "sampler_on", lambda *_: Sampler(lambda: next(left), 1))
    assert DeviceProbe(context).gflops() == pytest.approx(OPERATIONS / counts / 1e9)
    assert len(list(left)) == len(samples) - taken
