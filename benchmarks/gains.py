"""What tuning gains over the default schedules.

    python -m benchmarks.gains [NAME ...] [--suite odd|products] [--trials 64] [--threads 1]
                               [--processes 5] [--log FOLDER] [--write]

Each function is tuned, its trials kept in a log of FOLDER. Then, in fresh processes, the default
and what the log recommends take turns, constants from memory as in an engine. A process's ratio is
the median of its rounds; told is the median of the processes, and the least and the most of them.
Where the log recommends the default, the ratio is 1 and nothing is timed. NAME is a part of a
function's name.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import geometric_mean, median

import numpy as np

import tilewright as tw
from tilewright.runtime.machine.host import host_target, last_level_bytes
from tilewright.runtime.machine.timing import compare
from tilewright.tir.func import PrimFunc

from . import report
from .matmul import SUITE
from .startup import process
from .subjects.functions import product
from .subjects.odd_shapes import ODD_SHAPES

SUITES: Mapping[str, Mapping[str, Callable[[], PrimFunc]]] = {
    "odd": ODD_SHAPES,
    "products": {"x".join(map(str, shape)): partial(product, *shape) for shape in SUITE},
}
ROUNDS = 15
RUN = """
import sys
from benchmarks.gains import ratio
print(ratio(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
"""


@dataclass(frozen=True)
class Row:
    """One function: trials, whether the default stayed, the default's time over the tuned one's in
    each process, and the seconds that the search took.
    """

    name: str
    threads: int
    trials: int
    is_default: bool
    ratios: tuple[float, ...]
    seconds: float


def call_of(func: PrimFunc, threads: int, log: str | None) -> Callable[[], object]:
    """A call of the kernel by the default schedule, or by that of a log."""
    random = np.random.default_rng(0)
    arrays = {
        b.name: random.standard_normal(tuple(map(int, b.shape)), dtype=np.float32)
        for b in (*func.inputs, *func.constants)
    }
    fixed = {b.name: arrays[b.name] for b in func.constants}
    inputs = [arrays[b.name] for b in func.inputs if b.name not in fixed]
    size = sum(array.nbytes for array in fixed.values())
    rotated = 1 + 2 * last_level_bytes() // size if size else 1
    target = replace(host_target(), threads=threads)
    schedules = None if log is None else tw.TuningLog(log)
    kernel = tw.build(func, target, constants=fixed, schedules=schedules, verify="off")
    return kernel.bind_copies(*inputs, threads=threads, rotated=rotated)


def ratio(suite: str, name: str, log: str, threads: int) -> float:
    """The default's time over that of what a log recommends, in this process."""
    func = SUITES[suite][name]()
    calls = {
        "default": call_of(func, threads, None),
        "tuned": call_of(func, threads, log),
    }
    found = compare(calls, ROUNDS)
    pairs = zip(found["default"].samples, found["tuned"].samples, strict=True)
    return median(default / tuned for default, tuned in pairs)


def measure(suite: str, name: str, log: Path, options: argparse.Namespace) -> Row:
    """Tune one function, and see what it gained."""
    target = replace(host_target(), threads=options.threads)
    began = time.perf_counter()
    result = tw.tune(SUITES[suite][name](), target, trials=options.trials, log=log)
    seconds = time.perf_counter() - began
    stays = result.best is None or result.best.is_default
    ratios: list[float] = [1.0] if stays else []
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder, "cache")
        cache.mkdir(mode=0o700)
        words = (suite, name, str(log), str(options.threads))
        while len(ratios) < (1 if stays else options.processes):
            ratios.append(float(process(RUN, *words, cache=cache)[1]))
    tried = sum(not trial.method.session for trial in result.history)
    return Row(name, options.threads, tried, stays, tuple(ratios), seconds)


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown, and their geometric mean."""
    head = ("function", "threads", "trials", "default / tuned", "least to most", "search, s")
    cells: list[tuple[object, ...]] = [
        (
            row.name,
            row.threads,
            row.trials,
            "the default stays" if row.is_default else f"{median(row.ratios):.3f}",
            "" if row.is_default else f"{min(row.ratios):.3f} to {max(row.ratios):.3f}",
            f"{row.seconds:.0f}",
        )
        for row in rows
    ]
    mean = geometric_mean([median(row.ratios) for row in rows])
    least = min(median(row.ratios) for row in rows)
    told = f"Geometric mean of {len(rows)}: {mean:.3f}; least {least:.3f}."
    return f"{report.table(head, cells)}\n\n{told}"


def main() -> None:
    """Tune and measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--suite", choices=tuple(SUITES), default="odd")
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    log = options.log or Path(tempfile.mkdtemp()) / "gains.jsonl"
    chosen = [
        name
        for name in SUITES[options.suite]
        if not options.names or any(part in name for part in options.names)
    ]
    rows = []
    for name in chosen:
        rows.append(measure(options.suite, name, log, options))
        print(json.dumps(asdict(rows[-1])), flush=True)
    print(table(rows))
    if options.write:
        name = f"gains_{options.suite}"
        report.write(name, table(rows), [asdict(row) for row in rows], ())


if __name__ == "__main__":
    main()
