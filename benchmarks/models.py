"""Whole models against peers, in the same rounds: the onnx wheel's light models with seeded random
weights, and the files in the folder that TILEWRIGHT_MODELS names.

    python -m benchmarks.models [NAME ...] [--threads 1 2] [--rounds 7] [--write]

Latency is the median of the rounds, on arrays bound beforehand; "times ours" is a system's time
over ours, the median of the rounds' own ratios. Systems and rounds are those of `tilewright bench`.
Every system's output is compared with the float64 reference before anything is timed. Before that
each model is compiled in a fresh process: its seconds and its peak of memory stand in a table of
their own.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from onnx import ModelProto, version_converter

import tilewright as tw
from tilewright.cli.comparison import OURS, load_systems
from tilewright.cli.engines import engine_operations
from tilewright.cli.peers import installed
from tilewright.graph.importers.onnx import import_onnx
from tilewright.graph.reference import evaluate
from tilewright.graph.samples import Sample

from . import compiling, report
from .exported import EXPORTED, NAMES, sample_of
from .rounds import paired_rounds

DEFAULT = ("squeezenet", "resnet50")


@dataclass(frozen=True)
class Row:
    """One system on one model: milliseconds, its time over ours, max|y - ref64| / max|ref64|."""

    model: str
    threads: int
    system: str
    milliseconds: float
    over_ours: float
    error: float
    share: float


def peer_bytes(sample: Sample) -> bytes:
    """The model for peers; light ones, which are old, at opset 17, where peers' optimisers are at
    their best.
    """
    model: ModelProto = sample.model
    if sample.name not in EXPORTED:
        model = version_converter.convert_version(model, 17)
    return model.SerializeToString()


def measure(name: str, threads: Sequence[int], rounds: int) -> list[Row]:
    """All systems on one model."""
    sample = sample_of(name)
    began = time.perf_counter()
    engine = tw.compile(sample.model)
    print(f"{name}: compiled in {time.perf_counter() - began:.1f} s", flush=True)
    wanted = evaluate(import_onnx(sample.model), sample.inputs)
    data = peer_bytes(sample)
    return [row for count in threads for row in _rows(sample, engine, data, wanted, count, rounds)]


def _rows(
    sample: Sample,
    engine: tw.Engine,
    data: bytes,
    wanted: dict[str, np.ndarray],
    threads: int,
    rounds: int,
) -> list[Row]:
    systems = load_systems(engine, data, sample.inputs, installed(), threads)
    (name, reference), *_ = wanted.items()
    scale = float(np.abs(reference).max())
    errors = {
        system: float(np.abs(session.outputs()[name] - reference).max()) / scale
        for system, session in systems.items()
    }
    calls = {system: session.call for system, session in systems.items()}
    operations = float(engine_operations(engine) or 0)
    results, found = paired_rounds(calls, operations, threads, rounds)
    return [
        Row(
            sample.name,
            threads,
            system,
            result.seconds * 1e3,
            found.ratio(system, OURS).median,
            errors[system],
            result.share,
        )
        for system, result in results.items()
    ]


def _table(rows: Sequence[Row]) -> str:
    """The rows as Markdown."""
    head = (
        "model",
        "threads",
        "system",
        "ms",
        "times ours",
        "max error / max",
        "share of FMA peak",
    )
    cells = [
        (
            row.model,
            row.threads,
            row.system,
            f"{row.milliseconds:.2f}",
            f"{row.over_ours:.2f}",
            f"{row.error:.1e}",
            f"{row.share:.0%}",
        )
        for row in rows
    ]
    return report.table(head, cells)


def main() -> None:
    """Measure, print, and with --write keep the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=DEFAULT, choices=[*NAMES, []])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    cold = [compiling.measure(name) for name in options.models]
    print(compiling.table(cold), flush=True)
    rows: list[Row] = []
    for name in options.models:
        found = measure(name, options.threads, options.rounds)
        print(_table(found), flush=True)
        rows += found
    if options.write:
        report.write("models", _table(rows), [asdict(row) for row in rows], installed())
        report.write("compiling", compiling.table(cold), [asdict(row) for row in cold], ())


if __name__ == "__main__":
    main()
