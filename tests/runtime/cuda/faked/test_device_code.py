from __future__ import annotations

import pickle

import numpy as np
import pytest

import tilewright as tw
from tilewright.runtime.cuda import device_code
from tilewright.runtime.cuda.availability import Available
from tilewright.runtime.cuda.compile import Cubin
from tilewright.runtime.cuda.context import Context
from tilewright.runtime.kernel import Kernel
from tilewright.schedule.library import deal_out
from tilewright.schedule.schedule import Schedule
from tilewright.tir import te

from ..fake_driver import FakeDriver

PTX = b"""\
.version 8.0
.target sm_90
.address_size 64
.visible .entry tw_matmul_prepare() { ret; }
.visible .entry tw_matmul() { ret; }
\0"""


def product(monkeypatch: pytest.MonkeyPatch, context: Context) -> Kernel:
    """C = A B with B packed, in blocks of 8 threads; what it is compiled to is not looked at."""
    available = Available(context.driver, (context.device,))
    monkeypatch.setattr(Available, "context", lambda self, device=0: context)
    monkeypatch.setattr(device_code, "availability", lambda: available)
    made = Cubin("matmul", "compute_90", PTX, None, "NVRTC", 0.0)
    monkeypatch.setattr(device_code, "compile_cuda", lambda source, arch, *, name: made)
    a = te.placeholder((5, 7), "float32", name="A")
    b = te.placeholder((7, 6), "float32", name="B", constant=True)
    k = te.reduce_axis(7, name="k")
    c = te.compute((5, 6), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    sch = Schedule(te.func(a, b, c, name="matmul"), tw.Target.parse("cuda:sm_90a"))
    sch.pack("B", 4)
    deal_out(sch, "C", 8)
    weights = np.arange(42, dtype=np.float32).reshape(7, 6)
    return tw.build(sch, "cuda:sm_90a", constants={"B": weights})


def names(fake: FakeDriver) -> list[str]:
    return [call.split()[0] for call in fake.calls()]


def test_constants_are_prepared_at_the_first_run_alone(
    monkeypatch: pytest.MonkeyPatch, context: Context, fake: FakeDriver
) -> None:
    kernel = product(monkeypatch, context)
    a = np.ones((5, 7), np.float32)
    assert not fake.calls()
    kernel(a)
    first = names(fake)
    assert first.count("cuModuleLoadDataEx") + first.count("cuModuleLoadData") == 1
    assert first.count("cuLaunchKernel") == 2  # prepare, run
    kernel(a)
    assert names(fake).count("cuLaunchKernel") == 1


def test_a_bound_call_launches_and_waits(
    monkeypatch: pytest.MonkeyPatch, context: Context, fake: FakeDriver
) -> None:
    kernel = product(monkeypatch, context)
    call = kernel.bind_copies(np.ones((5, 7), np.float32))
    fake.calls()
    call()
    assert [name for name in names(fake) if name.startswith(("cuLaunch", "cuCtxS"))] == [
        "cuLaunchKernel",
        "cuCtxSynchronize",
    ]


def test_a_kernel_pickles_without_what_is_on_the_device(
    monkeypatch: pytest.MonkeyPatch, context: Context, fake: FakeDriver
) -> None:
    kernel = product(monkeypatch, context)
    kernel(np.ones((5, 7), np.float32))
    copy = pickle.loads(pickle.dumps(kernel))
    assert copy.source == kernel.source
