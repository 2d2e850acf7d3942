"""Scratch memory for kernels: one block per thread that calls, shared by every kernel that it
calls.

A kernel runs inside one C call and keeps nothing there, so the block of a thread is free whenever
the next kernel starts. It only grows, and goes with its thread.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ..arrays import Array, address
from ..toolchain.library import Pointer, ffi
from .pages import large_memory

_PAGE = 4096


class ScratchMemory:
    """One block of scratch memory, aligned to 64 bytes, uninitialised."""

    def __init__(self, size: int, memory: Array | None = None) -> None:
        """memory: the block, where it is not a new one."""
        # no bytes have no address
        self._store = large_memory(max(size, 1)) if memory is None else memory
        self.size = size
        self.pointer: Pointer = ffi.cast("void *", address(self._store))


class _OfThread(threading.local):
    """The block of the calling thread."""

    def __init__(self) -> None:
        self.block = ScratchMemory(0)


_of_thread = _OfThread()


def workspace(size: int) -> Pointer:
    """The calling thread's scratch memory, at least `size` bytes; valid until a larger one is asked
    for.
    """
    block = _of_thread.block
    if block.size < size:
        block = _of_thread.block = ScratchMemory(-(-size // _PAGE) * _PAGE)
    return block.pointer


@contextmanager
def lend_workspace(memory: Array) -> Iterator[None]:
    """Let these bytes, aligned to 64, be the calling thread's scratch memory meanwhile."""
    own = _of_thread.block
    _of_thread.block = ScratchMemory(memory.size, memory)
    try:
        yield
    finally:
        _of_thread.block = own
