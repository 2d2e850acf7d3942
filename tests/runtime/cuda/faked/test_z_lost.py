"""What comes after a kernel that reads where it may not; last, for nothing works after it."""

from __future__ import annotations

import gc

import pytest

from tilewright.runtime.cuda.device.context import DeviceContext
from tilewright.runtime.cuda.driver.errors import DeviceError
from tilewright.runtime.cuda.toolchain.compile import Cubin

from ..fake_driver import FakeDriver
from .test_launch import CUBIN


def test_an_illegal_address_loses_the_context(context: DeviceContext) -> None:
    fake = FakeDriver()
    assert isinstance(CUBIN, Cubin)
    kernel, memory = context.load(CUBIN).kernel("scale"), context.allocate(16)
    fake.fail("cuCtxSynchronize", 700)
    kernel.launch((1, 1, 1), (1, 1, 1), b"")
    with pytest.raises(DeviceError) as caught:
        context.synchronize()
    assert str(caught.value) == (
        "DeviceError: cuda: waiting for the device failed: an illegal memory access was "
        "encountered (CUDA_ERROR_ILLEGAL_ADDRESS, 700). [cuda-call]\n"
        "  Note: a kernel runs after its launch returned: an earlier one may be at fault.\n"
        "  Note: this process cannot use the device any more; another one can."
    )
    assert caught.value.sticky
    assert context.lost
    with pytest.raises(DeviceError) as again:
        kernel.launch((1, 1, 1), (1, 1, 1), b"")
    assert again.value.status == 700
    fake.calls()
    del memory
    gc.collect()
    assert fake.depth() == 0
