"""`tilewright run`: run a model on random or given inputs, check it, time it."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from .arguments import (
    add_bound,
    add_json,
    add_model,
    add_schedules,
    add_shape_log,
    add_sizes,
    add_verb,
    counts,
    described_by,
    seconds,
    sizes_of,
    whole,
)
from .errors import MISMATCH, OK, UsageError
from .precision import add_precision
from .text import bad, good, paragraph

if TYPE_CHECKING:
    from ..runtime.arrays import Array
    from ..runtime.engine.engine import Engine
    from ..runtime.model.verification import Report
    from .arguments import Verbs
    from .compare.latency import Latency

_EXAMPLES = """\
  tilewright run resnet50.onnx                                 random input, latency
  tilewright run model.onnx --shapes batch:1 --check           compare with the reference
  tilewright run model.onnx --load-inputs in.npz --save-outputs out.npz --iterations 0
  tilewright run model.onnx --threads 1,2 --duration 5 --json  latency, for programs
  tilewright run model.onnx --save-engine model.twe            keep what was compiled
  tilewright run --load-engine model.twe                       run it again, without the model
  tilewright run model.onnx --sizes seq:17 --shape-log s.jsonl note at which sizes it ran
"""


def add_parser(verbs: Verbs) -> None:
    """The verb and its options."""
    parser = add_verb(
        verbs,
        "run",
        "run a model: outputs, check, latency",
        described_by(__doc__),
        _EXAMPLES,
        "MODEL",
    )
    add_model(parser, optional=True)
    add_precision(parser)
    add_schedules(parser)
    parser.add_argument("--load-engine", metavar="FILE", help="run this engine, not MODEL")
    parser.add_argument("--save-engine", metavar="FILE", help="write the engine (.twe)")
    parser.add_argument(
        "--load-inputs", metavar="FILE", help=".npz by name, or .npy for one input; else random"
    )
    parser.add_argument("--save-outputs", metavar="FILE", help="write the outputs as .npz")
    parser.add_argument("--seed", type=int, default=0, help="of random inputs (default 0)")
    add_sizes(parser)
    add_shape_log(parser)
    parser.add_argument(
        "--check", action="store_true", help="compare with the reference in float64; exit 1 if off"
    )
    add_bound(parser, "reference", "1e-5")
    parser.add_argument(
        "--threads", type=counts, metavar="N,...", help="time at these numbers of threads"
    )
    parser.add_argument(
        "--warmup", type=whole, default=3, metavar="N", help="runs first (default 3)"
    )
    parser.add_argument(
        "--iterations", type=whole, metavar="N", help="time N samples; 0: do not time"
    )
    parser.add_argument(
        "--duration", type=seconds, default=1.0, metavar="S", help="time for S seconds (default 1)"
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the model once, then do what the options ask for."""
    from .tensors import load_inputs, save_outputs  # start-up

    engine = _engine(arguments)
    if arguments.save_engine is not None:
        engine.save(arguments.save_engine)
    inputs: dict[str, Array] = (
        engine.random_inputs(arguments.seed, sizes=sizes_of(arguments.sizes))
        if arguments.load_inputs is None
        else load_inputs(arguments.load_inputs, engine.inputs)
    )
    outputs = engine.run(inputs)
    if arguments.save_outputs is not None:
        save_outputs(arguments.save_outputs, outputs)
    wanted = arguments.check or arguments.atol is not None or arguments.rtol is not None
    report = engine.verify(inputs, atol=arguments.atol, rtol=arguments.rtol) if wanted else None
    timed = _timed(engine, inputs, arguments)
    if arguments.shape_log is not None:
        engine.log_sizes(arguments.shape_log)
    if arguments.json:
        print(json.dumps(_json(engine, report, timed), indent=1))
    else:
        print(_text(engine, outputs, report, timed))
    return MISMATCH if report is not None and not report else OK


def _engine(arguments: argparse.Namespace) -> Engine:
    from .engines import engine_of, loaded  # start-up

    if arguments.load_engine is None:
        return engine_of(arguments)
    if arguments.model is not None:
        raise UsageError(
            f"run: both '{arguments.model}' and the engine '{arguments.load_engine}' are given; "
            "expected one of them.",
            code="cli-both",
        )
    return loaded(arguments.load_engine, arguments)


def _timed(
    engine: Engine, inputs: dict[str, Array], arguments: argparse.Namespace
) -> tuple[Latency, ...]:
    if arguments.iterations == 0:
        return ()
    from ..runtime.machine.host import default_threads  # start-up
    from .compare.latency import TimingBudget, latencies
    from .engines import engine_operations

    threads = arguments.threads or (default_threads(),)
    budget = TimingBudget(arguments.warmup, arguments.iterations, arguments.duration)
    return latencies(engine, inputs, threads, budget, engine_operations(engine, inputs))


def _text(
    engine: Engine,
    outputs: dict[str, Array],
    report: Report | None,
    timed: tuple[Latency, ...],
) -> str:
    from .compare.latency import latency_table  # start-up

    parts = [
        paragraph("model", str(engine.interface)),
        paragraph("target", str(engine.parts.artifact.target)),
        paragraph("memory", str(engine.memory_plan)),
        paragraph("outputs", *(_output(name, array) for name, array in outputs.items())),
    ]
    if report is not None:
        word = good("equal within bounds") if report else bad("different")
        parts.append(paragraph("check", word, *map(str, report.outputs)))
    if timed:
        parts.append(paragraph("latency", *latency_table(timed).splitlines()))
    return "\n".join(parts)


def _output(name: str, array: Array) -> str:
    kind = f"{name}: {array.dtype.name}[{', '.join(map(str, array.shape))}]"
    if array.size == 0 or array.dtype.kind != "f":
        return kind
    return f"{kind}, {array.min():.4g} to {array.max():.4g}, mean {array.mean():.4g}"


def _json(engine: Engine, report: Report | None, timed: tuple[Latency, ...]) -> dict[str, object]:
    from .described import described  # start-up

    checked = None
    if report is not None:
        outputs = [
            {"name": o.name, "error": o.error, "share": o.share, "place": list(o.place)}
            for o in report.outputs
        ]
        checked = {"equal": bool(report), "outputs": outputs}
    return {
        **described(engine),
        "check": checked,
        "latency": [latency.to_json() for latency in timed],
    }
