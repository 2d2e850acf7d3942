"""Device locks: the CPU is shared by any number of builders or held by one timer; a GPU is held by
one timer.

All searches of a user on a machine share the locks, across processes and threads. They are file
locks, so a process that dies releases them.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from time import monotonic, sleep

from ...runtime.toolchain.cache import user_cache

_POLL = 0.005  # seconds
_TELL = 3.0  # seconds of waiting after which it is reported


class DeviceLock:
    """A lock on a file. tell: called with a text when another process makes this one wait for the
    `device`.
    """

    def __init__(
        self, path: Path, tell: Callable[[str], None] | None = None, device: str = "CPU"
    ) -> None:
        self._path = path
        self._tell = tell
        self._device = device

    @contextmanager
    def building(self) -> Iterator[None]:
        """Hold the lock shared with other builders; wait while a timer holds it."""
        with self._held(fcntl.LOCK_SH):
            yield

    @contextmanager
    def timing(self) -> Iterator[None]:
        """Hold the lock exclusively."""
        with self._held(fcntl.LOCK_EX):
            yield

    @contextmanager
    def _held(self, how: int) -> Iterator[None]:
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._wait(file, how)
            os.pwrite(file, f"{os.getpid():<12}".encode(), 0)
            yield
        finally:
            os.close(file)

    def _wait(self, file: int, how: int) -> None:
        began: float | None = monotonic()
        while True:
            try:
                fcntl.flock(file, how | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                sleep(_POLL)
            if began is not None and monotonic() > began + _TELL and self._tell is not None:
                began = self._told(file, began)

    def _told(self, file: int, began: float) -> float | None:
        """Report the process that holds the lock, once; None when that is done."""
        holder = os.pread(file, 12, 0).decode(errors="replace").strip()
        if holder == str(os.getpid()):
            return began
        assert self._tell is not None
        self._tell(f"process {holder} uses the {self._device} for tuning; waiting for it")
        return None


def cpu_lock(tell: Callable[[str], None] | None = None) -> DeviceLock:
    """The lock of this machine's CPU, in the cache folder; without a cache, of this process."""
    return DeviceLock(_folder() / "cpu", tell)


def gpu_lock(tell: Callable[[str], None] | None = None) -> DeviceLock:
    """The lock of this machine's GPUs, one for all: each process chooses its own GPU."""
    return DeviceLock(_folder() / "gpu", tell, "GPU")


def _folder() -> Path:
    return user_cache().private_folder("locks") or _own_folder()


@cache
def _own_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="tilewright-lock-"))
