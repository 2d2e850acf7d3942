"""`tilewright log merge`: merge logs into one file. Neither their order nor duplicates matter;
damaged lines are dropped.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from ..arguments import add_json
from ..errors import OK
from ..text import paragraph
from .arguments import add_action, add_logs, add_output, read

if TYPE_CHECKING:
    from ..arguments import Verbs

_EXAMPLES = """\
  tilewright log merge monday.jsonl tuesday.jsonl -o both.jsonl
  tilewright log merge cluster/ -o cluster.jsonl           a folder of files, one for each writer
"""


def add_parser(actions: Verbs) -> None:
    """The action and its options."""
    parser = add_action(
        actions, "merge", "join logs into one", __doc__, _EXAMPLES, "LOG ... -o FILE"
    )
    add_logs(parser)
    add_output(parser, "the log that is written")
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Merge the logs and write the result."""
    from ...autotune.log.file import write_log  # start-up

    known = read(arguments)
    path = write_log(known, Path(arguments.output))
    functions, trials = len(known.workloads), len(known.trials)
    if arguments.json:
        print(json.dumps({"file": str(path), "functions": functions, "trials": trials}))
    else:
        print(paragraph("written", f"{path}: {functions} functions, {trials} trials"))
    return OK
