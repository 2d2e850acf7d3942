"""What identifies the code of tilewright that builds: what is kept is as old as what made it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from ..runtime.toolchain.cache import cache_key

_LAYERS = ("tir", "schedule", "codegen", "runtime", "driver", "graph")


@cache
def code_digest() -> str:
    """Changes with every source file of the package."""
    root = Path(__file__).resolve().parents[1]
    return cache_key(*sorted(line for layer in _LAYERS for line in _sources(str(root), layer)))


def _sources(root: str, folder: str) -> Iterator[str]:
    """A line for each source file below a folder: its path from the root, its size and time."""
    with os.scandir(os.path.join(root, folder)) as entries:
        for entry in entries:
            path = f"{folder}/{entry.name}"
            if entry.name.endswith((".py", ".c")):
                status = entry.stat()
                yield f"{path} {status.st_size} {status.st_mtime_ns}"
            elif entry.is_dir():
                yield from _sources(root, path)
