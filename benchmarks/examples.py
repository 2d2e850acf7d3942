"""The programs of tutorials/examples under each of their schedules, at their real size.

    python -m benchmarks.examples [name ...] [--rounds 5] [--threads 1,2] [--write]

All schedules of a program are measured in the same rounds. Every row: milliseconds at the median,
arithmetic and compulsory bytes (each input and output once) over that time.
"""

from __future__ import annotations

import argparse
import runpy
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import tilewright as tw
from tilewright.cli.arguments import counts
from tilewright.tir.stmt import Parameter
from tilewright.tir.work.work import bytes_moved, operations

from . import report
from .rounds import paired_rounds

FOLDER = Path(__file__).resolve().parents[1] / "tutorials" / "examples"


@dataclass(frozen=True)
class Row:
    """One program under one schedule."""

    program: str
    schedule: str
    threads: int
    milliseconds: float
    gflops: float
    gigabytes: float
    repeated_rounds: int


def measure(name: str, threads: int, rounds: int) -> list[Row]:
    """Every schedule of a program, in the same rounds."""
    example = runpy.run_path(str(FOLDER / f"{name}.py"))
    func = example["program"](*example["REAL"])
    rng = np.random.default_rng(0)
    values = {p.name: array(rng, p) for p in func.parameters if p.role != "output"}
    bound = {p.name for p in func.parameters if p.role == "constant"}
    calls = {}
    for how, steps in example["SCHEDULES"].items():
        constants = {n: v for n, v in values.items() if n in bound}
        kernel = tw.build(tw.Schedule(func).apply(steps), constants=constants)
        arguments = [v for n, v in values.items() if n not in bound]
        calls[how] = kernel.bind_copies(*arguments, threads=threads)
    work, moved = operations(func), bytes_moved(func)
    results, found = paired_rounds(calls, work, threads, rounds)
    return [
        Row(
            name,
            how,
            threads,
            result.seconds * 1e3,
            result.gflops,
            moved / result.seconds / 1e9,
            found.repeated,
        )
        for how, result in results.items()
    ]


def array(rng: np.random.Generator, parameter: Parameter) -> np.ndarray:
    """Positive numbers, or any integers, of a parameter's type and shape."""
    kind, shape = parameter.dtype.numpy, parameter.buffer.shape
    if np.issubdtype(kind, np.integer):
        info = np.iinfo(kind)
        return rng.integers(info.min, info.max, shape, kind, endpoint=True)
    return (rng.random(shape, dtype=np.float32) + np.float32(0.5)).astype(kind)


def main() -> None:
    """Measure, print, and with --write keep the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    known = sorted(path.stem for path in FOLDER.glob("*.py"))
    parser.add_argument("names", nargs="*", default=known, help=", ".join(known))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=counts, default=(1, 2))
    parser.add_argument("--write", action="store_true", help="keep it under benchmarks/results")
    options = parser.parse_args()
    rows = [
        row
        for name in options.names
        for threads in options.threads
        for row in measure(name, threads, options.rounds)
    ]
    table = report.table(
        ("program", "schedule", "threads", "ms", "GFLOP/s", "GB/s"),
        [
            (
                row.program,
                row.schedule,
                row.threads,
                f"{row.milliseconds:.3f}",
                f"{row.gflops:.1f}",
                f"{row.gigabytes:.1f}",
            )
            for row in rows
        ],
    )
    print(table)
    if options.write:
        report.write("examples", table, [asdict(row) for row in rows], ())


if __name__ == "__main__":
    main()
