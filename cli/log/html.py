"""`tilewright log html`: write what the logs hold as one page that loads nothing: a table for each
setting, with the curve of each search.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ...tir.output_file import writing
from ..errors import OK
from ..text import paragraph
from .arguments import add_action, add_logs, add_output, read

if TYPE_CHECKING:
    from ..arguments import Verbs

_EXAMPLES = """\
  tilewright log html resnet50.jsonl -o resnet50.html
"""


def add_parser(actions: Verbs) -> None:
    """The action and its options."""
    parser = add_action(
        actions, "html", "write a page of what the logs hold", __doc__, _EXAMPLES, "LOG ... -o FILE"
    )
    add_logs(parser)
    add_output(parser, "the page that is written")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Merge the logs and write the page."""
    from ...autotune.report.html import log_page  # start-up

    title = ", ".join(Path(log).name for log in arguments.logs)
    page = log_page(read(arguments), title)
    file = Path(arguments.output)
    with writing(file):
        file.write_text(page, encoding="utf-8")
    print(paragraph("written", arguments.output))
    return OK
