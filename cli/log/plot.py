"""`tilewright log plot`: draw how times fell in a search, how well the cost model knew them, which
decisions matter, and how near the machine's limits the kernels are.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ..arguments import add_verb, described_by
from ..errors import OK, UsageError
from ..text import paragraph, working
from .arguments import VERB, add_logs, read

if TYPE_CHECKING:
    from ..arguments import Verbs

_SUFFIXES = (".png", ".svg", ".pdf")
_EXAMPLES = """\
  tilewright log plot resnet50.jsonl -o all.png
  tilewright log plot resnet50.jsonl --only conv_3 -o conv_3.svg      one function: its trials
"""


def add_parser(actions: Verbs) -> None:
    """The action and its options."""
    parser = add_verb(
        actions,
        "plot",
        "draw what the logs hold",
        described_by(__doc__),
        _EXAMPLES,
        "LOG ... -o FILE",
        below=VERB,
    )
    add_logs(parser)
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", help=f"{', '.join(_SUFFIXES)}"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Read the logs as one and draw."""
    from ...autotune.report.pictures import draw  # start-up

    output = arguments.output
    if not output.endswith(_SUFFIXES):
        raise UsageError(
            f"log plot: '{output}' is no picture; expected a file in {', '.join(_SUFFIXES)}.",
            code="cli-log-picture",
        )
    known = read(arguments)
    with working("drawing"):
        draw(known).savefig(output, dpi=150)
    print(paragraph("written", output))
    return OK
