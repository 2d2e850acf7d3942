"""What is asked of CUDA's driver, one method a call: the seam between us and the library that
speaks to it.

`context.py` has the classes to work with; they are written once, above this protocol, and hold
what a bare call leaves to its caller: whose context is current, who frees what, what an error
means. Graphs go past the protocol (graph.py), for PyCUDA has none.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

Handle: TypeAlias = Any  # what a driver gives and takes back, opaque to everybody else
Bytes: TypeAlias = npt.NDArray[np.uint8]  # a flat array
Size: TypeAlias = tuple[int, int, int]

NON_BLOCKING = 1  # of a stream: it does not wait for the default stream, nor that one for it

# what a device is asked for, by the names of CUDA's attributes
_MULTIPROCESSORS = "MULTIPROCESSOR_COUNT"
_BLOCK_SHARED = "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"
_SHARED = "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"
_REGISTERS = "MAX_REGISTERS_PER_MULTIPROCESSOR"
_THREADS = "MAX_THREADS_PER_MULTIPROCESSOR"
_AXES = ("X", "Y", "Z")


@dataclass(frozen=True, slots=True)
class DeviceProperties:
    """A device, and its limits.

    index: its place among those that the driver shows. capability: (9, 0). block_threads,
    block_shared_bytes: what one block may have, the latter where the kernel asks for it. threads,
    shared_bytes, registers: what a multiprocessor has. max_grid, max_block: for each axis.
    """

    index: int
    name: str
    capability: tuple[int, int]
    memory_bytes: int
    l2_bytes: int
    multiprocessors: int
    threads: int
    registers: int
    shared_bytes: int
    block_threads: int
    block_shared_bytes: int
    max_grid: Size
    max_block: Size

    @property
    def arch(self) -> str:
        """The architecture to compile for: "sm_90a", "sm_80"."""
        major, minor = self.capability
        return f"sm_{major}{minor}{'a' if major >= 9 else ''}"


def describe(
    index: int, name: str, memory_bytes: int, attribute: Callable[[str], int]
) -> DeviceProperties:
    """A device by what it answers; attribute: of "MULTIPROCESSOR_COUNT", ... its value."""
    grid, block = (tuple(attribute(f"MAX_{of}_DIM_{a}") for a in _AXES) for of in ("GRID", "BLOCK"))
    return DeviceProperties(
        index=index,
        name=name,
        capability=(attribute("COMPUTE_CAPABILITY_MAJOR"), attribute("COMPUTE_CAPABILITY_MINOR")),
        memory_bytes=memory_bytes,
        l2_bytes=attribute("L2_CACHE_SIZE"),
        multiprocessors=attribute(_MULTIPROCESSORS),
        threads=attribute(_THREADS),
        registers=attribute(_REGISTERS),
        shared_bytes=attribute(_SHARED),
        block_threads=attribute("MAX_THREADS_PER_BLOCK"),
        block_shared_bytes=attribute(_BLOCK_SHARED),
        max_grid=(grid[0], grid[1], grid[2]),
        max_block=(block[0], block[1], block[2]),
    )


@dataclass(frozen=True, slots=True)
class KernelAttributes:
    """What a loaded kernel takes, as the driver says: registers and local memory of a thread,
    static shared memory of a block, and the most threads that a block of it may have.
    """

    registers: int
    local_bytes: int
    shared_bytes: int
    max_threads: int


class CallFailed(Exception):
    """A call gave another status than success; what a driver raises, and nobody else sees."""

    def __init__(self, function: str, status: int, text: str) -> None:
        super().__init__(f"{function}: {text} ({status})")
        self.function = function
        self.status = status
        self.text = text


class Driver(Hashable, Protocol):
    """CUDA's driver. All from `synchronize` on need a current context.

    An address is that of device memory. A stream is a handle, or None: the default one.
    Raises: what `failure` turns into CallFailed.
    """

    name: str

    def version(self) -> tuple[int, int]:
        """The newest CUDA that the driver knows: (13, 0)."""
        ...

    def devices(self) -> tuple[DeviceProperties, ...]:
        """Those that CUDA_VISIBLE_DEVICES leaves."""
        ...

    def failure(self, error: BaseException) -> CallFailed | None:
        """What an exception that came out of a call says; None for one that is not the driver's."""
        ...

    def retain(self, device: int) -> Handle:
        """The device's primary context, which is that of every library in this process."""
        ...

    def release(self, context: Handle) -> None:
        """Let go of a retained context, at the end of the process."""
        ...

    def push(self, context: Handle) -> None:
        """Make a context current to this thread."""
        ...

    def pop(self) -> None:
        """Make current what was before."""
        ...

    def synchronize(self) -> None:
        """Wait for all that runs in the context."""
        ...

    def memory(self) -> tuple[int, int]:
        """Bytes of device memory: free, and in all."""
        ...

    def allocate(self, size: int) -> Handle:
        """Device memory of `size` > 0 bytes."""
        ...

    def address(self, memory: Handle) -> int:
        """Where allocated memory begins."""
        ...

    def free(self, memory: Handle) -> None:
        """Give device memory back."""
        ...

    def pin(self, size: int) -> Handle:
        """Host memory of `size` > 0 bytes that never leaves its place."""
        ...

    def pinned_address(self, memory: Handle) -> int:
        """Where pinned memory begins, on the host."""
        ...

    def unpin(self, memory: Handle) -> None:
        """Give host memory back."""
        ...

    def copy_in(self, address: int, source: Bytes, stream: Handle | None) -> None:
        """Host to device; without a stream, the host's memory is free on return."""
        ...

    def copy_out(self, target: Bytes, address: int, stream: Handle | None) -> None:
        """Device to host; without a stream, it is done on return."""
        ...

    def copy(self, target: int, source: int, size: int, stream: Handle | None) -> None:
        """Device to device."""
        ...

    def fill(self, address: int, value: int, size: int, stream: Handle | None) -> None:
        """Set each byte."""
        ...

    def make_stream(self) -> Handle:
        """A stream that is NON_BLOCKING."""
        ...

    def stream_address(self, stream: Handle) -> int:
        """CUDA's own handle."""
        ...

    def synchronize_stream(self, stream: Handle | None) -> None:
        """Wait for all that was put into it."""
        ...

    def wait(self, stream: Handle, event: Handle) -> None:
        """Let what is put into the stream from now on wait for the event."""
        ...

    def drop_stream(self, stream: Handle) -> None:
        """Destroy it."""
        ...

    def make_event(self) -> Handle:
        """An event that knows its time."""
        ...

    def record(self, event: Handle, stream: Handle | None) -> None:
        """Put the event into a stream."""
        ...

    def synchronize_event(self, event: Handle) -> None:
        """Wait until it has been passed."""
        ...

    def seconds(self, begin: Handle, end: Handle) -> float:
        """From one event to another, both passed."""
        ...

    def drop_event(self, event: Handle) -> None:
        """Destroy it."""
        ...

    def load(self, image: bytes) -> Handle:
        """A module from a cubin or from PTX that ends with a NUL."""
        ...

    def unload(self, module: Handle) -> None:
        """Destroy it; its kernels are gone too."""
        ...

    def kernel(self, module: Handle, name: str) -> Handle:
        """A function of a module; it lasts as long."""
        ...

    def attributes(self, kernel: Handle) -> KernelAttributes:
        """What it takes."""
        ...

    def allow_shared(self, kernel: Handle, size: int) -> None:
        """Let it be launched with so many bytes of dynamic shared memory."""
        ...

    def launch(
        self,
        kernel: Handle,
        grid: Size,
        block: Size,
        arguments: bytes,
        shared_bytes: int,
        stream: Handle | None,
    ) -> None:
        """Put a kernel into a stream; `arguments` are packed as the kernel's parameters lie."""
        ...
