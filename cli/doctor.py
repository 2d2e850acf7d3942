"""`tilewright doctor`: what was found on this machine, every setting, and what to do about gaps."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from .arguments import add_json, add_verb
from .errors import ENVIRONMENT, OK
from .text import bad, paragraph, table

if TYPE_CHECKING:
    from .arguments import Verbs
    from .examination import Examination

_EXAMPLES = """\
  tilewright doctor
  tilewright doctor --measure     also what the machine reaches at most; takes some seconds
  tilewright doctor --json        for programs, and for reports of defects
"""


def add_parser(verbs: Verbs) -> None:
    """The verb and its options."""
    parser = add_verb(
        verbs,
        "doctor",
        "what was found on this machine",
        __doc__.partition(": ")[2] + "\nExit code 4 where no C compiler works.",
        _EXAMPLES,
    )
    parser.add_argument(
        "--measure", action="store_true", help="measure multiply-adds and bandwidths"
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Look, and print what was found."""
    from .examination import examine  # start-up

    found = examine(measure=arguments.measure)
    print(json.dumps(found.to_json(), indent=1) if arguments.json else _text(found))
    return OK if found.compiler_works else ENVIRONMENT


def _text(found: Examination) -> str:
    compiler = found.compiler.splitlines()
    if not found.compiler_works:
        compiler = [bad(compiler[0]), *compiler[1:]]
    parts = [
        paragraph("tilewright", f"{found.version}, {found.folder}"),
        paragraph("python", f"{found.python}, {found.platform}"),
        paragraph("packages", ", ".join(f"{name} {version}" for name, version in found.packages)),
        paragraph("compiler", *compiler),
        paragraph("cpu", *found.cpu),
        paragraph("threads", *found.threads),
        paragraph("gpu", found.gpu),
        paragraph("cache", *found.cache),
    ]
    if found.limits is not None:
        parts.append(paragraph("limits", *found.limits.lines))
    rows = [(s.name, "not set" if s.value is None else s.value, s.meaning) for s in found.settings]
    parts.append(paragraph("settings", *table(("variable", "value", "meaning"), rows).splitlines()))
    return "\n".join(parts)
