"""`tilewright log`: read, compare, join, check, follow and draw tuning logs. Each action has its
own `--help`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..arguments import add_verb, described_by
from . import best, check, diff, export, html, merge, plot, prune, show, watch
from .arguments import VERB

if TYPE_CHECKING:
    from ..arguments import Verbs

ACTIONS = (show, best, diff, check, watch, export, merge, prune, plot, html)
_EXAMPLES = """\
  tilewright log show resnet50.jsonl
  tilewright log best resnet50.jsonl --json
  tilewright log check resnet50.onnx --log resnet50.jsonl
  tilewright log watch resnet50.jsonl                        while another process tunes
"""


def add_parser(verbs: Verbs) -> None:
    """The verb and its actions."""
    parser = add_verb(
        verbs,
        VERB,
        "read, join, check and follow tuning logs",
        described_by(__doc__),
        _EXAMPLES,
        "ACTION",
    )
    actions = parser.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    for action in ACTIONS:
        action.add_parser(actions)
