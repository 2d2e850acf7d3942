"""runtime/cpu/pages.py: where memory starts, and that large pages are asked for where they are
full.
"""

from __future__ import annotations

import mmap
import sys

import numpy as np
import pytest

from tilewright.runtime.arrays import address
from tilewright.runtime.cpu import pages
from tilewright.runtime.cpu.pages import LARGE_PAGE, ask_for_large_pages, large_memory, side_by_side

F32 = np.dtype(np.float32)


@pytest.mark.parametrize("size", [1, 4096, LARGE_PAGE - 1])
def test_small_memory_starts_at_a_line(size: int) -> None:
    memory = large_memory(size)
    assert memory.shape == (size,)
    assert address(memory) % 64 == 0
    memory[...] = 1


@pytest.mark.parametrize("size", [LARGE_PAGE, 3 * LARGE_PAGE + 100])
def test_large_memory_starts_at_a_large_page(size: int) -> None:
    memory = large_memory(size)
    assert memory.shape == (size,)
    assert address(memory) % LARGE_PAGE == 0
    memory[...] = 1
    assert memory.sum(dtype=np.int64) == size


def test_only_whole_large_pages_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int | None]] = []
    monkeypatch.setattr(
        pages, "ask_for_large_pages", lambda _, first, size: asked.append((first, size))
    )
    large_memory(LARGE_PAGE - 1)
    large_memory(3 * LARGE_PAGE - 1)
    assert [size for _, size in asked] == [2 * LARGE_PAGE]


def test_arrays_lie_side_by_side_each_at_a_line() -> None:
    types = [((3, 5), F32), ((0, 7), F32), ((), np.dtype(np.int8)), ((100,), F32)]
    found = side_by_side(types)
    assert [(a.shape, a.dtype) for a in found] == types
    starts = [address(array) for array in found if array.size]
    assert [start - starts[0] for start in starts] == [0, 64, 128]
    assert starts[0] % 64 == 0
    for number, array in enumerate(found):
        array[...] = number
    assert [float(array.sum()) for array in found] == [0.0, 0.0, 2.0, 300.0]


def test_no_arrays_take_no_memory() -> None:
    assert side_by_side([]) == []
    assert large_memory(0).shape == (0,)


@pytest.mark.skipif(sys.platform != "linux", reason="madvise of Linux")
def test_a_system_without_large_pages_leaves_memory_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mapped = mmap.mmap(-1, LARGE_PAGE)
    monkeypatch.setattr(mmap, "MADV_HUGEPAGE", 12345)  # a request that no kernel knows
    ask_for_large_pages(mapped)
    monkeypatch.delattr(mmap, "MADV_HUGEPAGE")
    ask_for_large_pages(mapped)
    assert mapped[:4] == bytes(4)
