"""CUDA's driver through PyCUDA, which is built with the script of pycuda_wheel.py.

PyCUDA destroys an object when Python drops it, and then wants its context to be current; so a
handle that is to be destroyed is a list that holds the object, and is emptied. A module's list
holds its kernels too, for each of these would keep the module.
"""

from __future__ import annotations

from typing import Any

from ...toolchain.library import ffi
from .driver import (
    NON_BLOCKING,
    Bytes,
    CallFailed,
    DeviceProperties,
    Handle,
    KernelAttributes,
    Size,
    describe,
)
from .libcuda import libcuda

_UNKNOWN = 999


class PycudaDriver:
    """See `Driver`."""

    def __init__(self) -> None:
        """Import PyCUDA, with the driver's library that is loaded.

        Raises: ImportError where it is not installed, or wants a newer driver; CallFailed.
        """
        libcuda()
        import pycuda  # here, for it may not be installed
        import pycuda.driver as cuda

        self._cuda: Any = cuda
        self.name = f"PyCUDA {pycuda.VERSION_TEXT}"
        try:
            cuda.init()
        except cuda.Error as error:
            raise self._failed(error) from None

    def version(self) -> tuple[int, int]:
        return libcuda().version()

    def devices(self) -> tuple[DeviceProperties, ...]:
        return tuple(self._describe(index) for index in range(self._cuda.Device.count()))

    def _describe(self, index: int) -> DeviceProperties:
        device, names = self._cuda.Device(index), self._cuda.device_attribute

        def attribute(name: str) -> int:
            return int(device.get_attribute(getattr(names, name)))

        return describe(index, device.name(), device.total_memory(), attribute)

    def failure(self, error: BaseException) -> CallFailed | None:
        if isinstance(error, CallFailed):
            return error
        return self._failed(error) if isinstance(error, self._cuda.Error) else None

    def _failed(self, error: BaseException) -> CallFailed:
        """PyCUDA tells a status by the driver's text alone: "cuMemAlloc failed: out of memory"."""
        function, _, text = str(error).partition(" failed: ")
        text = text.partition(" - ")[0].strip()
        status = libcuda().status(text)
        return CallFailed(function, _UNKNOWN if status is None else status, text or function)

    def retain(self, device: int) -> Handle:
        return self._cuda.Device(device).retain_primary_context()

    def release(self, context: Handle) -> None:
        context.detach()

    def push(self, context: Handle) -> None:
        context.push()

    def pop(self) -> None:
        self._cuda.Context.pop()

    def synchronize(self) -> None:
        self._cuda.Context.synchronize()

    def memory(self) -> tuple[int, int]:
        free, total = self._cuda.mem_get_info()
        return int(free), int(total)

    def allocate(self, size: int) -> Handle:
        return self._cuda.mem_alloc(size)

    def address(self, memory: Handle) -> int:
        return int(memory)

    def free(self, memory: Handle) -> None:
        memory.free()

    def pin(self, size: int) -> Handle:
        return self._cuda.pagelocked_empty(size, "u1")

    def pinned_address(self, memory: Handle) -> int:
        return int(memory.ctypes.data)

    def unpin(self, memory: Handle) -> None:
        memory.base.free()

    def copy_in(self, address: int, source: Bytes, stream: Handle | None) -> None:
        if stream is None:
            self._cuda.memcpy_htod(address, source)
        else:
            self._cuda.memcpy_htod_async(address, source, stream[0])

    def copy_out(self, target: Bytes, address: int, stream: Handle | None) -> None:
        if stream is None:
            self._cuda.memcpy_dtoh(target, address)
        else:
            self._cuda.memcpy_dtoh_async(target, address, stream[0])

    def copy(self, target: int, source: int, size: int, stream: Handle | None) -> None:
        self._cuda.memcpy_dtod_async(target, source, size, _object(stream))

    def fill(self, address: int, value: int, size: int, stream: Handle | None) -> None:
        self._cuda.memset_d8_async(address, value, size, _object(stream))

    def make_stream(self) -> Handle:
        return [self._cuda.Stream(NON_BLOCKING)]

    def stream_address(self, stream: Handle) -> int:
        return int(stream[0].handle)

    def synchronize_stream(self, stream: Handle | None) -> None:
        if stream is None:  # for which PyCUDA has no object
            libcuda().check("StreamSynchronize", ffi.NULL)
        else:
            stream[0].synchronize()

    def wait(self, stream: Handle, event: Handle) -> None:
        stream[0].wait_for_event(event[0])

    def drop_stream(self, stream: Handle) -> None:
        stream.clear()

    def make_event(self) -> Handle:
        return [self._cuda.Event()]

    def record(self, event: Handle, stream: Handle | None) -> None:
        event[0].record(_object(stream))

    def synchronize_event(self, event: Handle) -> None:
        event[0].synchronize()

    def seconds(self, begin: Handle, end: Handle) -> float:
        return float(begin[0].time_till(end[0])) * 1e-3

    def drop_event(self, event: Handle) -> None:
        event.clear()

    def load(self, image: bytes) -> Handle:
        return [self._cuda.module_from_buffer(image)]

    def unload(self, module: Handle) -> None:
        module.clear()

    def kernel(self, module: Handle, name: str) -> Handle:
        module.append(module[0].get_function(name))
        return module, len(module) - 1

    def attributes(self, kernel: Handle) -> KernelAttributes:
        names, function = self._cuda.function_attribute, _function(kernel)
        return KernelAttributes(
            registers=function.get_attribute(names.NUM_REGS),
            local_bytes=function.get_attribute(names.LOCAL_SIZE_BYTES),
            shared_bytes=function.get_attribute(names.SHARED_SIZE_BYTES),
            max_threads=function.get_attribute(names.MAX_THREADS_PER_BLOCK),
        )

    def allow_shared(self, kernel: Handle, size: int) -> None:
        names = self._cuda.function_attribute
        _function(kernel).set_attribute(names.MAX_DYNAMIC_SHARED_SIZE_BYTES, size)

    def launch(
        self,
        kernel: Handle,
        grid: Size,
        block: Size,
        arguments: bytes,
        shared_bytes: int,
        stream: Handle | None,
    ) -> None:
        # what PyCUDA's own ways to launch end in, after packing arguments that are packed here
        launch = _function(kernel)._launch_kernel
        launch(grid, block, arguments, shared_bytes, _object(stream))


def _object(stream: Handle | None) -> Any:
    return None if stream is None else stream[0]


def _function(kernel: Handle) -> Any:
    module, index = kernel
    return module[index]
