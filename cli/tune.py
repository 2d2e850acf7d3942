"""`tilewright tune`: search the schedules of a model's kernels on this machine. Every alternative
that a compile would price is measured, and every trial goes to a log, from which a later search
goes on and `tilewright compile --log` takes its schedules.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .arguments import add_json, add_model, add_verb, described_by, shapes_of, whole
from .errors import OK
from .text import paragraph, table

if TYPE_CHECKING:
    from ..autotune.tune import TunedFunction, TuneResult
    from .arguments import Verbs

_EXAMPLES = """\
  tilewright tune resnet50.onnx --log resnet50.jsonl --budget 20m
  tilewright tune resnet50.onnx --log resnet50.jsonl --trials 500    goes on
  tilewright compile resnet50.onnx --log resnet50.jsonl
"""
_SHOWN = 20  # functions
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def add_parser(verbs: Verbs) -> None:
    """The verb and its options."""
    parser = add_verb(
        verbs,
        "tune",
        "search the schedules of a model's kernels",
        described_by(__doc__),
        _EXAMPLES,
        "MODEL --log LOG",
    )
    add_model(parser)
    parser.add_argument(
        "--log", required=True, metavar="LOG", help="a file, or FOLDER/ for a file of each writer"
    )
    parser.add_argument("--trials", type=whole, metavar="N", help="end after so many trials")
    parser.add_argument(
        "--budget",
        type=duration,
        metavar="TIME",
        help="end after 90 (seconds), 20m or 8h; 64 trials a function where nothing is said",
    )
    parser.add_argument("--seed", type=whole, default=0, metavar="S", help="other points for each")
    parser.add_argument("--no-resume", action="store_true", help="try again what the log holds")
    add_json(parser)
    parser.set_defaults(run=run)


def duration(text: str) -> float:
    """Seconds, minutes ("20m") or hours ("8h"), for argparse."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"'{text}' is no time such as 90, 20m or 8h")
    return float(match[1]) * _UNITS[match[2]]


def run(arguments: argparse.Namespace) -> int:
    """Search until the budget is spent, or Ctrl-C."""
    from ..autotune.tune import tune  # start-up
    from ..graph.tasks import tasks
    from .tuning_progress import Progress

    pairs = tasks(
        arguments.model,
        arguments.target,
        shapes=shapes_of(arguments.shapes),
        tolerance=arguments.tolerance,
    )
    with Progress(pairs, sys.stderr) as progress, _ended_by_sigterm():
        result = tune(
            pairs,
            arguments.target,
            trials=arguments.trials,
            seconds=arguments.budget,
            log=arguments.log,
            resume=not arguments.no_resume,
            seed=arguments.seed,
            callback=progress,
        )
    print(json.dumps(_json(result), indent=1) if arguments.json else _text(result, arguments))
    return OK


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """SIGTERM ends the search as Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _text(result: TuneResult, arguments: argparse.Namespace) -> str:
    from ..runtime.timing import seconds_text

    ordered = sorted(result.functions, key=_saved, reverse=True)
    rows = []
    for found in ordered[:_SHOWN]:
        best = None if found.best is None else found.best.seconds
        rows.append(
            (
                found.func.name,
                str(found.count),
                str(len(found.history)),
                "" if found.default_time is None else seconds_text(found.default_time),
                "" if best is None else seconds_text(best),
                f"{_saved(found) * 1e3:.3f} ms",
            )
        )
    heads = ("function", "places", "trials", "default", "best", "saved")
    lines = [paragraph("ended", result.stopped_because), table(heads, rows)]
    if len(ordered) > _SHOWN:
        lines.append(f"and {len(ordered) - _SHOWN} more functions")
    again = f"tilewright tune {arguments.model} --log {arguments.log}"
    lines.append(paragraph("go on", again))
    lines.append(paragraph("use", f"tilewright compile {arguments.model} --log {arguments.log}"))
    return "\n".join(lines)


def _saved(found: TunedFunction) -> float:
    """Seconds of a run of all places that the best schedule takes less than the default."""
    best = None if found.best is None else found.best.seconds
    if best is None or found.default_time is None:
        return 0.0
    return found.count * (found.default_time - best)


def _json(result: TuneResult) -> dict[str, object]:
    return {
        "stopped_because": result.stopped_because,
        "default_seconds": result.default_time,
        "best_seconds": result.best_time,
        "functions": [
            {
                "function": found.func.name,
                "places": found.count,
                "trials": len(found.history),
                "default_seconds": found.default_time,
                "seconds": None if found.best is None else found.best.seconds,
                "decisions": None if found.best is None else list(found.best.decisions),
            }
            for found in result.functions
        ],
    }
