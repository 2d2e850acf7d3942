"""`tilewright log`: read tuning logs. `show` lists the functions that were tuned, `best` the
decisions to be used, `merge` joins logs into one, `check` names every line that is no record.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .arguments import add_json, add_verb, described_by
from .errors import MISMATCH, OK, UsageError
from .text import paragraph, shortened, table

if TYPE_CHECKING:
    from ..autotune.log import Contents
    from ..autotune.record import Trial
    from .arguments import Verbs

_EXAMPLES = """\
  tilewright log show resnet50.jsonl
  tilewright log best resnet50.jsonl --json
  tilewright log merge monday.jsonl tuesday.jsonl -o both.jsonl
  tilewright log check resnet50.jsonl                  exit code 1 where a line is damaged
"""
_WIDEST = 40  # characters of a list of decisions
_DIGITS = 12  # of a key


def add_parser(verbs: Verbs) -> None:
    """The verb and its options."""
    parser = add_verb(
        verbs,
        "log",
        "read, merge and check tuning logs",
        described_by(__doc__),
        _EXAMPLES,
        "show|best|merge|check LOG ...",
    )
    parser.add_argument("action", choices=tuple(_ACTIONS), help="what to do")
    parser.add_argument("logs", nargs="+", metavar="LOG", help="a file, or a folder of files")
    parser.add_argument("-o", "--output", metavar="FILE", help="merge: the log that is written")
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Read the logs as one, and do what is asked for."""
    from ..autotune.log import merge, read_log  # start-up

    if (arguments.action == "merge") != (arguments.output is not None):
        raise UsageError(
            f"log: {arguments.action} "
            + ("needs --output." if arguments.action == "merge" else "writes nothing."),
            code="cli-log-output",
            hints=("tilewright log merge one.jsonl two.jsonl --output both.jsonl",),
        )
    known = merge(*map(read_log, arguments.logs))
    return _ACTIONS[arguments.action](known, arguments)


def _show(known: Contents, arguments: argparse.Namespace) -> int:
    from ..runtime.timing import seconds_text  # start-up

    found = _functions(known)
    if arguments.json:
        print(json.dumps([one.to_json() for one in found], indent=1))
        return OK
    heads = ("function", "key", "threads", "trials", "failed", "default", "best", "gain")
    rows = []
    for one in found:
        default, best = one.default_seconds, one.best.seconds
        rows.append(
            (
                one.name,
                one.key[:_DIGITS],
                str(one.best.conditions.target.get("threads")),
                str(len(one.trials)),
                str(sum(trial.outcome != "ok" for trial in one.trials)),
                "" if default is None else seconds_text(default),
                "" if best is None else seconds_text(best),
                "" if default is None or best is None else f"{default / best:.2f}",
            )
        )
    print(table(heads, rows))
    return _problems(known)


def _best(known: Contents, arguments: argparse.Namespace) -> int:
    found = _functions(known)
    if arguments.json:
        traces = [{**one.to_json(), "trace": one.best.trace.to_json()} for one in found]
        print(json.dumps(traces, indent=1))
        return OK
    rows = [
        (
            one.name,
            one.key[:_DIGITS],
            one.best.rule,
            "default" if one.best.is_default else "tuned",
            shortened(json.dumps(one.best.decisions), _WIDEST),
        )
        for one in found
    ]
    print(table(("function", "key", "rule", "choice", "decisions"), rows))
    return _problems(known)


def _merge(known: Contents, arguments: argparse.Namespace) -> int:
    from ..autotune.log import write_log  # start-up

    path = write_log(known, Path(arguments.output))
    functions, trials = len(known.workloads), len(known.trials)
    if arguments.json:
        print(json.dumps({"file": str(path), "functions": functions, "trials": trials}))
    else:
        print(paragraph("written", f"{path}: {functions} functions, {trials} trials"))
    return _problems(known)


def _check(known: Contents, arguments: argparse.Namespace) -> int:
    if arguments.json:
        lines = [[str(p.path), p.line, p.reason] for p in known.problems]
        print(json.dumps({"records": len(known.records), "problems": lines}, indent=1))
    else:
        print(paragraph("records", f"{len(known.workloads)} functions, {len(known.trials)} trials"))
        _problems(known)
    return MISMATCH if known.problems else OK


def _problems(known: Contents) -> int:
    """Say on stderr which lines are no records."""
    for problem in known.problems:
        print(f"tilewright: {problem}", file=sys.stderr)
    return OK


@dataclass(frozen=True)
class _Tuned:
    """A function under one set of conditions: its trials, and the one to be used."""

    name: str
    key: str
    trials: list[Trial]
    best: Trial

    @property
    def default_seconds(self) -> float | None:
        """What the rule's own schedule took, in the rounds of the best one where it was there."""
        session = self.best.method.session
        found = [trial for trial in self.trials if trial.is_default and trial.seconds]
        paired = [trial for trial in found if trial.method.session == session]
        return (paired or found or [self.best])[-1].seconds if found else None

    def to_json(self) -> dict[str, object]:
        """Everything but the trace."""
        return {
            "function": self.name,
            "key": self.key,
            "cpu": self.best.conditions.cpu,
            "threads": self.best.conditions.target.get("threads"),
            "trials": len(self.trials),
            "outcomes": dict(Counter(trial.outcome for trial in self.trials)),
            "default_seconds": self.default_seconds,
            "seconds": self.best.seconds,
            "rule": self.best.rule,
            "is_default": self.best.is_default,
            "decisions": list(self.best.decisions),
        }


def _functions(known: Contents) -> list[_Tuned]:
    """Every function of which something ran, under each set of conditions."""
    from ..autotune.choice import chosen  # start-up

    names = {workload.key: workload.name for workload in known.workloads}
    groups: dict[tuple[str, str], list[Trial]] = {}
    for trial in known.trials:
        groups.setdefault((trial.workload, str(trial.conditions)), []).append(trial)
    chosen_of = ((key, trials, chosen(trials)) for (key, _), trials in groups.items())
    return [
        _Tuned(names.get(key, "not told"), key, trials, best)
        for key, trials, best in chosen_of
        if best is not None
    ]


_ACTIONS = {"show": _show, "best": _best, "merge": _merge, "check": _check}
