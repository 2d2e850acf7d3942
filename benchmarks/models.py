"""Whole models against peers, in the same rounds: the onnx wheel's light models and recurrent ones
with seeded random weights, and the files in the folder that TILEWRIGHT_MODELS names.

    python -m benchmarks.models [NAME ...] [--threads 1,2] [--rounds 7] [--nodes 10] [--no-cold]
        [--torch] [--logs FOLDER] [--write]

Latency is the median of the rounds, on arrays bound beforehand, and percentiles of all calls, the
higher ones where there are a hundred; "times ours" is a system's time over ours, the median of the
rounds' own ratios with its interval, and "disturbed" where the ends of that are twice apart.
"barrier" is that of a round, in the median: where it doubles, the CPUs share no last-level cache,
and two threads are slower in all systems. Systems and rounds are those of `tilewright bench`. Every
system's output is compared with the float64 reference before anything is timed. Before that each
model is compiled in a fresh process: its seconds and its peak of memory stand in a table of their
own. --torch: torch.compile as one more system, of files that `benchmarks.export` wrote. --nodes:
the launches of ours that lose the most against an even share of their time on one thread, each
timed alone. --logs: ours takes its schedules from FOLDER/NAME.jsonl, where `tilewright tune` has
kept them; the engine with the default schedules is one more system, and the result is `tuned`.
NAME@SIZES closes an open model (subjects/exported.py): resnet50@8 is of 8 images, bert_base@8x128
of 8 texts of 128 words. These are kept as `batches`, in a table that also says how far ahead of the
better peer each batch is, in the geometric mean.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import geometric_mean, median

import numpy as np
from onnx import ModelProto, version_converter

import tilewright as tw
from tilewright.cli.arguments import counts
from tilewright.cli.compare.comparison import OURS, load_systems
from tilewright.cli.compare.peers import Peer, PeerSession, installed
from tilewright.cli.engines import engine_operations
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.passes.levels import has_bytes
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.samples.samples import SampleModel
from tilewright.runtime.measure.rounds import Rounds

from . import compiling, report
from .peers.torch_models import TorchCompile
from .rounds import paired_rounds
from .subjects.exported import (
    EXPORTED,
    batch_of,
    is_closed,
    is_exported,
    model_name,
    sample_of,
)

DEFAULT = ("squeezenet", "resnet50")
UNTUNED = f"{OURS}, untuned"
WRONG = 1e-3  # of the largest magnitude: another network, not another rounding
WRONG_LEVELS = 0.2  # of models of bytes: a level that is rounded the other way is another input


@dataclass(frozen=True)
class Row:
    """One system on one model: milliseconds, its time over ours with the interval, max|y - ref64| /
    max|ref64|; seconds of a barrier in its rounds, None for one thread.
    """

    model: str
    threads: int
    system: str
    milliseconds: float
    over_ours: float
    low: float
    high: float
    p50: float
    p95: float | None
    p99: float | None
    error: float
    share: float
    barrier_seconds: float | None


def peer_bytes(sample: SampleModel) -> bytes:
    """The model for peers; light ones, which are old, at opset 17, where peers' optimisers are at
    their best.
    """
    model: ModelProto = sample.model
    if not is_exported(sample.name):
        model = version_converter.convert_version(model, 17)
    return model.SerializeToString()


def peers_of(name: str, torch: bool) -> tuple[Peer, ...]:
    """The peers that run a model; with `torch`, torch.compile where the file was exported."""
    return (*installed(), *([TorchCompile(model=name)] if torch and name in EXPORTED else []))


def measure(
    name: str,
    peers: Sequence[Peer],
    threads: Sequence[int],
    rounds: int,
    nodes: int = 0,
    log: Path | None = None,
) -> list[Row]:
    """All systems on one model; prints the `nodes` launches of ours that lose the most."""
    sample = sample_of(name)
    began = time.perf_counter()
    engine = tw.compile(sample.model, schedules=None if log is None else tw.TuningLog(log))
    print(f"{name}: compiled in {time.perf_counter() - began:.1f} s", flush=True)
    plain = None if log is None else tw.compile(sample.model)
    if log is not None:
        print(engine.tuning, flush=True)
    wanted = evaluate(import_onnx(sample.model), sample.inputs)
    rows: list[Row] = []
    for count in threads:
        systems = load_systems(engine, peer_bytes(sample), sample.inputs, peers, count)
        if plain is not None:
            (systems[UNTUNED],) = load_systems(plain, b"", sample.inputs, (), count).values()
        rows += _rows(sample, engine, systems, wanted, count, rounds)
    if nodes:
        print(_losses(engine, sample, max(threads), nodes), flush=True)
    return rows


def _losses(engine: tw.Engine, sample: SampleModel, threads: int, most: int) -> str:
    """The launches that lose the most on `threads` threads, as Markdown."""
    alone = engine.profile(sample.inputs, threads=1)
    shared = engine.profile(sample.inputs, threads=threads)
    pairs = list(zip(alone.steps, shared.steps, strict=True))
    pairs.sort(key=lambda pair: pair[0].seconds / threads - pair[1].seconds)
    head = ("nodes", "us, 1 thread", f"us, {threads} threads", "us lost", "of a run")
    cells = [
        (
            one.label,
            f"{one.seconds * 1e6:.1f}",
            f"{step.seconds * 1e6:.1f}",
            f"{(step.seconds - one.seconds / threads) * 1e6:.1f}",
            f"{(step.seconds - one.seconds / threads) / shared.whole:.1%}",
        )
        for one, step in pairs[:most]
    ]
    return report.table(head, cells)


def _rows(
    sample: SampleModel,
    engine: tw.Engine,
    systems: Mapping[str, PeerSession],
    wanted: dict[str, np.ndarray],
    threads: int,
    rounds: int,
) -> list[Row]:
    (name, reference), *_ = wanted.items()
    scale = float(np.abs(reference).max())
    errors = {
        system: float(np.abs(session.outputs()[name] - reference).max()) / scale
        for system, session in systems.items()
    }
    most = WRONG_LEVELS if has_bytes(import_onnx(sample.model)) else WRONG
    wrong = [system for system, error in errors.items() if not error < most]
    if wrong:
        raise ArithmeticError(f"{sample.name}: another network, or wrong, in {', '.join(wrong)}")
    calls = {system: session.call for system, session in systems.items()}
    operations = float(engine_operations(engine, sample.inputs) or 0)
    results, found = paired_rounds(calls, operations, threads, rounds)
    ratios = {system: found.ratio(system, OURS) for system in calls}
    barrier = median(found.barriers) if found.barriers else None
    return [
        Row(
            sample.name,
            threads,
            system,
            result.seconds * 1e3,
            ratios[system].median,
            ratios[system].low,
            ratios[system].high,
            *_percentiles(found, system),
            errors[system],
            result.share,
            barrier,
        )
        for system, result in results.items()
    ]


def _percentiles(found: Rounds, system: str) -> tuple[float, float | None, float | None]:
    """Of all calls, milliseconds; None for those that few calls do not have."""
    high = (found.percentile(system, percent) for percent in (95, 99))
    p95, p99 = (None if seconds is None else seconds * 1e3 for seconds in high)
    return median(c for calls in found.seconds[system] for c in calls) * 1e3, p95, p99


def _table(rows: Sequence[Row]) -> str:
    """The rows as Markdown."""
    head = (
        "model",
        "threads",
        "system",
        "ms",
        "times ours",
        "95 % interval",
        "p50 / p95 / p99, ms",
        "max error / max",
        "share of FMA peak",
        "barrier, ns",
    )
    cells = [
        (
            row.model,
            row.threads,
            row.system,
            f"{row.milliseconds:.2f}",
            report.ratio_text(row.over_ours, row.low, row.high),
            f"{row.low:.2f} to {row.high:.2f}",
            " / ".join(f"{p:.2f}" for p in (row.p50, row.p95, row.p99) if p is not None),
            f"{row.error:.1e}",
            f"{row.share:.0%}",
            "" if row.barrier_seconds is None else f"{row.barrier_seconds * 1e9:.0f}",
        )
        for row in rows
    ]
    return report.table(head, cells)


def batches_table(rows: Sequence[Row]) -> str:
    """For each number of threads and batch, the geometric mean of the least of the peers' times
    over ours, and the least end of all intervals.
    """
    peers: dict[tuple[int, int], list[Row]] = {}
    for row in rows:
        if row.system not in (OURS, UNTUNED):
            peers.setdefault((row.threads, batch_of(row.model)), []).append(row)
    head = ("threads", "batch", "models", "ahead of the better peer", "least end of an interval")
    cells = []
    for (threads, batch), others in sorted(peers.items()):
        names = {row.model for row in others}
        ahead = [min(row.over_ours for row in others if row.model == name) for name in names]
        least = min(row.low for row in others)
        cells.append((threads, batch, len(names), f"{geometric_mean(ahead):.2f}", f"{least:.2f}"))
    return report.table(head, cells)


def _keep(name: str, rows: Sequence[Row], peers: Sequence[Peer]) -> None:
    """Keep rows of this machine: those of closed sizes as `batches`."""
    for kept, closed in (("batches", True), (name, False)):
        own = [row for row in rows if is_closed(row.model) == closed]
        text = f"{batches_table(own)}\n\n{_table(own)}" if closed and own else _table(own)
        if own:
            report.write(kept, text, [asdict(row) for row in own], peers)


def main() -> None:
    """Measure, print, and with --write keep the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", type=model_name, default=DEFAULT)
    parser.add_argument("--threads", type=counts, default=(1, 2))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--nodes", type=int, default=0)
    parser.add_argument("--cold", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--torch", action="store_true")
    parser.add_argument("--logs", type=Path, metavar="FOLDER")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    cold = [compiling.measure(name) for name in options.models if options.cold]
    if cold:
        print(compiling.table(cold), flush=True)
    rows: list[Row] = []
    for name in options.models:
        peers = peers_of(name, options.torch)
        log = None if options.logs is None else options.logs / f"{name}.jsonl"
        found = measure(name, peers, options.threads, options.rounds, options.nodes, log)
        print(_table(found), flush=True)
        rows += found
    if options.write:
        _keep("models" if options.logs is None else "tuned", rows, peers)
    if options.write and cold:
        report.write("compiling", compiling.table(cold), [asdict(row) for row in cold], ())


if __name__ == "__main__":
    main()
