"""Whole models against peers, in the same rounds: the onnx wheel's light models with seeded random
weights, and the files in the folder that TILEWRIGHT_MODELS names.

    python -m benchmarks.models [NAME ...] [--threads 1 2] [--rounds 7] [--write]

Latency is the median of the rounds, on arrays bound beforehand where a system can do that; `ratio`
is ours over the peer's, median of the rounds' own ratios. Every system's output is compared with
the float64 reference before anything is timed. Before that each model is compiled in a fresh
process: its seconds and its peak of memory stand in a table of their own.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from onnx import ModelProto, version_converter

import tilewright as tw
from tilewright.cli.engines import engine_operations
from tilewright.graph.importers.onnx import import_onnx
from tilewright.graph.reference import evaluate
from tilewright.graph.samples import Sample

from . import compiling, peers, report
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
    context = engine.context(threads=threads)
    outputs = {spec.name: np.empty(spec.shape, spec.dtype) for spec in engine.outputs}
    context.bind(sample.inputs, outputs)
    calls = {"tilewright": context.run}
    for peer in peers.available():
        calls[peer] = peers.CALLS[peer](data, sample.inputs, threads)
    (name, reference), *_ = wanted.items()
    scale = float(np.abs(reference).max())
    errors = {}
    for system, call in calls.items():
        result = call()
        found = outputs[name] if system == "tilewright" else _first(result)
        errors[system] = float(np.abs(found - reference).max()) / scale
    results, _ = paired_rounds(calls, float(engine_operations(engine) or 0), threads, rounds)
    ours = results["tilewright"].seconds
    return [
        Row(sample.name, threads, s, r.seconds * 1e3, r.seconds / ours, errors[s], r.share)
        for s, r in results.items()
    ]


def _first(result: object) -> np.ndarray:
    """The first output of a peer's call."""
    # type: ignore[attr-defined]
    values = result if isinstance(result, list) else list(result.values())
    return np.asarray(values[0])


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
        report.write("models", _table(rows), [asdict(row) for row in rows], peers.available())
        report.write("compiling", compiling.table(cold), [asdict(row) for row in cold], ())


if __name__ == "__main__":
    main()
