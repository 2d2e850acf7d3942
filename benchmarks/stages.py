"""How the work of a build grows with the stages of a te function: seconds of CPU and the peak of
resident memory of lowering a chain of row sums, each in a fresh process. Reads /proc: Linux only.

    python -m benchmarks.stages [24 48 96] [--write]

A stage is the sum of each row of 64 x 64 floats and what is left of the row without a hundredth of
it. "growth" is the time beside that of the row before.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from . import report
from .startup import process

LOWER = """
import json, re, sys, time
from pathlib import Path
from tilewright import te
from tilewright.driver.check.collector import fewer_collections
from tilewright.driver.lower import lower_function
from tilewright.driver.resolve_target import resolve_target

x = A = te.placeholder((64, 64), "float32", name="A")
for stage in range(int(sys.argv[1])):
    k = te.reduce_axis(64, name="k")
    s = te.compute((64,), lambda i: te.sum(x[i, k], axis=k), name=f"s{stage}")
    x = te.compute((64, 64), lambda i, j: x[i, j] - s[i] * 0.01, name=f"x{stage}")
func, target = te.func(A, x, name="chain"), resolve_target(None)
began = time.process_time()
with fewer_collections():
    lower_function(func, target)
seconds = time.process_time() - began
peak = re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())
print(json.dumps([seconds, int(peak[1]) * 1024]))
"""


@dataclass(frozen=True)
class Stages:
    """A chain of so many stages: seconds of CPU until it is lowered and proved, and the peak of the
    process.
    """

    stages: int
    seconds: float
    peak_bytes: int


def measure(stages: int) -> Stages:
    """Lower one chain in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder, "cache")
        cache.mkdir(mode=0o700)
        seconds, peak = json.loads(process(LOWER, str(stages), cache=cache)[1])
        return Stages(stages, seconds, peak)


def table(rows: list[Stages]) -> str:
    """The rows as Markdown."""
    head = ("stages", "CPU, s", "growth", "peak, MB")
    before = [None, *rows[:-1]]
    cells = [
        (
            str(row.stages),
            f"{row.seconds:.1f}",
            "" if last is None else f"{row.seconds / last.seconds:.1f}",
            f"{row.peak_bytes / 1e6:.0f}",
        )
        for row, last in zip(rows, before, strict=True)
    ]
    return report.table(head, cells)


def main() -> None:
    """Measure, print, and with --write keep the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stages", nargs="*", type=int, default=[24, 48, 96])
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    rows = [measure(stages) for stages in options.stages]
    print(table(rows))
    if options.write:
        report.write("stages", table(rows), [asdict(row) for row in rows], ())


if __name__ == "__main__":
    main()
