"""Arrays on a device, and how other libraries' arrays become ours and ours theirs without a copy:
through `__cuda_array_interface__` and DLPack.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ....tir.errors import TilewrightError
from ...arrays import Array
from ..driver.errors import DeviceUseError
from . import dlpack
from .context import DeviceContext, DeviceMemory, Stream
from .dlpack import CUDA, CUDA_MANAGED, DlpackTensor, NoCapsule, UnknownType

_READY = -1  # of DLPack's `stream`: nobody has to wait


class ExchangeError(TilewrightError, TypeError):
    """An array cannot be handed over, or is none that can be taken as it is."""


class DeviceArray:
    """An array in a device's memory, in row-major order without gaps.

    memory: its bytes, of ours or of another library. Before another library sees it, all that runs
    on the device is waited for.
    """

    def __init__(self, memory: DeviceMemory, shape: tuple[int, ...], dtype: npt.DTypeLike) -> None:
        """Of memory that has at least as many bytes."""
        self.memory = memory
        self.shape = shape
        self.dtype: np.dtype[np.generic] = np.dtype(dtype)
        if self.nbytes > memory.size:
            raise DeviceUseError(
                f"cuda: an array of {self.nbytes} bytes in memory of {memory.size}.",
                code="cuda-array-size",
            )

    @classmethod
    def empty(
        cls, context: DeviceContext, shape: tuple[int, ...], dtype: npt.DTypeLike
    ) -> DeviceArray:
        """An array of anything. Raises: DeviceMemoryError."""
        size = prod(shape) * np.dtype(dtype).itemsize
        return cls(context.allocate(size), shape, dtype)

    @classmethod
    def of(cls, context: DeviceContext, array: Array, stream: Stream | None = None) -> DeviceArray:
        """A copy of an array of the host; see Memory.copy_in for `stream`."""
        made = cls.empty(context, array.shape, array.dtype)
        made.memory.copy_in(array, stream)
        return made

    @classmethod
    def view(cls, context: DeviceContext, array: object) -> DeviceArray:
        """Another library's array on this device, not copied. Raises: ExchangeError."""
        if isinstance(array, DeviceArray):
            return array
        tensor = _taken(array, context.device.index)
        if tensor.device not in ((CUDA, context.device.index), (CUDA_MANAGED, 0)):
            raise ExchangeError(
                f"cuda: the array is on device {tensor.device} of DLPack, and device "
                f"{(CUDA, context.device.index)} is used here.",
                code="exchange-device",
                hints=("PyTorch: x.cuda(); CuPy: cupy.asarray(x).",),
            )
        if not _is_row_major(tensor):
            raise ExchangeError(
                f"cuda: the array of shape {tensor.shape} has strides {tensor.strides}, expected "
                f"{_strides(tensor.shape)}: row-major without gaps.",
                code="exchange-layout",
                hints=("PyTorch: x.contiguous(); CuPy: cupy.ascontiguousarray(x).",),
            )
        size = prod(tensor.shape) * tensor.dtype.itemsize
        context.synchronize()  # whatever stream it is made on
        memory = DeviceMemory(context, tensor.pointer, size, owner=tensor.owner)
        return cls(memory, tensor.shape, tensor.dtype)

    @property
    def pointer(self) -> int:
        """Where it begins; what a kernel is given."""
        return self.memory.pointer

    @property
    def nbytes(self) -> int:
        """Bytes of its items."""
        return prod(self.shape) * self.dtype.itemsize

    def numpy(self) -> Array:
        """A copy on the host."""
        array = np.empty(self.shape, self.dtype)
        self.memory.copy_out(array)
        return array

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        """Version 3. Raises: ExchangeError for a dtype that has no name there."""
        if self.dtype.kind not in "biufc":
            raise ExchangeError(
                f"cuda: {self.dtype.name} has no name in __cuda_array_interface__.",
                code="exchange-interface",
                hints=("DLPack has one: torch.from_dlpack(x).",),
            )
        self.memory.context.synchronize()
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.pointer, False),
            "strides": None,
            "stream": None,
            "version": 3,
        }

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """A capsule, as DLPack's Python protocol has it. Raises: ExchangeError, BufferError."""
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("a DeviceArray is handed over where it lies, and never copied")
        if stream != _READY:
            self.memory.context.synchronize()
        device = self.__dlpack_device__()
        tensor = DlpackTensor(self.pointer, self.shape, None, self.dtype, device, False, self)
        try:
            return dlpack.export(tensor, max_version)
        except UnknownType as unknown:
            raise _no_type(str(unknown)) from None

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self.memory.context.device.index


def _taken(array: Any, index: int) -> DlpackTensor:
    """What an array of another library says of itself; index: of the device where it says none."""
    if hasattr(array, "__dlpack__"):
        capsule = array.__dlpack__()
        try:
            return dlpack.take(capsule)
        except UnknownType as unknown:
            raise _no_type(str(unknown)) from None
        except NoCapsule:
            raise ExchangeError(
                f"cuda: __dlpack__ of a {type(array).__name__} gave {capsule!r}, which is no "
                "capsule of a tensor, or one that is used up.",
                code="exchange-capsule",
            ) from None
    if not hasattr(array, "__cuda_array_interface__"):
        raise ExchangeError(
            f"cuda: a {type(array).__name__} shows no memory of a device; expected "
            "__dlpack__ or __cuda_array_interface__.",
            code="exchange-kind",
            hints=("an array of the host: DeviceArray.of(context, array).",),
        )
    shown = array.__cuda_array_interface__
    pointer, read_only = shown["data"]
    dtype = np.dtype(shown["typestr"])
    strides = shown.get("strides")
    steps = None if strides is None else tuple(step // dtype.itemsize for step in strides)
    device = (CUDA, int(getattr(getattr(array, "device", None), "id", index)))
    return DlpackTensor(pointer or 0, tuple(shown["shape"]), steps, dtype, device, read_only, array)


def _is_row_major(tensor: DlpackTensor) -> bool:
    """Whether it has no gaps; what an axis of one item steps over is of no matter."""
    if tensor.strides is None or 0 in tensor.shape:
        return True
    axes = zip(tensor.shape, tensor.strides, _strides(tensor.shape), strict=True)
    return all(size == 1 or got == expected for size, got, expected in axes)


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Of an array in row-major order without gaps, in items."""
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _no_type(name: str) -> ExchangeError:
    return ExchangeError(
        f"cuda: DLPack and NumPy have no common dtype for {name}.", code="exchange-dtype"
    )
