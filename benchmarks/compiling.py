"""What a cold compile costs: seconds of `tw.compile` and the peak of resident memory, in a fresh
process with an empty cache. Reads /proc: Linux only.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from . import report
from .exported import file_of
from .startup import process

COMPILE = """
import re, sys, time
from pathlib import Path
import tilewright as tw
began = time.perf_counter()
tw.compile(sys.argv[1])
seconds = time.perf_counter() - began
peak = re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())
print(seconds, int(peak[1]) * 1024)
"""


@dataclass(frozen=True)
class Cold:
    """One model: bytes of its file, seconds of a cold compile, bytes resident at the peak."""

    model: str
    file_bytes: int
    seconds: float
    peak_bytes: int


def measure(name: str) -> Cold:
    """Compile one model in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = file_of(name, Path(folder))
        cache = Path(folder, "cache")
        cache.mkdir(mode=0o700)
        seconds, peak = process(COMPILE, str(path), cache=cache)[1].split()
        return Cold(name, path.stat().st_size, float(seconds), int(peak))


def table(rows: list[Cold]) -> str:
    """The rows as Markdown."""
    head = ("model", "file, MB", "cold compile, s", "peak, MB", "peak over file")
    cells = [
        (
            row.model,
            f"{row.file_bytes / 1e6:.0f}",
            f"{row.seconds:.1f}",
            f"{row.peak_bytes / 1e6:.0f}",
            f"{row.peak_bytes / row.file_bytes:.2f}",
        )
        for row in rows
    ]
    return report.table(head, cells)
