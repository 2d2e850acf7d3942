"""`tilewright log prune`: write a smaller log that recommends the same: of each function in each
setting the defaults, the confirmation sessions and the fastest candidates; failed trials and
damaged lines are dropped.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from ..arguments import add_json, whole
from ..errors import OK, UsageError
from ..text import paragraph
from .arguments import add_action, add_logs, add_output, read

if TYPE_CHECKING:
    from ..arguments import Verbs

_EXAMPLES = """\
  tilewright log prune resnet50.jsonl -o small.jsonl
  tilewright log prune cluster/ --keep 64 -o cluster.jsonl
"""


def add_parser(actions: Verbs) -> None:
    """The action and its options."""
    parser = add_action(
        actions, "prune", "drop trials that no build needs", __doc__, _EXAMPLES, "LOG ... -o FILE"
    )
    add_logs(parser)
    add_output(parser, "the log that is written")
    parser.add_argument(
        "--keep", type=whole, metavar="N", help="candidates of each function (default: 16)"
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Merge the logs, prune them and write the result."""
    from ...autotune.log.choice import FINALISTS  # start-up
    from ...autotune.log.file import write_log
    from ...autotune.log.prune import KEPT, prune

    keep = KEPT if arguments.keep is None else arguments.keep
    if keep < FINALISTS:
        raise UsageError(
            f"log prune: --keep {keep} is fewer than a confirmation round compares; expected "
            f"{FINALISTS} or more.",
            code="cli-log-keep",
        )
    known = read(arguments)
    kept = prune(known, keep)
    path = write_log(kept, Path(arguments.output))
    before, after = len(known.trials), len(kept.trials)
    if arguments.json:
        print(json.dumps({"file": str(path), "trials": after, "dropped": before - after}))
    else:
        print(paragraph("written", f"{path}: {after} of {before} trials"))
    return OK
