"""Open files that have an end: a pipe waits for who might write to it, a device never ends."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path


@contextmanager
def open_regular(path: Path) -> Iterator[BufferedReader | None]:
    """The file, open for reading, without waiting; None where it is no regular one.

    Raises: OSError where it cannot be opened; ValueError for a path that no file can have.
    """
    with open(path, "rb", opener=_open_at_once) as file:
        yield file if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else None


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)
