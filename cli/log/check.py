"""`tilewright log check`: report how much of a model a log covers, kernel by kernel: confirmed,
candidate, undecided or default as the log has it; similar; or the default of what it lacks, and
why. Damaged lines of the log are reported, also without a model. Exit code 1 where a kernel is not
tuned or a line is damaged.
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from ..arguments import add_compilation, add_json, shapes_of
from ..constants import constants_of
from ..errors import MISMATCH, OK, UsageError
from ..precision import add_planned_types, types_of
from ..text import WIDTH, bad, good, paragraph, shortened, table, working
from .arguments import add_action, print_problems

if TYPE_CHECKING:
    from ...autotune.tuning_log import TuningLog
    from ...runtime.model.coverage import Coverage
    from ..arguments import Verbs

_EXAMPLES = """\
  tilewright log check resnet50.onnx --log resnet50.jsonl
  tilewright log check resnet50.onnx --log resnet50.jsonl --target c:avx2
  tilewright log check --log resnet50.jsonl                  its lines alone
"""
_SUFFIX = ".jsonl"
_WHY = 50  # columns of the other cells


def add_parser(actions: Verbs) -> None:
    """The action and its options."""
    parser = add_action(
        actions,
        "check",
        "report how much of a model a log covers",
        __doc__,
        _EXAMPLES,
        "[MODEL] --log LOG",
    )
    parser.add_argument("model", metavar="MODEL", nargs="?", help="an ONNX model")
    parser.add_argument("--log", required=True, metavar="LOG", help="a file, or a folder of files")
    add_compilation(parser)
    add_planned_types(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Read the log; plan the model, if one is given, without building it."""
    from ...autotune.tuning_log import TuningLog  # start-up

    if arguments.model is not None and arguments.model.endswith(_SUFFIX):
        raise UsageError(
            f"log check: '{arguments.model}' is a log; expected a model.",
            code="cli-log-model",
            hints=(f"tilewright log check --log {arguments.model}",),
        )
    log = TuningLog(arguments.log)
    print_problems(log.contents)
    coverage = None if arguments.model is None else _coverage(log, arguments)
    if arguments.json:
        print(json.dumps(_json(log, coverage), indent=1))
    else:
        print(_text(log, coverage))
    whole = not log.contents.problems and not (coverage is not None and coverage.gaps)
    return OK if whole else MISMATCH


def _coverage(log: TuningLog, arguments: argparse.Namespace) -> Coverage:
    from ...driver.resolve_target import resolve_target  # start-up
    from ...graph.plan.tasks import taken
    from ...runtime.model.coverage import Coverage, Covered

    target, given = resolve_target(arguments.target), types_of(arguments)
    with working("planning the model"):
        functions = taken(
            arguments.model,
            target,
            shapes=shapes_of(arguments.shapes),
            constants=constants_of(arguments.constants),
            tolerance=arguments.tolerance,
            schedules=log,
            precision=given.precision,
            calibration=given.calibration,
        )
        advice = [(func.name, places, log.advice(func, target)) for func, places in functions]
    return Coverage(
        tuple(
            Covered(name, n, one.origin, one.why, one.schedule.log_state if one.schedule else "")
            for name, n, one in advice
        )
    )


def _text(log: TuningLog, coverage: Coverage | None) -> str:
    known = log.contents
    lines = [paragraph("log", f"{len(known.workloads)} functions, {len(known.trials)} trials")]
    if known.problems:
        count = len(known.problems)
        text = "1 line is no record" if count == 1 else f"{count} lines are no records"
        lines.append(paragraph("damaged", bad(text)))
    if coverage is None:
        return "\n".join(lines)
    counts = str(coverage)
    lines.append(paragraph("model", counts if coverage.gaps else good(counts)))
    rows = [
        (kernel.name, str(kernel.places), kernel.said, shortened(kernel.why, WIDTH - _WHY))
        for kernel in sorted(coverage.kernels, key=lambda one: (one.is_tuned, one.name))
    ]
    return "\n".join([*lines, table(("kernel", "places", "schedule", "why"), rows)])


def _json(log: TuningLog, coverage: Coverage | None) -> dict[str, object]:
    known = log.contents
    body: dict[str, object] = {
        "functions": len(known.workloads),
        "trials": len(known.trials),
        "problems": [
            {"file": str(one.path), "line": one.line, "reason": one.reason}
            for one in known.problems
        ],
    }
    if coverage is None:
        return body
    kernels = [
        {
            "kernel": one.name,
            "places": one.places,
            "schedule": one.said,
            "tuned": one.is_tuned,
            "why": one.why,
        }
        for one in coverage.kernels
    ]
    return {**body, "coverage": dict(coverage.counts), "kernels": kernels}
