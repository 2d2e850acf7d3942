"""What a cold compile costs: seconds of `tw.compile`, where they went, and the peak of resident
memory, in a fresh process with an empty cache. Reads /proc: Linux only.

    python -m benchmarks.compiling [resnet50 bert_base ...] [--write]

Parts add up to the whole but for what stands beside: the libraries that a compile imports, the
cache on disk, and the C compiler, which runs in processes of its own.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from . import report
from .startup import process
from .subjects.exported import file_of, model_name

COMPILE = """
import json, re, sys, time
from pathlib import Path
import tilewright as tw
began = time.perf_counter()
engine = tw.compile(sys.argv[1])
seconds = time.perf_counter() - began
peak = re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())
print(json.dumps([seconds, int(peak[1]) * 1024, engine.explain().seconds]))
"""


@dataclass(frozen=True)
class Cold:
    """One model: bytes of its file, seconds of a cold compile, bytes resident at the peak.

    parts: the seconds of each part, as `Engine.explain` has them.
    """

    model: str
    file_bytes: int
    seconds: float
    peak_bytes: int
    parts: tuple[tuple[str, float], ...]


def measure(name: str) -> Cold:
    """Compile one model in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = file_of(name, Path(folder))
        cache = Path(folder, "cache")
        cache.mkdir(mode=0o700)
        seconds, peak, parts = json.loads(process(COMPILE, str(path), cache=cache)[1])
        return Cold(name, path.stat().st_size, seconds, peak, tuple(map(tuple, parts)))


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
    return f"{report.table(head, cells)}\n\n{_parts_table(rows)}"


def _parts_table(rows: list[Cold]) -> str:
    """The parts of each compile, a column for each model; seconds."""
    names = dict.fromkeys(name for row in rows for name, _ in row.parts)
    found = [dict(row.parts) for row in rows]
    cells = [(name, *(f"{parts.get(name, 0.0):.2f}" for parts in found)) for name in names]
    return report.table(("seconds of", *(row.model for row in rows)), cells)


def main() -> None:
    """Measure, print, and with --write keep the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", type=model_name, default=["resnet50"])
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    cold = [measure(name) for name in options.models]
    print(table(cold))
    if options.write:
        report.write("compiling", table(cold), [asdict(row) for row in cold], ())


if __name__ == "__main__":
    main()
