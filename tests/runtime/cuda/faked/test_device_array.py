from __future__ import annotations

import gc
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from tilewright.runtime.cuda.device import dlpack
from tilewright.runtime.cuda.device.array import DeviceArray, ExchangeError
from tilewright.runtime.cuda.device.context import DeviceContext
from tilewright.runtime.cuda.device.dlpack import CUDA, DlpackTensor
from tilewright.runtime.cuda.driver.errors import DeviceUseError

from ..fake_driver import FakeDriver

ARRAY = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


class Foreign:
    """An array of another library, with a capsule of ours."""

    def __init__(self, tensor: DlpackTensor) -> None:
        self.tensor = tensor

    def __dlpack__(self) -> object:
        return dlpack.export(self.tensor, None)


def tensor(array: DeviceArray, **changes: object) -> DlpackTensor:
    fields = {
        **{"pointer": array.pointer, "shape": array.shape, "strides": None, "dtype": array.dtype},
        **{"device": (CUDA, 0), "read_only": False, "owner": array},
    }
    return DlpackTensor(**{**fields, **changes})  # type: ignore[arg-type]


def refusal(context: DeviceContext, array: object) -> str:
    with pytest.raises(ExchangeError) as caught:
        DeviceArray.view(context, array)
    return str(caught.value)


def test_an_array_goes_to_the_device_and_back(context: DeviceContext, fake: FakeDriver) -> None:
    array = DeviceArray.of(context, ARRAY)
    assert (array.shape, array.dtype, array.nbytes) == ((2, 3, 4), np.float32, 96)
    assert array.pointer == array.memory.pointer
    assert np.array_equal(array.numpy(), ARRAY)
    empty = DeviceArray.empty(context, (0, 3), "int8")
    assert (empty.pointer, empty.numpy().shape) == (0, (0, 3))


def test_an_array_larger_than_its_memory_is_refused(
    context: DeviceContext, fake: FakeDriver
) -> None:
    with pytest.raises(DeviceUseError) as caught:
        DeviceArray(context.allocate(12), (4,), np.float32)
    assert str(caught.value) == (
        "DeviceUseError: cuda: an array of 16 bytes in memory of 12. [cuda-array-size]"
    )


def test_the_interface_of_cuda_arrays_tells_all(context: DeviceContext, fake: FakeDriver) -> None:
    array = DeviceArray.of(context, ARRAY)
    fake.calls()
    assert array.__cuda_array_interface__ == {
        "shape": (2, 3, 4),
        "typestr": "<f4",
        "data": (array.pointer, False),
        "strides": None,
        "stream": None,
        "version": 3,
    }
    assert fake.calls() == ["cuCtxSynchronize"]


def test_an_array_with_the_interface_is_seen_where_it_lies(
    context: DeviceContext, fake: FakeDriver
) -> None:
    array = DeviceArray.of(context, ARRAY)
    shown = {**array.__cuda_array_interface__, "strides": (48, 16, 4)}
    other = SimpleNamespace(__cuda_array_interface__=shown, keep=array)
    fake.calls()
    view = DeviceArray.view(context, other)
    assert "cuCtxSynchronize" in fake.calls()
    assert view.pointer == array.pointer
    del array, other
    gc.collect()
    assert np.array_equal(view.numpy(), ARRAY)


def test_an_array_of_dlpack_is_seen_where_it_lies_and_kept(
    context: DeviceContext, fake: FakeDriver
) -> None:
    array = DeviceArray.of(context, ARRAY)
    pointer = array.pointer
    view = DeviceArray.view(context, Foreign(tensor(array)))
    assert view.pointer == pointer
    del array
    gc.collect()
    assert np.array_equal(view.numpy(), ARRAY)
    assert fake.alive("d") == 1
    del view
    gc.collect()
    assert fake.alive("d") == 0


def test_our_own_array_is_itself(context: DeviceContext, fake: FakeDriver) -> None:
    array = DeviceArray.of(context, ARRAY)
    assert DeviceArray.view(context, array) is array


@pytest.mark.parametrize("version", [None, (1, 0)])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, ml_dtypes.bfloat16])
def test_a_capsule_tells_all(
    dtype: type, version: tuple[int, int] | None, context: DeviceContext, fake: FakeDriver
) -> None:
    array = DeviceArray.of(context, ARRAY.astype(dtype))
    assert array.__dlpack_device__() == (CUDA, 0)
    fake.calls()
    seen = dlpack.take(array.__dlpack__(max_version=version))
    assert fake.calls() == ["cuCtxSynchronize"]
    assert (seen.pointer, seen.shape, seen.strides) == (array.pointer, (2, 3, 4), (12, 4, 1))
    assert (seen.dtype, seen.device) == (np.dtype(dtype), (CUDA, 0))
    array.__dlpack__(stream=-1)
    assert fake.calls() == []


def test_a_copy_is_not_made_on_the_way(context: DeviceContext, fake: FakeDriver) -> None:
    array = DeviceArray.of(context, ARRAY)
    array.__dlpack__(dl_device=(CUDA, 0), copy=False)
    with pytest.raises(BufferError, match="never copied"):
        array.__dlpack__(copy=True)
    with pytest.raises(BufferError, match="never copied"):
        array.__dlpack__(dl_device=(1, 0))
    with pytest.raises((BufferError, RuntimeError), match="device"):
        np.from_dlpack(array)


def test_an_array_of_another_device_is_refused(context: DeviceContext, fake: FakeDriver) -> None:
    array = DeviceArray.of(context, ARRAY)
    assert refusal(context, Foreign(tensor(array, device=(CUDA, 1)))) == (
        "ExchangeError: cuda: the array is on device (2, 1) of DLPack, and device (2, 0) is used "
        "here. [exchange-device]\n"
        "  Hint: PyTorch: x.cuda(); CuPy: cupy.asarray(x)."
    )
    assert "is on device (1, 0) of DLPack" in refusal(context, ARRAY)


def test_an_array_with_gaps_is_refused(context: DeviceContext, fake: FakeDriver) -> None:
    array = DeviceArray.of(context, ARRAY)
    assert refusal(context, Foreign(tensor(array, shape=(2, 3), strides=(12, 4)))) == (
        "ExchangeError: cuda: the array of shape (2, 3) has strides (12, 4), expected (3, 1): "
        "row-major without gaps. [exchange-layout]\n"
        "  Hint: PyTorch: x.contiguous(); CuPy: cupy.ascontiguousarray(x)."
    )
    ones = Foreign(tensor(array, shape=(1, 24, 1), strides=(7, 1, 9)))
    assert DeviceArray.view(context, ones).shape == (1, 24, 1)


def test_what_shows_no_memory_is_refused(context: DeviceContext, fake: FakeDriver) -> None:
    assert refusal(context, [1, 2]) == (
        "ExchangeError: cuda: a list shows no memory of a device; expected __dlpack__ or "
        "__cuda_array_interface__. [exchange-kind]\n"
        "  Hint: an array of the host: DeviceArray.of(context, array)."
    )


def test_a_capsule_that_is_none_is_refused(context: DeviceContext, fake: FakeDriver) -> None:
    class Odd:
        def __dlpack__(self) -> object:
            return 7

    assert refusal(context, Odd()) == (
        "ExchangeError: cuda: __dlpack__ of a Odd gave 7, which is no capsule of a tensor, or one "
        "that is used up. [exchange-capsule]"
    )


def test_a_type_without_a_name_is_refused(context: DeviceContext, fake: FakeDriver) -> None:
    array = DeviceArray.of(context, ARRAY.astype(ml_dtypes.bfloat16))
    with pytest.raises(ExchangeError) as caught:
        _ = array.__cuda_array_interface__
    assert str(caught.value) == (
        "ExchangeError: cuda: bfloat16 has no name in __cuda_array_interface__. "
        "[exchange-interface]\n"
        "  Hint: DLPack has one: torch.from_dlpack(x)."
    )
    unknown = DeviceArray.of(context, ARRAY.astype(ml_dtypes.float8_e4m3))
    with pytest.raises(ExchangeError) as caught:
        unknown.__dlpack__()
    assert str(caught.value) == (
        "ExchangeError: cuda: DLPack and NumPy have no common dtype for float8_e4m3. "
        "[exchange-dtype]"
    )
