"""Models of PyTorch by each way in: torch.compile with our backend, `tw.compile(module)`, an
archive and an ONNX file, beside eager torch and Inductor.

    python -m benchmarks.torch_models [NAME ...] [--threads 1,2] [--rounds 5] [--calls] [--write]

The networks are those of `benchmarks.model_families`: classes of transformers with seeded weights.
Before anything is timed: the outputs of every way against the network in float64, as the largest
difference over the largest magnitude; the launches of each engine, which should be the same by
each way; what conversion takes beside torch's own export, in seconds of CPU. Then all systems in
the same rounds: the time of each over ours by torch.compile, medians of the rounds' own ratios.
--calls: what a call of a graph with 40 weights costs over a backend that computes nothing.
"""

from __future__ import annotations

import argparse
import io
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, nn
from torch._dynamo.backends.common import aot_autograd

import tilewright as tw
from tilewright.cli.arguments import counts
from tilewright.graph.importers.aten.importer import import_program
from tilewright.graph.importers.fx.exported import program_of
from tilewright.interop.torch import explain
from tilewright.runtime.machine.timing import calibrate
from tilewright.runtime.measure.rounds import Gate, interleave

from . import report
from .export import Exported
from .model_families import export
from .rounds import paired_rounds
from .subjects.exported import one_of
from .subjects.families import FAMILIES

NAMES = tuple(name for name in FAMILIES if name not in ("segformer", "detr", "unet", "wav2vec2"))
OURS = "torch.compile"  # with our backend
PATIENCE = 20.0  # seconds a measurement waits for a machine that is shared
RUN = 0.02  # seconds of calls of one system in a turn: the first of them finds cold caches
LAYERS = 20  # of the network whose calls are timed: 40 weights
Call = Callable[[], object]


@dataclass
class Row:
    """One network. errors: of each way, against float64; launches: of each way's engine; seconds:
    of CPU, by what was done; over_ours: by threads and system.
    """

    model: str
    errors: dict[str, float] = field(default_factory=dict)
    launches: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    milliseconds: dict[int, float] = field(default_factory=dict)
    over_ours: dict[int, dict[str, float]] = field(default_factory=dict)


def made(name: str) -> Exported:
    """A network with its inputs."""
    torch.manual_seed(0)
    return FAMILIES[name](torch.Generator().manual_seed(0), 1)


def results(value: object) -> tuple[Tensor, ...]:
    """What a network returns, as a tuple."""
    return (value,) if isinstance(value, Tensor) else tuple(value)  # type: ignore[arg-type]


def in_float64(name: str) -> tuple[Tensor, ...]:
    """What a network gives in float64."""
    subject = made(name)
    given = [x.double() if x.is_floating_point() else x for x in subject.inputs.values()]
    return results(subject.network.double()(*given))


def error(found: Sequence[Tensor], exact: Sequence[Tensor]) -> float:
    """The largest difference of any output over its largest magnitude."""
    pairs = zip(found, exact, strict=True)
    return max(float((a.double() - b).abs().max() / b.abs().max()) for a, b in pairs)


def timed(row: Row, what: str, work: Callable[[], Any]) -> Any:
    """What some work gives; its seconds of CPU are kept."""
    start = time.process_time()
    found = work()
    row.seconds[what] = time.process_time() - start
    return found


def engines(row: Row, subject: Exported, folder: Path) -> dict[str, tw.Engine]:
    """The engines by the three ways that need no torch.compile."""
    given = tuple(subject.inputs.values())
    program = timed(row, "torch.export", lambda: torch.export.export(subject.network, given))
    read = timed(row, "read", lambda: program_of(program))
    timed(row, "import", lambda: import_program(read))
    archive, onnx = io.BytesIO(), folder / f"{row.model}.onnx"
    torch.export.save(program, archive)
    ways: dict[str, object] = {"module": program, "archive": archive.getvalue()}
    try:
        export(subject, onnx, "dynamo", 20, opened=False)
        ways["ONNX"] = onnx
    except Exception as problem:  # of any kind: torch's exporter fails on some of these
        print(f"{row.model}: torch.onnx.export: {type(problem).__name__}")
    found = {way: tw.compile(model, verify="off") for way, model in ways.items()}
    row.launches |= {way: len(engine.explain().order) for way, engine in found.items()}
    return found


def systems_of(row: Row, subject: Exported, folder: Path) -> dict[str, Callable[[], Any]]:
    """Each system as a call that gives its outputs."""
    given = tuple(subject.inputs.values())
    network, calls = subject.network, dict[str, Callable[[], Any]]()
    (graph,) = explain(network, *given, options={"fallback": "refuse", "verify": "off"}).graphs
    assert graph.report is not None, graph.fallback
    row.launches[OURS] = len(graph.report.order)
    options = {"fallback": "refuse", "verify": "off"}
    ours = torch.compile(network, backend="tilewright", fullgraph=True, options=options)
    calls[OURS] = lambda: ours(*given)
    calls["eager"] = lambda: network(*given)
    inductor = torch.compile(network, options={"freezing": True})
    calls["Inductor"] = lambda: inductor(*given)
    for way, engine in engines(row, subject, folder).items():
        calls[way] = _bound(engine, subject)
    return calls


def _bound(engine: tw.Engine, subject: Exported) -> Callable[[], Any]:
    named = zip((spec.name for spec in engine.inputs), subject.inputs.values(), strict=True)
    inputs = {name: tensor.numpy() for name, tensor in named}
    out = {spec.name: torch.empty(tuple(spec.shape)) for spec in engine.outputs}  # type: ignore[arg-type]

    def call() -> list[Tensor]:
        engine.run(inputs, out=out, threads=torch.get_num_threads())
        return list(out.values())

    return call


def measure(name: str, threads: Sequence[int], rounds: int, folder: Path) -> Row:
    """One network by all ways."""
    row, subject = Row(name), made(name)
    torch._dynamo.reset()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exact = in_float64(name)
        calls = systems_of(row, subject, folder)
        for count in threads:
            torch.set_num_threads(count)
            for system, call in calls.items():
                row.errors.setdefault(system, error(results(call()), exact))
            _time(row, calls, count, rounds)
    return row


def _time(row: Row, calls: Mapping[str, Call], threads: int, rounds: int) -> None:
    if rounds:
        _, found = paired_rounds(calls, 0.0, threads, rounds, part=RUN)
        row.milliseconds[threads] = found.timing(OURS).median * 1e3
        others = (system for system in calls if system != OURS)
        row.over_ours[threads] = {one: found.ratio(one, OURS).median for one in others}


def null(graph: Any, inputs: Sequence[Any]) -> Callable[..., Any]:
    """A backend that computes nothing: what torch itself takes of a call."""

    class Nothing:
        _boxed_call = True

        def __init__(self, made: Any) -> None:
            values = list(made.graph.nodes)[-1].args[0]
            self.results = [torch.empty(tuple(node.meta["val"].shape)) for node in values]

        def __call__(self, values: list[Any]) -> list[Tensor]:
            values.clear()
            return self.results

    backend: Callable[..., Any] = aot_autograd(fw_compiler=lambda made, _: Nothing(made))
    made_of: Callable[..., Any] = backend(graph, inputs)
    return made_of


def call_overhead(rounds: int) -> dict[str, float]:
    """Microseconds of a call of a small network with 40 weights: by null, by us, by eager torch."""
    torch._dynamo.reset()
    torch.set_num_threads(1)
    network, x = (
        nn.Sequential(*(nn.Linear(16, 16) for _ in range(LAYERS))).eval(),
        torch.ones(4, 16),
    )
    nothing = torch.compile(network, backend=null)
    ours = torch.compile(network, backend="tilewright", options={"fallback": "refuse"})
    with torch.no_grad():
        calls: dict[str, Call] = {
            "null": lambda: nothing(x),
            OURS: lambda: ours(x),
            "eager": lambda: network(x),
        }
        for call in calls.values():
            call()
        many = {system: calibrate(call) for system, call in calls.items()}
        found = interleave(calls, many, rounds, Gate.of(1, PATIENCE))
    return {system: found.timing(system).median * 1e6 for system in calls}


HEAD = ("model", "threads", "ms", "times ours", "launches", "error", "seconds of CPU")


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown."""
    cells = [
        (
            row.model,
            threads,
            f"{milliseconds:.2f}",
            ", ".join(
                f"{one} {ratio:.2f}" for one, ratio in row.over_ours.get(threads, {}).items()
            ),
            ", ".join(f"{way} {count}" for way, count in row.launches.items()),
            ", ".join(f"{one} {found:.1e}" for one, found in row.errors.items()),
            ", ".join(f"{what} {seconds:.2f}" for what, seconds in row.seconds.items()),
        )
        for row in rows
        for threads, milliseconds in (row.milliseconds or {0: 0.0}).items()
    ]
    return report.table(HEAD, cells)


def main() -> None:
    """Measure, print, and with --write keep the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", type=one_of(NAMES), default=list(NAMES))
    parser.add_argument("--threads", type=counts, default=(1, 2))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.calls:
        found = call_overhead(options.rounds)
        text = report.table(("", "us of a call"), [(k, f"{v:.1f}") for k, v in found.items()])
        print(text)
        if options.write:
            report.write("torch_calls", text, [found], ())
        return
    rows = list[Row]()
    with TemporaryDirectory() as temporary:
        for name in options.models:
            rows.append(measure(name, options.threads, options.rounds, Path(temporary)))
            print(table(rows[-1:]), flush=True)
    if options.write:
        report.write("torch_models", table(rows), [asdict(row) for row in rows], ())


if __name__ == "__main__":
    main()
