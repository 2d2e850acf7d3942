"""The work of `demo` without its output: compile, check, time, save the source of a kernel."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np

from ...graph.compile import compile
from ...graph.importers.onnx.importer import import_onnx
from ...graph.reference.reference import evaluate
from ...graph.samples.samples import SampleModel, tiny_model
from ...runtime.arrays import Array
from ...runtime.engine.engine import Engine
from ...runtime.machine.host import allowed_cpus
from ...runtime.model.profile import StepTime
from ...runtime.model.verification import Report, compare_outputs
from ...runtime.toolchain.cache import user_cache
from ..compare.comparison import (
    Effort,
    PeerDiffers,
    ThreadComparison,
    Tolerance,
    compare_systems,
)
from ..compare.latency import Latency, TimingBudget, latencies
from ..compare.peers import PeerFailed, installed
from ..engines import engine_operations, kernel_source
from ..text import working

_THREADS = (1, 2)
_SECONDS = 1.5  # of timing
_PROFILE_ROUNDS = 5


@dataclass(frozen=True, slots=True, eq=False)
class Demonstration:
    """A sample model, compiled, checked and timed.

    nodes, weights: of the imported model; weights in bytes. seconds: of compiling. report: the
    comparison with the reference. same_class: whether the largest output is that of the reference.
    slowest: the slowest launch; share: of a run on one thread; source: the file with the C of its
    kernel. numpy_seconds: of the reference; beside: the peers that are installed, in turns with the
    engine, or what is wrong with one of them.
    """

    sample: SampleModel
    engine: Engine
    nodes: int
    weights: int
    seconds: float
    report: Report
    error: float
    same_class: bool
    latencies: tuple[Latency, ...]
    slowest: StepTime
    share: float
    source: Path
    numpy_seconds: float
    beside: tuple[ThreadComparison, ...] | PeerFailed | PeerDiffers

    @staticmethod
    def make(sample: SampleModel, *, timing: float = _SECONDS) -> Demonstration:
        """Compile, check and time the model of a sample. timing: seconds to spend on it."""
        with working(f"compiling {sample.name}; half a minute in all") as tell:
            began = perf_counter()
            engine = compile(sample.model, progress=tell)
            seconds = perf_counter() - began
        with working("checking against NumPy in float64"):
            graph = import_onnx(sample.model)
            got, began = engine.run(sample.inputs), perf_counter()
            expected = evaluate(graph, sample.inputs)
            numpy_seconds = perf_counter() - began
            report = compare_outputs(engine.name, got, expected)
        with working("timing"):
            threads = [count for count in _THREADS if count <= allowed_cpus()]
            budget = TimingBudget(seconds=timing)
            timed = latencies(
                engine, sample.inputs, threads, budget, engine_operations(engine, sample.inputs)
            )
            profile = engine.profile(sample.inputs, threads=1, rounds=_PROFILE_ROUNDS)
            beside = compare(engine, sample, threads, timing)
        slowest = max(profile.steps, key=lambda step: step.seconds)
        return Demonstration(
            sample,
            engine,
            len(graph.nodes),
            graph.constant_bytes,
            seconds,
            report,
            _relative_error(got, expected),
            all(array.argmax() == expected[name].argmax() for name, array in got.items()),
            timed,
            slowest,
            slowest.seconds / profile.seconds,
            _save(slowest.kernel, kernel_source(engine, slowest.kernel)),
            numpy_seconds,
            beside,
        )


def compare(
    engine: Engine, sample: SampleModel, threads: Sequence[int], seconds: float
) -> tuple[ThreadComparison, ...] | PeerFailed | PeerDiffers:
    """The peers that are installed, compared with the engine; what is wrong with one of them."""
    peers, model = installed(), sample.model.SerializeToString()
    if not peers:
        return ()
    effort = Effort(seconds=seconds)
    try:
        return compare_systems(engine, model, sample.inputs, peers, threads, Tolerance(), effort)
    except (PeerFailed, PeerDiffers) as error:
        return error


@dataclass(frozen=True, slots=True, eq=False)
class Interpreted:
    """The tiny model in the interpreter, compared with the reference."""

    engine: Engine
    nodes: int
    seconds: float
    report: Report
    error: float


def interpreted_demonstration() -> Interpreted:
    """Run `tiny_model` without a compiler."""
    sample = tiny_model()
    engine = compile(sample.model, "python")
    graph = import_onnx(sample.model)
    began = perf_counter()
    got = engine.run(sample.inputs)
    seconds = perf_counter() - began
    expected = evaluate(graph, sample.inputs)
    report = compare_outputs(engine.name, got, expected)
    return Interpreted(engine, len(graph.nodes), seconds, report, _relative_error(got, expected))


def _relative_error(got: Mapping[str, Array], expected: Mapping[str, Array]) -> float:
    """The largest |got - expected| over the largest |expected| of all outputs."""
    errors = []
    for name, array in got.items():
        wanted = expected[name].astype(np.float64)
        errors.append(np.abs(array.astype(np.float64) - wanted).max() / np.abs(wanted).max())
    return float(max(errors))


def _save(symbol: str, source: str) -> Path:
    """Write the C of a kernel to the cache, or else to a temporary folder."""
    folder = user_cache().private_folder("demo")
    file = (folder or Path(tempfile.mkdtemp(prefix="tilewright-demo-"))) / f"{symbol}.c"
    file.write_text(source, encoding="utf-8")
    return file
