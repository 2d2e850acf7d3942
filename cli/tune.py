"""`tilewright tune`: search the schedules of a model's kernels on this machine: for its CPU, or for
its GPU with `--target cuda`. Every alternative that a compile would price is measured. Every trial
goes to a log, which a later search resumes, and from which `tilewright compile --log` takes its
schedules.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from .arguments import add_json, add_model, add_verb, described_by, shapes_of, whole
from .errors import OK
from .text import paragraph, table, working

if TYPE_CHECKING:
    from ..autotune.result import TunedFunction, TuneResult
    from .arguments import Verbs

_EXAMPLES = """\
  tilewright tune resnet50.onnx --log resnet50.jsonl --budget 20m
  tilewright tune resnet50.onnx --log resnet50.jsonl --trials 500    goes on
  tilewright log check resnet50.onnx --log resnet50.jsonl
  tilewright compile resnet50.onnx --log resnet50.jsonl
"""
_SHOWN = 20  # functions
_HEADS = ("function", "places", "trials", "default", "best", "saved")
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
    parser.add_argument("--trials", type=whole, metavar="N", help="end after N trials")
    parser.add_argument(
        "--budget",
        "--seconds",
        type=duration,
        metavar="TIME",
        help="end after 90 (seconds), 20m or 8h; without a limit: 64 trials for each function",
    )
    parser.add_argument("--seed", type=whole, default=0, metavar="S", help="of the random points")
    parser.add_argument(
        "--strategy",
        default="evolutionary",
        metavar="NAME",
        help="evolutionary (the default), evolutionary-xgboost (the extra cost) or random",
    )
    parser.add_argument(
        "--executor",
        metavar="WHERE",
        help="let the workers of a Dask scheduler measure: dask://HOST:PORT",
    )
    parser.add_argument("--no-resume", action="store_true", help="measure again what the log holds")
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
    from ..autotune.options import TuneOptions  # start-up
    from ..autotune.report.progress_table import ProgressTable
    from ..autotune.session import Session
    from ..driver.backends.table import tuner_of
    from ..driver.resolve_target import resolve_target
    from ..graph.plan.tasks import tasks
    from ..tir.text.canonical import workload_key
    from .tuning_progress import Progress, TrialBudget

    if arguments.executor is None:
        target = resolve_target(arguments.target)
        tuner_of(target).check_here(target)
    with working("pricing alternatives"):
        pairs = tasks(
            arguments.model,
            arguments.target,
            shapes=shapes_of(arguments.shapes),
            tolerance=arguments.tolerance,
        )
    options = TuneOptions(
        trials=arguments.trials,
        seconds=arguments.budget,
        log=arguments.log,
        resume=not arguments.no_resume,
        seed=arguments.seed,
        strategy=arguments.strategy,
        executor=arguments.executor,
    )
    functions = {workload_key(func): (func, count) for func, count in pairs}
    budget = TrialBudget(options.trial_limit(len(pairs)), options.seconds)
    with (
        Progress(ProgressTable.of(functions), sys.stderr, budget) as progress,
        _ended_by_sigterm(),
    ):
        options = replace(options, callback=progress, progress=progress.note)
        result = Session(pairs, arguments.target, options).search(progress.resume)
    print(json.dumps(_json(result), indent=1) if arguments.json else _text(result, arguments))
    return OK


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _text(result: TuneResult, arguments: argparse.Namespace) -> str:
    ordered = sorted(result.functions, key=_saved, reverse=True)
    rows = [_row(found) for found in ordered[:_SHOWN]]
    lines = [paragraph("ended", result.stopped_because), table(_HEADS, rows)]
    if len(ordered) > _SHOWN:
        lines.append(f"and {len(ordered) - _SHOWN} more functions")
    given = [arguments.model]
    for name, values in (("--shapes", arguments.shapes), ("--target", [arguments.target])):
        given += [f"{name} {value}" for value in values if value]
    if arguments.tolerance is not None:
        given.append(f"--tolerance {arguments.tolerance:g}")
    same = f"{' '.join(given)} --log {arguments.log}"
    lines.append(paragraph("go on", f"tilewright tune {same}"))
    lines.append(paragraph("covered", f"tilewright log check {same}"))
    lines.append(paragraph("use", f"tilewright compile {same}"))
    return "\n".join(lines)


def _row(found: TunedFunction) -> tuple[str, ...]:
    from ..runtime.machine.timing import seconds_text  # start-up

    default, best = found.default_time, found.seconds
    return (
        found.func.name,
        str(found.count),
        str(len(found.history)),
        "" if default is None else seconds_text(default),
        "" if best is None else seconds_text(best),
        f"{_saved(found) * 1e3:.3f} ms",
    )


def _saved(found: TunedFunction) -> float:
    """Seconds that the best schedule saves in a run of the model."""
    if found.seconds is None or found.default_time is None:
        return 0.0
    return found.count * (found.default_time - found.seconds)


def _json(result: TuneResult) -> dict[str, object]:
    from ..autotune.space.decisions import decisions_of  # start-up

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
                "seconds": found.seconds,
                "decisions": None
                if found.best is None
                else {name: one.value for name, one in decisions_of(found.best.trace).items()},
            }
            for found in result.functions
        ],
    }
