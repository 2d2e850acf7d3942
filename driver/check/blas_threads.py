"""While a model is built, NumPy's products take fewer threads.

The products of a reference are small, and something else runs beside them: the compiler, another
reference, another process that checks. OpenBLAS wakes its threads for each product, and they wait
by spinning: on two cores that took 3 of the 23 CPU seconds of a cold compile of ResNet-50. Where
NumPy has another library than the OpenBLAS of its wheels, nothing changes.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from ...runtime.machine.host import allowed_cpus

# how the two functions are called in NumPy's wheels, the newest first
_NAMES = (
    "scipy_openblas_{}_num_threads64_",
    "scipy_openblas_{}_num_threads",
    "openblas_{}_num_threads64_",
    "openblas_{}_num_threads",
)

_lock = threading.Lock()
_limits: list[int] = []  # of those who are inside
_before = 0  # the process's setting, while somebody is inside


@dataclass(frozen=True, slots=True)
class BlasThreads:
    """What reads and sets how many threads a product takes in this process."""

    get: Callable[[], int]
    set: Callable[[int], object]


@cache
def blas_threads() -> BlasThreads | None:
    """That of NumPy's library; None where it is not the OpenBLAS of a wheel."""
    package = Path(np.__file__).parent
    folders = (package.with_name("numpy.libs"), package / ".dylibs")
    files = (file for folder in folders for file in folder.glob("*openblas*"))
    for library in (ctypes.CDLL(str(file)) for file in files):  # it is loaded already
        for name in _NAMES:
            if hasattr(library, name.format("set")):
                setter = getattr(library, name.format("set"))
                setter.argtypes, setter.restype = (ctypes.c_int,), None
                return BlasThreads(getattr(library, name.format("get")), setter)
    return None


def share_of_cpus(count: int) -> int:
    """The CPUs that each of so many has that run side by side."""
    return max(1, allowed_cpus() // count)


@contextmanager
def fewer_blas_threads(count: int) -> Iterator[None]:
    """Let products take at most so many threads, in the whole process, until the last one who asked
    for it has left. A setting that is changed in between stays as it was changed.
    """
    threads = blas_threads()
    if threads is None:
        yield
        return
    _change(threads, entered=count)
    try:
        yield
    finally:
        _change(threads, left=count)


def _change(threads: BlasThreads, *, entered: int | None = None, left: int | None = None) -> None:
    global _before
    with _lock:
        now = threads.get()
        if not _limits:
            _before = now
        is_ours = now == min([_before, *_limits])
        if entered is not None:
            _limits.append(entered)
        if left is not None:
            _limits.remove(left)
        if is_ours:
            threads.set(min([_before, *_limits]))
