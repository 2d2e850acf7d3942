"""CUDA's driver through NVIDIA's cuda-bindings, whose functions are those of the driver."""

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

_NAME_BYTES = 256
_BUFFER_POINTER, _BUFFER_SIZE = 1, 2  # what stands before each in a launch's extra arguments


class BindingsDriver:
    """See `Driver`."""

    def __init__(self) -> None:
        """Raises: ImportError where cuda-bindings is not installed; CallFailed."""
        libcuda()
        import cuda.bindings  # here, for it may not be installed
        import cuda.bindings.driver as cuda_driver

        self._cuda: Any = cuda_driver
        self.name = f"cuda-bindings {cuda.bindings.__version__}"
        self._call("cuInit", 0)

    def _call(self, function: str, *arguments: object) -> Any:
        """What a function gives beside its status. Raises: CallFailed."""
        status, *values = getattr(self._cuda, function)(*arguments)
        if status:
            raise CallFailed(function, int(status), libcuda().text(int(status)))
        return values[0] if len(values) == 1 else values

    def version(self) -> tuple[int, int]:
        return libcuda().version()

    def devices(self) -> tuple[DeviceProperties, ...]:
        return tuple(self._describe(index) for index in range(libcuda().device_count()))

    def _describe(self, index: int) -> DeviceProperties:
        device, names = self._call("cuDeviceGet", index), self._cuda.CUdevice_attribute
        name = bytes(self._call("cuDeviceGetName", _NAME_BYTES, device)).partition(b"\0")[0]

        def attribute(name: str) -> int:
            number = getattr(names, f"CU_DEVICE_ATTRIBUTE_{name}")
            return int(self._call("cuDeviceGetAttribute", number, device))

        return describe(index, name.decode(), self._call("cuDeviceTotalMem", device), attribute)

    def failure(self, error: BaseException) -> CallFailed | None:
        return error if isinstance(error, CallFailed) else None

    def retain(self, device: int) -> Handle:
        place = self._call("cuDeviceGet", device)
        return self._call("cuDevicePrimaryCtxRetain", place), place

    def release(self, context: Handle) -> None:
        self._call("cuDevicePrimaryCtxRelease", context[1])

    def push(self, context: Handle) -> None:
        self._call("cuCtxPushCurrent", context[0])

    def pop(self) -> None:
        self._call("cuCtxPopCurrent")

    def synchronize(self) -> None:
        self._call("cuCtxSynchronize")

    def memory(self) -> tuple[int, int]:
        free, total = self._call("cuMemGetInfo")
        return int(free), int(total)

    def allocate(self, size: int) -> Handle:
        return self._call("cuMemAlloc", size)

    def address(self, memory: Handle) -> int:
        return int(memory)

    def free(self, memory: Handle) -> None:
        self._call("cuMemFree", memory)

    def pin(self, size: int) -> Handle:
        return self._call("cuMemHostAlloc", size, 0)

    def pinned_address(self, memory: Handle) -> int:
        return int(memory)

    def unpin(self, memory: Handle) -> None:
        self._call("cuMemFreeHost", memory)

    def copy_in(self, address: int, source: Bytes, stream: Handle | None) -> None:
        if stream is None:
            self._call("cuMemcpyHtoD", address, source.ctypes.data, source.size)
        else:
            self._call("cuMemcpyHtoDAsync", address, source.ctypes.data, source.size, stream)

    def copy_out(self, target: Bytes, address: int, stream: Handle | None) -> None:
        if stream is None:
            self._call("cuMemcpyDtoH", target.ctypes.data, address, target.size)
        else:
            self._call("cuMemcpyDtoHAsync", target.ctypes.data, address, target.size, stream)

    def copy(self, target: int, source: int, size: int, stream: Handle | None) -> None:
        self._call("cuMemcpyDtoDAsync", target, source, size, stream or 0)

    def fill(self, address: int, value: int, size: int, stream: Handle | None) -> None:
        self._call("cuMemsetD8Async", address, value, size, stream or 0)

    def make_stream(self) -> Handle:
        return self._call("cuStreamCreate", NON_BLOCKING)

    def stream_address(self, stream: Handle) -> int:
        return int(stream)

    def synchronize_stream(self, stream: Handle | None) -> None:
        self._call("cuStreamSynchronize", stream or 0)

    def wait(self, stream: Handle, event: Handle) -> None:
        self._call("cuStreamWaitEvent", stream, event, 0)

    def drop_stream(self, stream: Handle) -> None:
        self._call("cuStreamDestroy", stream)

    def make_event(self) -> Handle:
        return self._call("cuEventCreate", 0)

    def record(self, event: Handle, stream: Handle | None) -> None:
        self._call("cuEventRecord", event, stream or 0)

    def synchronize_event(self, event: Handle) -> None:
        self._call("cuEventSynchronize", event)

    def seconds(self, begin: Handle, end: Handle) -> float:
        return float(self._call("cuEventElapsedTime", begin, end)) * 1e-3

    def drop_event(self, event: Handle) -> None:
        self._call("cuEventDestroy", event)

    def load(self, image: bytes) -> Handle:
        return self._call("cuModuleLoadData", image)

    def unload(self, module: Handle) -> None:
        self._call("cuModuleUnload", module)

    def kernel(self, module: Handle, name: str) -> Handle:
        return self._call("cuModuleGetFunction", module, name.encode())

    def attributes(self, kernel: Handle) -> KernelAttributes:
        names = self._cuda.CUfunction_attribute

        def attribute(name: str) -> int:
            number = getattr(names, f"CU_FUNC_ATTRIBUTE_{name}")
            return int(self._call("cuFuncGetAttribute", number, kernel))

        return KernelAttributes(
            registers=attribute("NUM_REGS"),
            local_bytes=attribute("LOCAL_SIZE_BYTES"),
            shared_bytes=attribute("SHARED_SIZE_BYTES"),
            max_threads=attribute("MAX_THREADS_PER_BLOCK"),
        )

    def allow_shared(self, kernel: Handle, size: int) -> None:
        name = self._cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self._call("cuFuncSetAttribute", kernel, name, size)

    def launch(
        self,
        kernel: Handle,
        grid: Size,
        block: Size,
        arguments: bytes,
        shared_bytes: int,
        stream: Handle | None,
    ) -> None:
        data = ffi.from_buffer(arguments)
        size = ffi.new("size_t *", len(arguments))
        named = (_BUFFER_POINTER, data, _BUFFER_SIZE, size, 0)
        extra = ffi.new("void *[]", [ffi.cast("void *", part) for part in named])
        place = int(ffi.cast("intptr_t", extra))
        self._call("cuLaunchKernel", kernel, *grid, *block, shared_bytes, stream or 0, 0, place)
