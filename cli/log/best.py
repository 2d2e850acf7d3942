"""`tilewright log best`: list the schedule that a build takes for each function: its decision for
every question of the rule. Settings are not compared with each other.
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from ..arguments import add_json
from ..errors import OK
from ..text import shortened
from .arguments import KEY_DIGITS, add_action, add_logs, read
from .settings import in_tables, time_cell

if TYPE_CHECKING:
    from ...autotune.log.record import Trial
    from ...autotune.log.summary import TuningSummary
    from ..arguments import Verbs

_EXAMPLES = """\
  tilewright log best resnet50.jsonl
  tilewright log best resnet50.jsonl --json          with traces, which tw.Schedule.replay takes
"""
_HEADS = ("function", "key", "rule", "time", "state", "choice")
_WIDEST = 48  # characters of a choice


def add_parser(actions: Verbs) -> None:
    """The action and its options."""
    parser = add_action(
        actions, "best", "list the schedules that a build takes", __doc__, _EXAMPLES, "LOG ..."
    )
    add_logs(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Merge the logs and print the best trial of each function."""
    from ...autotune.log.summary import summarise  # start-up

    summaries = [one for one in summarise(read(arguments)) if one.choice.best is not None]
    if arguments.json:
        entries = [
            {**one.to_json(), "trace": one.choice.best.trace.to_json()}
            for one in summaries
            if one.choice.best is not None
        ]
        print(json.dumps(entries, indent=1))
    else:
        print(in_tables(summaries, _HEADS, _row))
    return OK


def _row(one: TuningSummary) -> tuple[str, ...]:
    known, best = one.choice, one.choice.best
    assert best is not None
    choice = shortened(_choice(best), _WIDEST)
    time = time_cell(known.seconds)
    return (one.label, one.key[:KEY_DIGITS], best.rule, time, str(known), choice)


def _choice(best: Trial) -> str:
    """The decisions that differ from the rule's own."""
    from ...autotune.space.decisions import decisions_of, value_text  # start-up

    if best.is_default:
        return "the rule's own"
    decisions = decisions_of(best.trace)
    shown = {name: one for name, one in decisions.items() if not one.is_default} or decisions
    return ", ".join(f"{name} = {value_text(one.value)}" for name, one in shown.items())
