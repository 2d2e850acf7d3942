"""`tilewright log show`: list the functions that were tuned, and their gains, in a table for each
setting (machine, threads, code generator, caches).
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from ..arguments import add_json
from ..errors import OK
from .arguments import KEY_DIGITS, add_action, add_logs, read
from .settings import in_tables, time_cell

if TYPE_CHECKING:
    from ...autotune.log.summary import TuningSummary
    from ..arguments import Verbs

_EXAMPLES = """\
  tilewright log show resnet50.jsonl
  tilewright log show monday.jsonl tuesday.jsonl --only 'conv*'
"""
_HEADS = ("function", "key", "trials", "failed", "default", "best", "gain", "state")


def add_parser(actions: Verbs) -> None:
    """The action and its options."""
    parser = add_action(
        actions, "show", "list the functions that were tuned", __doc__, _EXAMPLES, "LOG ..."
    )
    add_logs(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Merge the logs and print their summaries."""
    from ...autotune.log.summary import summarise  # start-up

    summaries = summarise(read(arguments))
    if arguments.json:
        print(json.dumps([one.to_json() for one in summaries], indent=1))
    else:
        print(in_tables(summaries, _HEADS, _row))
    return OK


def _row(one: TuningSummary) -> tuple[str, ...]:
    choice = one.choice
    return (
        one.label,
        one.key[:KEY_DIGITS],
        str(len(one.trials)),
        str(one.failed),
        time_cell(choice.default_seconds),
        time_cell(choice.seconds),
        "" if choice.gain is None else f"{choice.gain:.2f}",
        "" if choice.best is None else str(choice),
    )
