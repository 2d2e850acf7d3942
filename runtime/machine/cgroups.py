"""The control groups of this process: where the operating system keeps what limits it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def cgroup_folders(root: Path, controller: str) -> Iterator[Path]:
    """The folders of the process's cgroup and of those around it for one controller ("cpu",
    "memory"), version 1 or 2, below the file system `root`.
    """
    mount = root / "sys/fs/cgroup"
    for line in read_text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        base = mount if not controllers else mount / controllers
        if controllers and not base.is_dir():
            base = mount / controller
        parts = Path(path.lstrip("/")).parts
        yield from (base.joinpath(*parts[:depth]) for depth in range(len(parts) + 1))


def read_text(path: Path) -> str:
    """The text of a file of proc or sys; empty where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
