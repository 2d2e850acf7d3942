"""A disk that is full, or a limit on the size of files, is told from a defect of ours."""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from ...tir.errors import TilewrightError

_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
# what the system and its tools say where there is no room
_NO_ROOM = re.compile(
    f"^.*(?:{'|'.join(map(os.strerror, _FULL))}|[Ff]ile size limit exceeded|signal 25\\b).*$",
    re.MULTILINE,
)


class DiskFull(TilewrightError, OSError):
    """There is no room for what a build needs to write."""


@contextmanager
def telling_full_disk(name: str) -> Iterator[None]:
    """Raise DiskFull for an OSError that means it; `name` is what is built."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise disk_full(name, str(error.strerror)) from error


def no_room(said: str) -> str | None:
    """The line in which a tool says that it has no room; None where it says nothing of it."""
    found = _NO_ROOM.search(said)
    return None if found is None else found[0].strip()


def disk_full(name: str, reason: str) -> DiskFull:
    """The error for what is built."""
    folder = os.environ.get("TMPDIR") or tempfile.gettempdir()  # where compilers write, too
    return DiskFull(
        f"compile: '{name}' needs room in '{folder}': {reason}.",
        code="compile-disk",
        hints=("make room there, raise the limit (ulimit -f), or name another folder in TMPDIR.",),
    )
