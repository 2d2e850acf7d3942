"""`tilewright log plot`: plot the progress of a search, the fit of the cost model, the importance
of the decisions, and a roofline.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ...tir.output_file import writing
from ..errors import OK, UsageError
from ..text import paragraph, progress_bar
from .arguments import add_action, add_logs, add_output, read

if TYPE_CHECKING:
    from ..arguments import Verbs

_SUFFIXES = (".png", ".svg", ".pdf")
_EXAMPLES = """\
  tilewright log plot resnet50.jsonl -o all.png
  tilewright log plot resnet50.jsonl --only conv_3 -o conv_3.svg      one function: its trials
"""


def add_parser(actions: Verbs) -> None:
    """The action and its options."""
    parser = add_action(
        actions, "plot", "draw what the logs hold", __doc__, _EXAMPLES, "LOG ... -o FILE"
    )
    add_logs(parser)
    add_output(parser, ", ".join(_SUFFIXES))
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Merge the logs and draw them."""
    from ...autotune.report.pictures import STEPS, draw  # start-up

    output = arguments.output
    if not output.endswith(_SUFFIXES):
        raise UsageError(
            f"log plot: '{output}' is no picture; expected a file in {', '.join(_SUFFIXES)}.",
            code="cli-log-picture",
        )
    with progress_bar(len(arguments.logs) + len(STEPS) + 1) as begin:
        figure = draw(read(arguments, begin), begin=begin)
        begin(f"writing {output}")
        with writing(Path(output)):
            figure.savefig(output, dpi=150)
    print(paragraph("written", output))
    return OK
