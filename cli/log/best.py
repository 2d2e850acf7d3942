"""`tilewright log best`: tell which schedule a build would take for each function: the answer to
every question of its rule. Those of two settings are not compared.
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from ..arguments import add_json, add_verb, described_by
from ..errors import OK
from ..text import shortened
from .arguments import KEY_DIGITS, VERB, add_logs, read
from .settings import in_tables, time_cell

if TYPE_CHECKING:
    from ...autotune.log.record import Trial
    from ...autotune.log.summary import TuningSummary
    from ..arguments import Verbs

_EXAMPLES = """\
  tilewright log best resnet50.jsonl
  tilewright log best resnet50.jsonl --json          with traces, which tw.Schedule.replay takes
"""
_HEADS = ("function", "key", "rule", "time", "choice")
_WIDEST = 60  # characters of a choice


def add_parser(actions: Verbs) -> None:
    """The action and its options."""
    parser = add_verb(
        actions,
        "best",
        "tell which schedules a build takes",
        described_by(__doc__),
        _EXAMPLES,
        "LOG ...",
        below=VERB,
    )
    add_logs(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Read the logs as one and tell the best of each function."""
    from ...autotune.log.summary import summarise  # start-up

    found = [one for one in summarise(read(arguments)) if one.best is not None]
    if arguments.json:
        traced = [(one, one.best) for one in found]
        told = [{**one.to_json(), "trace": best.trace.to_json()} for one, best in traced if best]
        print(json.dumps(told, indent=1))
    else:
        print(in_tables(found, _HEADS, _row))
    return OK


def _row(one: TuningSummary) -> tuple[str, ...]:
    assert one.best is not None
    choice = shortened(_choice(one.best), _WIDEST)
    return (one.name, one.key[:KEY_DIGITS], one.best.rule, time_cell(one.seconds), choice)


def _choice(best: Trial) -> str:
    """The answers that differ from the rule's own."""
    from ...autotune.space.decisions import decisions_of, value_text  # start-up

    if best.is_default:
        return "the rule's own"
    asked = decisions_of(best.trace)
    told = {name: one for name, one in asked.items() if not one.is_default} or asked
    return ", ".join(f"{name} = {value_text(one.value)}" for name, one in told.items())
