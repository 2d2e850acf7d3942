"""Memory for what is large and lives long, on large pages where the system has them: weights, and
what kernels hand to each other.

A processor keeps some thousand translations of pages, and those of 4 KiB reach over less than the
weights of one layer; a large page is 2 MiB. Only whole ones are asked for, so no memory is taken
that is not used.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate

import numpy as np

from ..arrays import ALIGNMENT, Array, address

LARGE_PAGE = 2 << 20


def large_memory(size: int) -> Array:
    """`size` bytes, uninitialised: uint8[size].

    If any, they start at a multiple of 64 bytes; where they fill a large page, at one.
    """
    if size < LARGE_PAGE:
        store = np.empty(size + ALIGNMENT, np.uint8)
        first = -address(store) % ALIGNMENT
        return store[first : first + size]
    mapped = mmap.mmap(-1, size + LARGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    first = -address(np.frombuffer(mapped, np.uint8)) % LARGE_PAGE
    ask_for_large_pages(mapped, first, size // LARGE_PAGE * LARGE_PAGE)
    return np.frombuffer(mapped, np.uint8, size, first)


def side_by_side(types: Sequence[tuple[tuple[int, ...], np.dtype[np.generic]]]) -> list[Array]:
    """New, uninitialised arrays of these shapes and types in one piece of memory, each at a
    multiple of 64 bytes.
    """
    sizes = [int(np.prod(shape)) * dtype.itemsize for shape, dtype in types]
    ends = list(accumulate(-(-size // ALIGNMENT) * ALIGNMENT for size in sizes))
    store = large_memory(ends[-1] if ends else 0)
    return [
        np.ndarray(shape, dtype, store.data, first)
        for (shape, dtype), first in zip(types, [0, *ends[:-1]], strict=False)
    ]


def ask_for_large_pages(mapped: mmap.mmap, first: int = 0, size: int | None = None) -> None:
    """Let the system put `size` bytes from `first` on, a multiple of a page, on large pages; all by
    default. Where it has none nothing happens.
    """
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel without them
            mapped.madvise(mmap.MADV_HUGEPAGE, first, len(mapped) if size is None else size)
