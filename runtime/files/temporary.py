"""Temporary folders of ours. What killed processes left of theirs goes a day later, when another
process first makes one.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

_PREFIX = "tilewright-"
_NAME = re.compile(rf"{_PREFIX}[a-z0-9_]{{8}}")  # as tempfile makes it
_FORGOTTEN = 86_400.0  # seconds: nothing of ours works in one folder for so long


def temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder that goes with what it is used for."""
    _sweep_once(tempfile.gettempdir())
    return tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True)


def sweep(parent: Path) -> int:
    """Remove the folders of this user that nobody has touched for a day; how many."""
    removed = 0
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if not _NAME.fullmatch(entry.name):
                continue
            with suppress(OSError):
                found = entry.stat(follow_symlinks=False)
                is_ours = entry.is_dir(follow_symlinks=False) and found.st_uid == os.geteuid()
                if is_ours and time.time() - found.st_mtime > _FORGOTTEN:
                    shutil.rmtree(entry.path)
                    removed += 1
    return removed


@cache
def _sweep_once(parent: str) -> None:
    sweep(Path(parent))
