"""A generated source as an error shows it: the name of its file, and the lines around one."""

from __future__ import annotations

import re

_SHOWN_LINES = 2  # of source, around the line that the compiler refused


def file_name(name: str) -> str:
    """What a user calls a kernel, as the name of a file."""
    return re.sub(r"[^A-Za-z0-9_]", "_", name)[:100] or "kernel"


def excerpt(source: str, line: int) -> str:
    """The lines around `line` (1-based), which is marked."""
    lines = source.splitlines()
    first, last = max(1, line - _SHOWN_LINES), min(len(lines), line + _SHOWN_LINES)
    return "\n".join(
        f"  {'>' if number == line else ' '} {number:4} | {lines[number - 1]}"
        for number in range(first, last + 1)
    )
