"""Replace a file in one step: a reader finds the old or the new one, whole, whatever happens to who
writes.

The new one is written beside its place, under a short name of its own and locked, so that it can be
told from what a process left that was killed; such leftovers go when somebody writes there again.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_NAME = re.compile(r"\.twe-[0-9a-f]{16}")
_SETTLED = 60.0  # seconds after which a file that is being written is locked, surely


@contextmanager
def replacing(path: Path, *, sync: bool = True) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` at the end; nothing changes where that fails.

    sync: see that it is on the disk first. Raises: OSError.
    """
    folder = path.parent
    sweep(folder)
    fresh = folder / f".twe-{secrets.token_hex(8)}"
    try:
        with fresh.open("xb") as file:
            with suppress(OSError):  # some file systems have no locks
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield file
            file.flush()
            if sync:
                os.fsync(file.fileno())
            fresh.replace(path)
        if sync:
            _sync_folder(folder)
    finally:
        fresh.unlink(missing_ok=True)


def sweep(folder: Path) -> int:
    """Remove what killed writers left in a folder; how many files."""
    removed = 0
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _NAME.fullmatch(entry.name) and _is_forgotten(entry.path):
                with suppress(OSError):
                    os.unlink(entry.path)
                    removed += 1
    return removed


def _is_forgotten(path: str) -> bool:
    """Whether nobody writes to it any more."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return time.time() - os.fstat(descriptor).st_mtime > _SETTLED
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    """See that a name is on the disk, too, where the file system can tell."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
