"""`tilewright explain`: report how a model was compiled: passes, fusion, missed fusions with their
reasons, the schedule, proof and check of each kernel, precision, memory.
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from .arguments import add_json, add_model, add_schedules, add_verb, described_by
from .errors import OK
from .precision import add_precision

if TYPE_CHECKING:
    from .arguments import Verbs

_EXAMPLES = """\
  tilewright explain model.onnx
  tilewright explain model.onnx | grep 'not fused'    each missed fusion, with its reason
  tilewright explain model.twe --json                 of an engine that was compiled before
  tilewright explain int8.twe | grep precision:       what each product computes with, and why
"""


def add_parser(verbs: Verbs) -> None:
    """The verb and its options."""
    parser = add_verb(
        verbs,
        "explain",
        "how a model was compiled, and why",
        described_by(__doc__),
        _EXAMPLES,
        "MODEL",
    )
    add_model(parser, engines=True)
    add_precision(parser)
    add_schedules(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Compile or load the model, and print its report."""
    from ..runtime.artifact_json import report_to_json  # start-up
    from .described import described
    from .engines import engine_of

    engine = engine_of(arguments)
    if arguments.json:
        print(
            json.dumps({**described(engine), "report": report_to_json(engine.explain())}, indent=1)
        )
        return OK
    print(engine.interface)
    print(f"target: {engine.parts.artifact.target}")
    print(f"memory: {engine.memory_plan}")
    print(engine.explain())
    return OK
