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
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..tir.output_file import writing
from ..tir.text.display import printable
from .arguments import (
    add_json,
    add_model,
    add_verb,
    described_by,
    shapes_of,
    sizes_of,
    whole,
)
from .constants import constants_of
from .errors import INTERRUPTED, OK, UsageError
from .precision import add_planned_types, types_of
from .text import bad, duration_text, paragraph, shortened, table, working

if TYPE_CHECKING:
    from ..autotune.result import TunedFunction, TuneResult
    from ..graph.plan.tasks import ModelTasks
    from .arguments import Verbs

_EXAMPLES = """\
  tilewright tune resnet50.onnx --log resnet50.jsonl --budget 20m
  tilewright tune resnet50.onnx --log resnet50.jsonl --trials 500    goes on
  tilewright tune resnet50.onnx --log resnet50.jsonl --confirm       after Ctrl-C: no new trials
  tilewright log check resnet50.onnx --log resnet50.jsonl
  tilewright tune bert.onnx --shapes seq:1-128-512 --log bert.jsonl --sizes seq:40 --sizes seq:200
  tilewright compile resnet50.onnx --log resnet50.jsonl
  tilewright tune model.onnx --precision int8 --calibration model.npz --log int8.jsonl
"""
_SHOWN = 20  # functions
_HEADS = ("function", "places", "trials", "default", "best", "saved", "state", "nodes")
_NODES = 30  # characters
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
    add_planned_types(parser)
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
    parser.add_argument(
        "--sizes",
        action="append",
        default=[],
        metavar="NAME:SIZE",
        help="where a model has ranges: time candidates at batch:3,seq:17; once for each choice "
        "(default: the least, the usual and the largest sizes)",
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
    parser.add_argument(
        "--confirm",
        action="store_true",
        help="try nothing new: only let candidates that await it compete with their defaults",
    )
    parser.add_argument(
        "--events",
        metavar="FILE",
        help="append an event for each trial, gain and pause as a line of JSON",
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
    began = time.perf_counter()
    _check_confirm(arguments)
    print(f"tilewright: tuning {printable(_plan_text(arguments))}", file=sys.stderr, flush=True)
    from ..autotune.options import TuneOptions  # start-up
    from ..autotune.report.progress_table import ProgressTable
    from ..autotune.run import INTERRUPTED as BY_USER
    from ..autotune.session import Session
    from .tuning_progress import Progress, TrialBudget

    model = _tasks(arguments)
    pairs = [(task.func, task.places) for task in model.tasks]
    options = TuneOptions(
        trials=0 if arguments.confirm else arguments.trials,
        seconds=arguments.budget,
        log=arguments.log,
        resume=not arguments.no_resume,
        seed=arguments.seed,
        strategy=arguments.strategy,
        executor=arguments.executor,
        sizes=[sizes_of([text]) for text in arguments.sizes] or None,
    )
    functions = {task.key: (task.func, task.places) for task in model.tasks}
    progress_table = ProgressTable.of(functions, model.latency)
    progress_table.began -= time.perf_counter() - began
    budget = TrialBudget(options.trial_limit(len(pairs)) or None, options.seconds)
    with (
        Progress(progress_table, sys.stderr, budget) as progress,
        _event_lines(arguments.events) as events,
        _ended_by_sigterm(),
    ):
        options = replace(options, callback=progress, progress=progress.note, events=events)
        result = Session(pairs, arguments.target, options, began).search(progress.resume)
    if arguments.json:
        print(json.dumps(_json(result, model), indent=1))
    else:
        print(_text(result, model, arguments))
    return INTERRUPTED if result.stopped_because == BY_USER else OK


def _check_confirm(arguments: argparse.Namespace) -> None:
    """Refuse what contradicts `--confirm`. Raises: UsageError, LogError."""
    if not arguments.confirm:
        return
    if arguments.trials is not None or arguments.no_resume:
        given = "--no-resume" if arguments.no_resume else "--trials"
        raise UsageError(
            f"tune: --confirm tries nothing new, so {given} has no meaning with it.",
            code="cli-tune-confirm",
            hints=(f"leave one of --confirm and {given} out.",),
        )
    from ..autotune.log.file import log_files  # only here

    log_files(Path(arguments.log))


def _plan_text(arguments: argparse.Namespace) -> str:
    """What is to be done, for the first line."""
    budget = "" if arguments.budget is None else f", at most {duration_text(arguments.budget)}"
    what = ", confirmation only" if arguments.confirm else ""
    return f"{arguments.model}, log {arguments.log}{budget}{what}"


def _tasks(arguments: argparse.Namespace) -> ModelTasks:
    """The functions of the model. Raises: ModelError, TargetError, NoDevice."""
    from ..driver.backends.table import tuner_of  # start-up
    from ..driver.resolve_target import resolve_target
    from ..graph.plan.tasks import model_tasks

    if arguments.executor is None:
        target = resolve_target(arguments.target)
        tuner_of(target).check_here(target)
    given = types_of(arguments)
    with working("pricing alternatives"):
        return model_tasks(
            arguments.model,
            arguments.target,
            shapes=shapes_of(arguments.shapes),
            constants=constants_of(arguments.constants),
            tolerance=arguments.tolerance,
            precision=given.precision,
            calibration=given.calibration,
        )


@contextmanager
def _event_lines(path: str | None) -> Iterator[Callable[[Mapping[str, object]], None] | None]:
    """A function that appends an event to a file; None without a file."""
    if path is None:
        yield None
        return
    with ExitStack() as until_the_end:
        with writing(Path(path)):
            file = until_the_end.enter_context(open(path, "a", encoding="utf-8", buffering=1))
        yield lambda event: print(json.dumps(event), file=file)


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _text(result: TuneResult, model: ModelTasks, arguments: argparse.Namespace) -> str:
    from ..autotune.log.disturbance import busy_text  # start-up
    from ..autotune.log.labels import labels
    from ..autotune.log.record import Workload

    names = labels(Workload.of(task.func) for task in model.tasks)
    pairs = sorted(
        zip(result.functions, model.tasks, strict=True),
        key=lambda pair: (-_saved(pair[0]), not pair[0].choice.awaiting),
    )
    rows = [_row(found, names[task.key], task.nodes) for found, task in pairs[:_SHOWN]]
    lines = [paragraph("ended", result.stopped_because)]
    busy = busy_text(result.history)
    if busy:
        lines.append(paragraph("disturbed", bad(f"{busy} (~): their times are not reliable")))
    latency = _latency(result, model)
    if latency:
        lines.append(paragraph("model", latency))
    lines.append(table(_HEADS, rows))
    if len(pairs) > _SHOWN:
        lines.append(f"and {len(pairs) - _SHOWN} more functions")
    if model.untuned:
        count = sum(task.places for task in model.untuned)
        text = f"{count} products of pairs of 16 bits keep the rule's schedule: only a precision"
        lines.append(paragraph("not tuned", f"{text} consents to their instruction, and a log not"))
    same = _same_arguments(arguments)
    undecided = sum(one.choice.state == "undecided" for one in result.awaiting)
    pending = len(result.awaiting) - undecided
    sizes = "".join(f" --sizes {text}" for text in arguments.sizes)
    confirm = f"tilewright tune {same}{sizes} --confirm"
    if undecided:
        functions = f"{undecided} functions" if undecided > 1 else "one function"
        cause = f"the machine was busy during the confirmation of {functions}"
        lines.append(paragraph("undecided", f"{cause}: the default is taken until then", confirm))
    if pending:
        functions = f"{pending} functions have" if pending > 1 else "one function has"
        text = f"{functions} candidates that are not confirmed yet"
        lines.append(paragraph("pending", text, confirm))
    lines.append(paragraph("go on", f"tilewright tune {same}{sizes}"))
    lines.append(paragraph("covered", f"tilewright log check {same}"))
    lines.append(paragraph("use", f"tilewright compile {same}"))
    return "\n".join(lines)


def _same_arguments(arguments: argparse.Namespace) -> str:
    """The arguments by which another command means the same model and log."""
    given = [arguments.model]
    options = {
        "--shapes": arguments.shapes,
        "--constants": arguments.constants,
        "--target": [arguments.target],
        "--precision": arguments.precision,
        "--calibration": [arguments.calibration],
    }
    for name, values in options.items():
        given += [f"{name} {value}" for value in values if value]
    if arguments.tolerance is not None:
        given.append(f"--tolerance {arguments.tolerance:g}")
    return f"{' '.join(given)} --log {arguments.log}"


def _latencies(result: TuneResult, model: ModelTasks) -> tuple[float | None, float | None]:
    """The latency of the model by its kernels, with the default schedules and with the best ones;
    None where it is unknown.
    """
    from ..autotune.sizes import usual_sizes  # start-up

    pairs = list(zip(model.tasks, result.functions, strict=True))
    usual = {task.key: usual_sizes(task.func) for task in model.tasks}
    default = {t.key: f.choice.default_seconds_at(usual[t.key]) for t, f in pairs}
    best = {t.key: f.choice.seconds_at(usual[t.key]) for t, f in pairs}
    known = ({k: s for k, s in each.items() if s is not None} for each in (default, best))
    return model.latency(next(known)), model.latency(next(known))


def _latency(result: TuneResult, model: ModelTasks) -> str:
    """The predicted latency as text; empty where it is unknown."""
    from ..runtime.machine.timing import seconds_text  # start-up

    default, best = _latencies(result, model)
    if default is None or best is None:
        return ""
    return f"predicted latency {seconds_text(best)}, by the defaults {seconds_text(default)}"


def _row(found: TunedFunction, name: str, nodes: str) -> tuple[str, ...]:
    from ..runtime.machine.timing import seconds_text  # start-up

    default, best = found.default_time, found.seconds
    return (
        name,
        str(found.count),
        str(len(found.history)),
        "" if default is None else seconds_text(default),
        "" if best is None else seconds_text(best),
        f"{_saved(found) * 1e3:.3f} ms",
        "" if best is None else str(found.choice),
        shortened(nodes, _NODES),
    )


def _saved(found: TunedFunction) -> float:
    """Seconds that the best schedule saves in a run of the model."""
    if found.seconds is None or found.default_time is None:
        return 0.0
    return found.count * (found.default_time - found.seconds)


def _json(result: TuneResult, model: ModelTasks) -> dict[str, object]:
    from ..autotune.space.decisions import decisions_of  # start-up

    default, best = _latencies(result, model)
    return {
        "stopped_because": result.stopped_because,
        "default_latency": default,
        "best_latency": best,
        "default_seconds": result.default_time,
        "best_seconds": result.best_time,
        "functions": [
            {
                "function": found.func.name,
                "places": found.count,
                "trials": len(found.history),
                "default_seconds": found.default_time,
                "seconds": found.seconds,
                "state": found.choice.state,
                "why": found.choice.why,
                "awaiting": len(found.choice.awaiting),
                "nodes": task.nodes,
                "decisions": None
                if found.best is None
                else {name: one.value for name, one in decisions_of(found.best.trace).items()},
            }
            for found, task in zip(result.functions, model.tasks, strict=True)
        ],
    }
