from __future__ import annotations

import ctypes
import gc
import sys
import weakref

import ml_dtypes
import numpy as np
import pytest

from tilewright.runtime.cuda.device.dlpack import (
    CPU,
    DlpackTensor,
    NoCapsule,
    UnknownType,
    export,
    take,
)


class Owner:
    """Keeps an array, and can be watched."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array


def shown(array: np.ndarray, read_only: bool = False) -> DlpackTensor:
    strides = tuple(step // array.itemsize for step in array.strides)
    pointer = array.__array_interface__["data"][0]
    return DlpackTensor(
        pointer, array.shape, strides, array.dtype, (CPU, 0), read_only, Owner(array)
    )


class Exporter:
    """An array of the host that speaks DLPack through us."""

    def __init__(self, tensor: DlpackTensor, versioned: bool) -> None:
        self.tensor = tensor
        self.versioned = versioned

    def __dlpack__(self, **options: object) -> object:
        return export(self.tensor, (1, 0) if self.versioned else None)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.device


DTYPES = [np.bool_, np.int8, np.uint16, np.int64, np.float16, np.float32, np.float64, np.complex64]


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_takes_what_is_exported(dtype: type, versioned: bool) -> None:
    array = np.arange(24).reshape(2, 3, 4).astype(dtype).transpose(2, 0, 1)
    seen = np.from_dlpack(Exporter(shown(array), versioned))
    assert (seen.dtype, seen.shape, seen.strides) == (array.dtype, array.shape, array.strides)
    assert np.shares_memory(seen, array)
    assert np.array_equal(seen, array)


def test_what_numpy_takes_keeps_its_owner() -> None:
    tensor = shown(np.arange(6))
    watched = weakref.ref(tensor.owner)
    seen = np.from_dlpack(Exporter(tensor, versioned=True))
    del tensor
    gc.collect()
    assert watched() is not None
    assert seen.tolist() == list(range(6))
    del seen
    gc.collect()
    assert watched() is None


def test_a_capsule_that_nobody_takes_forgets_its_owner() -> None:
    for version in (None, (1, 0)):
        tensor = shown(np.arange(6))
        watched = weakref.ref(tensor.owner)
        capsule = export(tensor, version)
        del tensor
        gc.collect()
        assert watched() is not None
        del capsule
        gc.collect()
        assert watched() is None


def test_an_error_on_its_way_past_a_capsule_arrives() -> None:
    def fails(capsule: object) -> None:
        raise ZeroDivisionError

    for version in (None, (1, 0)):
        with pytest.raises(ZeroDivisionError):
            fails(export(shown(np.arange(6)), version))


def test_read_only_is_said_where_there_is_a_flag_for_it() -> None:
    seen = np.from_dlpack(Exporter(shown(np.arange(3), read_only=True), versioned=True))
    assert not seen.flags.writeable
    assert np.from_dlpack(Exporter(shown(np.arange(3)), versioned=True)).flags.writeable


@pytest.mark.parametrize("options", [{}, {"max_version": (1, 0)}])
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_numpy_exports_is_taken(dtype: type, options: dict[str, tuple[int, int]]) -> None:
    array = np.arange(24).reshape(4, 6).astype(dtype)[1:, ::2]
    tensor = take(array.__dlpack__(**options))
    assert tensor.pointer == array.__array_interface__["data"][0]
    assert (tensor.shape, tensor.strides) == ((3, 3), (6, 2))
    assert (tensor.dtype, tensor.device, tensor.read_only) == (array.dtype, (CPU, 0), False)


def test_what_is_taken_keeps_the_other_s_memory() -> None:
    array = np.arange(6)
    before = sys.getrefcount(array)
    tensor = take(array.__dlpack__())
    assert sys.getrefcount(array) == before + 1
    del tensor
    gc.collect()
    assert sys.getrefcount(array) == before


def test_a_capsule_is_taken_once() -> None:
    capsule = np.arange(6).__dlpack__()
    tensor = take(capsule)
    assert tensor.shape == (6,)
    for wrong in (capsule, object()):
        with pytest.raises(NoCapsule):
            take(wrong)


@pytest.mark.parametrize(
    "dtype",
    [
        *(ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2),
        *(ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2fnuz),
    ],
)
@pytest.mark.parametrize("version", [None, (1, 1)])
def test_types_that_numpy_lacks_come_back(dtype: type, version: tuple[int, int] | None) -> None:
    array = np.arange(4).astype(dtype)
    tensor = take(export(shown(array), version))
    assert (tensor.dtype, tensor.shape) == (np.dtype(dtype), (4,))
    assert ctypes.string_at(tensor.pointer, array.nbytes) == array.tobytes()


@pytest.mark.parametrize("dtype", ["U4", "M8[s]", ">f4", ml_dtypes.float8_e4m3])
def test_a_type_that_dlpack_lacks_is_refused(dtype: object) -> None:
    with pytest.raises(UnknownType):
        export(shown(np.zeros(2, dtype)), None)  # type: ignore[call-overload]


def test_no_dimension_and_no_item_are_shapes_too() -> None:
    for array in (np.zeros((), np.float32), np.zeros((0, 3), np.float32)):
        seen = np.from_dlpack(Exporter(shown(array), versioned=True))
        assert seen.shape == array.shape
        assert take(array.__dlpack__()).shape == array.shape
