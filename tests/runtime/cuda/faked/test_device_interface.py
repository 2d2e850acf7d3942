"""Arrays of the device in the calls of an engine."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tilewright.runtime.arrays import ArgumentTypeError, ArgumentValueError
from tilewright.runtime.cuda.device import program as device_program
from tilewright.runtime.cuda.device.array import DeviceArray
from tilewright.runtime.cuda.device.availability import Available
from tilewright.runtime.cuda.device.context import DeviceContext
from tilewright.runtime.cuda.toolchain.compile import compile_cuda
from tilewright.runtime.engine.engine import Engine
from tilewright.runtime.engine.gpu_code import GpuCode
from tilewright.runtime.engine.parts import EngineParts
from tilewright.runtime.model.report import EngineReport, MemoryPlan

from ....gpu_program import KERNELS, N, passed_on
from ..fake_driver import FakeDriver

X = np.arange(N, dtype=np.float32)


@pytest.fixture(autouse=True)
def _device(context: DeviceContext, monkeypatch: pytest.MonkeyPatch, nvrtc: object) -> None:
    found = Available(context.driver, (context.device,))
    monkeypatch.setattr(device_program, "availability", lambda: found)


def made() -> Engine:
    cubins = tuple(compile_cuda(k.source, "sm_90a", name=k.name) for k in KERNELS)
    constants = (np.ones(N, np.float32), None)
    report, plan = EngineReport(()), MemoryPlan(0, 0, 0, 0)
    return Engine(EngineParts(GpuCode(passed_on(), cubins), constants, report, plan))


def empty(context: DeviceContext) -> DeviceArray:
    return DeviceArray.empty(context, (N,), np.float32)


def shown(array: DeviceArray, **changes: object) -> SimpleNamespace:
    """An array of another library, which shows its memory by the older protocol."""
    interface = {**array.__cuda_array_interface__, **changes}
    return SimpleNamespace(__cuda_array_interface__=interface, kept=array)


def test_arrays_of_the_host_need_nothing_else(fake: FakeDriver) -> None:
    engine = made()
    np.testing.assert_array_equal(engine(X), X)


def test_arrays_of_the_device_are_used_where_they_lie(
    context: DeviceContext, fake: FakeDriver
) -> None:
    engine = made()
    x, y = DeviceArray.of(context, X), empty(context)
    np.testing.assert_array_equal(engine(x), X)  # the output lies on the host
    fake.calls()
    given = engine.run({"x": shown(x)}, out={"y": shown(y)})["y"]
    copies = [call for call in fake.calls() if call.startswith(("cuMemcpyHtoD", "cuMemcpyDtoH"))]
    assert copies == []
    assert given.pointer == y.pointer  # type: ignore[attr-defined]
    np.testing.assert_array_equal(y.numpy(), X)


def test_a_context_is_bound_to_arrays_of_the_device(
    context: DeviceContext, fake: FakeDriver
) -> None:
    engine = made()
    x, y = DeviceArray.of(context, X), empty(context)
    bound = engine.context().bind({"x": x}, {"y": y})
    bound.run()
    np.testing.assert_array_equal(y.numpy(), X)
    mixed = engine.context().bind({"x": 2 * X}, {"y": y})
    mixed.run()
    np.testing.assert_array_equal(y.numpy(), 2 * X)


def test_another_type_or_shape_is_refused(context: DeviceContext, fake: FakeDriver) -> None:
    engine = made()
    with pytest.raises(ArgumentTypeError) as wrong_type:
        engine(DeviceArray.of(context, np.zeros(N, np.int32)))
    assert wrong_type.value.message == "hand: 'x' is int32, expected float32."
    with pytest.raises(ArgumentValueError) as wrong_shape:
        engine(DeviceArray.of(context, np.zeros((N, 1), np.float32)))
    assert wrong_shape.value.message == "hand: 'x' has shape (64, 1), expected (64,)."


def test_memory_that_begins_elsewhere_is_refused(context: DeviceContext, fake: FakeDriver) -> None:
    engine = made()
    wide = DeviceArray.empty(context, (N + 1,), np.float32)
    at = wide.pointer + 4
    with pytest.raises(ArgumentValueError) as caught:
        engine(shown(wide, shape=(N,), data=(at, False)))
    assert str(caught.value) == (
        f"ArgumentValueError: hand: 'x' starts at {at:#x} of the device; expected a multiple of "
        "16. [argument-device-aligned]\n"
        "  Hint: PyTorch: x.clone(); CuPy: x.copy()."
    )


def test_an_output_has_memory_of_its_own(context: DeviceContext, fake: FakeDriver) -> None:
    engine = made()
    x = DeviceArray.of(context, X)
    with pytest.raises(ArgumentValueError) as caught:
        engine.run({"x": x}, out={"y": x})
    assert str(caught.value) == (
        "ArgumentValueError: hand: 'y' is written and shares memory of the device with 'x'. "
        "[argument-device-overlap]\n"
        "  Hint: an array of its own: torch.empty_like(x), cupy.empty_like(x)."
    )
