"""Run SPMD code on the process's thread pool (pool.c, on fibers.c, gates.c and places.c), compiled
at its first use and kept in the cache.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

from ...tir.target.target import ISAS, Target
from ..toolchain.library import Library, Pointer, SharedObject

_FLAGS = ("-pthread",)
_FILES = ("fibers", "gates", "places", "pool")  # in the order in which they stand in one source


class _Pool:
    """The process's pool, once loaded; pinned, because its threads run in it until the process
    ends.
    """

    def __init__(self) -> None:
        self.run: Pointer | None = None
        self.started: Pointer | None = None
        self._locks: dict[int, threading.Lock] = {}

    def get(self, make: Callable[[], SharedObject]) -> Pointer:
        """The C function that runs a region; at the first call `make` gives the object to load."""
        # one lock per process: a child forked while a thread loads does not wait for that thread
        with self._locks.setdefault(os.getpid(), threading.Lock()):
            if self.run is None:
                library = Library(make(), name="pool", pinned=True)
                self.started = library.entry("tw_pool_started", "tw_count")
                self.run = library.entry("tw_pool_run", "tw_run")
            return self.run


_pool = _Pool()


def pool_source() -> str:
    """The C text of the pool: one source for its files."""
    files = [Path(__file__).with_name(f"{stem}.c") for stem in _FILES]
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def pool_object(target: Target | None = None) -> SharedObject:
    """The compiled pool, for those who keep it beside their own objects; compiled for a plain CPU
    by default.

    Raises: CompilerNotFound, CompileFailed.
    """
    # here, because an engine from a file brings its pool and needs no compiler
    from ..toolchain.compile import compile_shared

    return compile_shared(pool_source(), target or ISAS["scalar"], name="pool", flags=_FLAGS)


def use_pool(shared: SharedObject) -> None:
    """Use this compiled pool where none is loaded yet, so that no compiler is needed.

    Raises: LibraryError.
    """
    _pool.get(lambda: shared)


def pool_run() -> Pointer:
    """The C function `int tw_pool_run(tw_entry entry, void *const *args, int threads)`.

    It calls `entry(args, team, thread, threads)` once for each member of the team, releases the
    interpreter's lock meanwhile, and returns how many members there were: 1 where another region
    was running, fewer than asked where no more threads could be started. Each has a thread of its
    own; a member may go on on another one's when it has waited at a barrier.

    Raises: CompilerNotFound, CompileFailed, LibraryError, at the first call.
    """
    return _pool.run if _pool.run is not None else _pool.get(pool_object)


def threads_started() -> int:
    """How many worker threads the pool has in this process."""
    return 0 if _pool.started is None else int(_pool.started())
