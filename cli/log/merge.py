"""`tilewright log merge`: join logs into one file. In what order they are given does not matter,
nor how often one is; damaged lines are left behind.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from ..arguments import add_json, add_verb, described_by
from ..errors import OK
from ..text import paragraph
from .arguments import VERB, add_logs, read

if TYPE_CHECKING:
    from ..arguments import Verbs

_EXAMPLES = """\
  tilewright log merge monday.jsonl tuesday.jsonl -o both.jsonl
  tilewright log merge cluster/ -o cluster.jsonl           a folder of files, one for each writer
"""


def add_parser(actions: Verbs) -> None:
    """The action and its options."""
    parser = add_verb(
        actions,
        "merge",
        "join logs into one",
        described_by(__doc__),
        _EXAMPLES,
        "LOG ... -o FILE",
        below=VERB,
    )
    add_logs(parser)
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="the log that is written"
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Read the logs as one and write that."""
    from ...autotune.log.file import write_log  # start-up

    known = read(arguments)
    path = write_log(known, Path(arguments.output))
    functions, trials = len(known.workloads), len(known.trials)
    if arguments.json:
        print(json.dumps({"file": str(path), "functions": functions, "trials": trials}))
    else:
        print(paragraph("written", f"{path}: {functions} functions, {trials} trials"))
    return OK
