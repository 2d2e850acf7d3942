"""A device at work: its primary context, and what lives in it.

    with context:                       # optional: each call makes its context current by itself
        kernel = context.load(cubin).kernel("scale")
        x = context.allocate(4096)
        x.copy_in(array)
        kernel.launch((4, 1, 1), (256, 1, 1), pack(x))
        x.copy_out(array)

Nothing happens at import. What is made is freed when nobody holds it, or before by `free`. A
context may be used by any number of threads.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ...arrays import Array
from ..driver.driver import Bytes, DeviceProperties, Driver, Handle, KernelAttributes, Size
from ..driver.errors import OUT_OF_MEMORY, DeviceError, DeviceMemoryError, DeviceUseError
from ..toolchain.compile import Cubin
from .launch import check_launch

_DEFAULT_SHARED_BYTES = 48 << 10  # of dynamic shared memory that no kernel has to ask for


class _Current(threading.local):
    """The contexts that this thread has made current, the last one last."""

    def __init__(self) -> None:
        self.contexts: list[DeviceContext] = []


_current = _Current()


class DeviceContext:
    """The primary context of a device; see `availability`, which gives one.

    lost: a kernel did what the driver does not forgive; nothing works until the process ends.
    """

    def __init__(self, driver: Driver, device: DeviceProperties) -> None:
        """Retain it, as long as this process lives."""
        self.driver = driver
        self.device = device
        self.lost = False
        self._process = os.getpid()
        try:
            self._handle = driver.retain(device.index)
        except Exception as error:
            failed = driver.failure(error)
            if failed is None:
                raise
            raise DeviceError(f"opening the {device.name}", failed) from None
        weakref.finalize(self, _let_go, driver, self._handle, self._process)

    def __enter__(self) -> DeviceContext:
        contexts = _current.contexts
        if not contexts or contexts[-1] is not self:
            self.driver.push(self._handle)
        contexts.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        contexts = _current.contexts
        contexts.pop()
        if not contexts or contexts[-1] is not self:
            self.driver.pop()

    def during(self, what: str, *notes: str) -> _During:
        """Make it current for some calls, and say what they were for where one fails.

        Raises: DeviceError, with the notes; DeviceMemoryError.
        """
        return _During(self, what, notes)

    @property
    def holds_what_was_made(self) -> bool:
        """Not where it is lost, nor in a forked process, in which CUDA does not work."""
        return not self.lost and self._process == os.getpid()

    def synchronize(self) -> None:
        """Wait for all that runs. Raises: DeviceError, also for what kernels did before."""
        with self.during("waiting for the device"):
            self.driver.synchronize()

    def memory(self) -> tuple[int, int]:
        """Bytes of device memory: free, and in all."""
        with self.during("asking for the free memory"):
            return self.driver.memory()

    def allocate(self, size: int) -> DeviceMemory:
        """Device memory, of any size. Raises: DeviceMemoryError."""
        return DeviceMemory.allocated(self, size)

    def pin(self, size: int) -> PinnedMemory:
        """Host memory that copies on a stream read and write directly."""
        return PinnedMemory(self, size)

    def stream(self) -> Stream:
        """A queue of work beside the others."""
        return Stream(self)

    def event(self) -> Event:
        """A mark in a stream."""
        return Event(self)

    def load(self, cubin: Cubin) -> Module:
        """The kernels of a cubin or PTX. Raises: DeviceError."""
        return Module(self, cubin)


class _During:
    """A context made current for some calls, whose failures become our errors."""

    __slots__ = ("_context", "_notes", "_what")

    def __init__(self, context: DeviceContext, what: str, notes: tuple[str, ...]) -> None:
        self._context = context
        self._what = what
        self._notes = notes

    def __enter__(self) -> None:
        self._context.__enter__()

    def __exit__(self, kind: object, error: BaseException | None, at: object) -> None:
        self._context.__exit__()
        failed = None if error is None else self._context.driver.failure(error)
        if failed is None:
            return
        if failed.status == OUT_OF_MEMORY:
            raise DeviceMemoryError(self._what, *self._context.memory()) from None
        raised = DeviceError(self._what, failed, self._notes)
        self._context.lost |= raised.sticky
        raise raised from None


def _let_go(driver: Driver, handle: Handle, process: int) -> None:
    """Release a context at the end of the process that retained it."""
    if process == os.getpid():
        driver.release(handle)


def _release(context: DeviceContext, release: Callable[[Handle], None], handle: Handle) -> None:
    """Give a handle back, where the context still holds it."""
    if context.holds_what_was_made:
        with context.during("giving a resource back"):
            release(handle)


class DeviceMemory:
    """Device memory of `size` bytes from `pointer` on, which is 0 where there are none."""

    def __init__(
        self, context: DeviceContext, pointer: int, size: int, *, owner: object = None
    ) -> None:
        """Of somebody else, whom it keeps; see Context.allocate for our own."""
        self.context = context
        self.pointer = pointer
        self.size = size
        self.owner = owner
        self._free: Callable[[], object] = _nothing

    @classmethod
    def allocated(cls, context: DeviceContext, size: int) -> DeviceMemory:
        """New memory, which is given back when nobody holds it."""
        if not size:
            return cls(context, 0, 0)
        driver = context.driver
        with context.during(f"allocating {size} bytes"):
            handle = driver.allocate(size)
            memory = cls(context, driver.address(handle), size)
        memory._free = weakref.finalize(memory, _release, context, driver.free, handle)
        return memory

    def part(self, at: int, size: int) -> DeviceMemory:
        """`size` bytes of it from `at` on, which keep it."""
        if at < 0 or at + size > self.size:
            raise DeviceUseError(
                f"cuda: {size} bytes at {at} of memory of {self.size}.", code="cuda-part"
            )
        return DeviceMemory(self.context, self.pointer + at, size, owner=self)

    def free(self) -> None:
        """Give it back now; a second time is nothing, nor is it for somebody else's."""
        self._free()

    def copy_in(self, source: Array, stream: Stream | None = None, *, at: int = 0) -> None:
        """From an array of the host. On a stream, where the array is pinned, it goes on after this
        returns; without, it is done. at: bytes from the beginning.
        """
        data = self._part(source, at)
        if data.size:
            with self.context.during(f"copying {data.size} bytes to the device"):
                self.context.driver.copy_in(self.pointer + at, data, _handle(stream))
                self._finish(stream)

    def copy_out(self, target: Array, stream: Stream | None = None, *, at: int = 0) -> None:
        """To an array of the host. On a stream, where the array is pinned, it goes on after this
        returns; without, it is done. at: bytes from the beginning.
        """
        data = self._part(target, at)
        if data.size:
            with self.context.during(f"copying {data.size} bytes from the device"):
                self.context.driver.copy_out(data, self.pointer + at, _handle(stream))

    def copy_from(self, source: DeviceMemory, stream: Stream | None = None) -> None:
        """All of another memory of the same size; without a stream, it is done on return."""
        if source.size != self.size:
            raise DeviceUseError(
                f"cuda: copying {source.size} bytes to memory of {self.size}; expected as many.",
                code="cuda-copy-size",
            )
        if self.size:
            with self.context.during(f"copying {self.size} bytes on the device"):
                driver = self.context.driver
                driver.copy(self.pointer, source.pointer, self.size, _handle(stream))
                self._finish(stream)

    def fill(self, value: int, stream: Stream | None = None) -> None:
        """Set each byte to `value`; without a stream, it is done on return."""
        if self.size:
            with self.context.during(f"filling {self.size} bytes"):
                self.context.driver.fill(self.pointer, value, self.size, _handle(stream))
                self._finish(stream)

    def _finish(self, stream: Stream | None) -> None:
        """Wait for what was put into the default stream, for which no other stream waits."""
        if stream is None:
            self.context.driver.synchronize_stream(None)

    def _part(self, array: Array, at: int) -> Bytes:
        """The bytes of an array that belongs at a place of this memory."""
        if not array.flags.c_contiguous:
            raise DeviceUseError(
                f"cuda: copying an array of strides {array.strides}; expected row-major order "
                "without gaps.",
                code="cuda-copy-layout",
                hints=("np.ascontiguousarray(array), for a copy to the device.",),
            )
        if at < 0 or at + array.nbytes > self.size:
            raise DeviceUseError(
                f"cuda: copying {array.nbytes} bytes at {at} of memory of {self.size}.",
                code="cuda-copy-bounds",
            )
        return array.reshape(-1).view(np.uint8)


class PinnedMemory:
    """Host memory that never leaves its place, so that the device can copy it by itself."""

    def __init__(self, context: DeviceContext, size: int) -> None:
        self.size = size
        pointer, self._free = 0, _nothing
        if size:
            driver = context.driver
            with context.during(f"pinning {size} bytes of the host"):
                handle = driver.pin(size)
                pointer = driver.pinned_address(handle)
            self._free = weakref.finalize(self, _release, context, driver.unpin, handle)
            self.__array_interface__ = {
                "data": (pointer, False),
                "shape": (size,),
                "typestr": "|u1",
                "version": 3,
            }

    def array(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """All of it as an array, which keeps it."""
        data = np.asarray(self) if self.size else np.empty(0, np.uint8)
        return data.view(dtype).reshape(shape)


class Stream:
    """A queue of work; it waits for no other, not for the default stream either."""

    def __init__(self, context: DeviceContext) -> None:
        self.context = context
        driver = context.driver
        with context.during("making a stream"):
            self.handle = driver.make_stream()
            self.pointer = driver.stream_address(self.handle)
        weakref.finalize(self, _release, context, driver.drop_stream, self.handle)

    def synchronize(self) -> None:
        """Wait for all that was put into it. Raises: DeviceError, also for what kernels did."""
        with self.context.during("waiting for a stream"):
            self.context.driver.synchronize_stream(self.handle)

    def wait(self, event: Event) -> None:
        """Let what comes next wait for an event of another stream."""
        with self.context.during("making a stream wait"):
            self.context.driver.wait(self.handle, event.handle)


class Event:
    """A mark in a stream, and when it was passed."""

    def __init__(self, context: DeviceContext) -> None:
        self.context = context
        driver = context.driver
        with context.during("making an event"):
            self.handle = driver.make_event()
        weakref.finalize(self, _release, context, driver.drop_event, self.handle)

    def record(self, stream: Stream | None = None) -> None:
        """Put it into a stream."""
        with self.context.during("recording an event"):
            self.context.driver.record(self.handle, _handle(stream))

    def synchronize(self) -> None:
        """Wait until it has been passed. Raises: DeviceError, also for what kernels did."""
        with self.context.during("waiting for an event"):
            self.context.driver.synchronize_event(self.handle)

    def seconds_since(self, earlier: Event) -> float:
        """The device's time between the two; both must have been passed."""
        with self.context.during("reading the time of an event"):
            return self.context.driver.seconds(earlier.handle, self.handle)


class Module:
    """The kernels of a cubin, on the device."""

    def __init__(self, context: DeviceContext, cubin: Cubin) -> None:
        self.context = context
        self.name = cubin.name
        driver, device = context.driver, context.device
        note = "it is compiled by {}; the {} is {}, its driver knows CUDA {}.{}.".format(
            cubin.compiler, device.name, device.arch, *driver.version()
        )
        with context.during(f"loading '{cubin.name}' for {cubin.arch}", note):
            self.handle = driver.load(cubin.image)
        weakref.finalize(self, _release, context, driver.unload, self.handle)

    def kernel(self, name: str) -> DeviceKernel:
        """One of its kernels by its name in the source."""
        return DeviceKernel(self, name)


class DeviceKernel:
    """A kernel on the device; attributes: what it takes."""

    def __init__(self, module: Module, name: str) -> None:
        context = module.context
        self.module = module
        self.name = name
        with context.during(f"finding '{name}' in '{module.name}'"):
            self._handle = context.driver.kernel(module.handle, name)
            self.attributes: KernelAttributes = context.driver.attributes(self._handle)
        self._allowed_bytes = _DEFAULT_SHARED_BYTES - self.attributes.shared_bytes

    def launch(
        self,
        grid: Size,
        block: Size,
        arguments: bytes,
        *,
        shared_bytes: int = 0,
        stream: Stream | None = None,
    ) -> None:
        """Put it into a stream, and return before it has run; a grid with a 0 is nothing to do.

        arguments: from `pack`. shared_bytes: of dynamic shared memory.
        Raises: LaunchError; DeviceError, also for what kernels did before.
        """
        context = self.module.context
        check_launch(self.name, context.device, self.attributes, grid, block, shared_bytes)
        if 0 in grid:
            return
        with context.during(f"launching '{self.name}'"):
            if shared_bytes > self._allowed_bytes:
                context.driver.allow_shared(self._handle, shared_bytes)
                self._allowed_bytes = shared_bytes
            context.driver.launch(
                self._handle, grid, block, arguments, shared_bytes, _handle(stream)
            )


def _handle(stream: Stream | None) -> Handle:
    return None if stream is None else stream.handle


def _nothing() -> None:
    """Frees no memory of no bytes."""
