"""`tilewright log diff`: compare what two logs know: the time and the state of each function in
each setting, and what only one of them holds.
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from ..arguments import add_json
from ..errors import OK
from ..text import table
from .arguments import KEY_DIGITS, add_action, print_problems
from .settings import time_cell

if TYPE_CHECKING:
    from ...autotune.log.choice import ScheduleChoice
    from ...autotune.log.diff import LogDifference
    from ..arguments import Verbs

_EXAMPLES = """\
  tilewright log diff monday.jsonl tuesday.jsonl
  tilewright log diff release.jsonl.gz now.jsonl --json
"""
_HEADS = ("function", "key", "old", "state", "new", "state", "new/old")


def add_parser(actions: Verbs) -> None:
    """The action and its options."""
    parser = add_action(actions, "diff", "compare two logs", __doc__, _EXAMPLES, "OLD NEW")
    parser.add_argument("old", metavar="OLD", help="a file, also .gz, or a folder of files")
    parser.add_argument("new", metavar="NEW", help="the same")
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Read both logs and print where they differ."""
    from ...autotune.log.diff import differences_of  # start-up
    from ...autotune.log.file import read_log

    old, new = read_log(arguments.old), read_log(arguments.new)
    for known in (old, new):
        print_problems(known)
    each = differences_of(old, new)
    changed = [one for one in each if not one.is_same]
    if arguments.json:
        print(json.dumps([one.to_json() for one in each], indent=1))
        return OK
    if changed:
        print(table(_HEADS, map(_row, changed)))
    print(f"{len(each) - len(changed)} of {len(each)} functions are the same")
    return OK


def _row(one: LogDifference) -> tuple[str, ...]:
    ratio = "" if one.ratio is None else f"{one.ratio:.2f}"
    return (one.label, one.key[:KEY_DIGITS], *_cells(one.old), *_cells(one.new), ratio)


def _cells(choice: ScheduleChoice | None) -> tuple[str, str]:
    if choice is None:
        return ("", "not there")
    return (time_cell(choice.seconds), str(choice))
