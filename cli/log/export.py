"""`tilewright log export`: write the trials as one flat table, for spreadsheets and data frames:
a row for each trial, times in seconds, decisions and samples as JSON.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...tir.output_file import writing
from ..errors import OK
from .arguments import add_action, add_logs, read

if TYPE_CHECKING:
    from ...autotune.log.flat import Row
    from ..arguments import Verbs

_FORMATS = ("csv", "json")
_EXAMPLES = """\
  tilewright log export resnet50.jsonl -o trials.csv
  tilewright log export resnet50.jsonl --only 'conv*' --format json | jq '.[].seconds'
"""


def add_parser(actions: Verbs) -> None:
    """The action and its options."""
    parser = add_action(
        actions, "export", "write the trials as a table", __doc__, _EXAMPLES, "LOG ..."
    )
    add_logs(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="the table that is written (default: stdout)"
    )
    parser.add_argument(
        "--format", choices=_FORMATS, help="default: what the file is named, else csv"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Merge the logs and write the rows."""
    from ...autotune.log.flat import flat, names_of  # start-up

    known = read(arguments)
    names = names_of(known)
    rows = [flat(trial, names) for trial in known.trials]
    output = arguments.output
    named = "json" if output is not None and output.endswith(".json") else "csv"
    text = (
        json.dumps(rows, indent=1) + "\n" if (arguments.format or named) == "json" else _csv(rows)
    )
    if output is None:
        sys.stdout.write(text)
    else:
        file = Path(output)
        with writing(file):
            file.write_text(text, encoding="utf-8", newline="")
    return OK


def _csv(rows: Sequence[Row]) -> str:
    """Comma-separated values with a header line; empty where there are no rows."""
    stream = io.StringIO()
    if rows:
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator=os.linesep)
        writer.writeheader()
        writer.writerows(rows)
    return stream.getvalue()
