from __future__ import annotations

import threading

from tilewright.runtime.cpu.workspace import ScratchMemory, workspace
from tilewright.runtime.toolchain.library import ffi


def start(size: int) -> int:
    return int(ffi.cast("uintptr_t", workspace(size)))


def test_scratch_memory_is_aligned_kept_and_grows() -> None:
    first = start(1000)
    assert first % 64 == 0
    assert start(10) == start(4096) == first
    large = start(1 << 22)
    assert large % 64 == 0
    ffi.memmove(workspace(1 << 22), bytes(1 << 22), 1 << 22)
    assert start(5) == large


def test_no_scratch_memory_is_aligned_as_well() -> None:
    assert int(ffi.cast("uintptr_t", ScratchMemory(0).pointer)) % 64 == 0


def test_each_thread_has_its_own() -> None:
    mine = start(100)
    found: list[int] = []
    other = threading.Thread(target=lambda: found.append(start(100)))
    other.start()
    other.join()
    assert found[0] != mine
