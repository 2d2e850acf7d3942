"""`tilewright reduce`: find the smallest part of a model that fails as the whole model does: an
output differs from that of another system, compiling it ends with an error, or the process crashes.
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from .arguments import (
    add_bound,
    add_compilation,
    add_json,
    add_verb,
    described_by,
    seconds,
    shapes_of,
)
from .constants import constants_of
from .errors import OK, UsageError
from .text import paragraph, working
from .verify import add_against, add_inputs

if TYPE_CHECKING:
    from pathlib import Path

    from ..graph.verification.reduce_model import ReducedModel
    from ..runtime.arrays import Array
    from .arguments import Verbs

_EXAMPLES = """\
  tilewright reduce model.onnx -o small.onnx
  tilewright reduce model.onnx --against reference --inputs in.npz -o small.onnx
  tilewright reduce model.onnx --fails-with onnx-unsupported -o small.onnx
  tilewright reduce model.onnx --command 'python check.py {model}' -o small.onnx
"""


def add_parser(verbs: Verbs) -> None:
    """The verb and its options."""
    parser = add_verb(
        verbs,
        "reduce",
        "the smallest part of a model that fails",
        described_by(__doc__),
        _EXAMPLES,
        "MODEL -o FILE",
    )
    parser.add_argument("model", metavar="MODEL", help="an ONNX model")
    add_compilation(parser)
    ways = parser.add_mutually_exclusive_group()
    add_against(ways, "default: onnxruntime, where it is installed")
    ways.add_argument(
        "--fails-with", metavar="CODE", help="the error that compiling it must end with"
    )
    ways.add_argument(
        "--command",
        metavar="LINE",
        help="a line for sh, with {model} for the model's path: it fails where that ends with "
        "another status than 0",
    )
    add_inputs(parser)
    add_bound(parser, "theirs", "1e-4")
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help="the small model; its inputs are written beside it, as .npz",
    )
    parser.add_argument(
        "--seconds", type=seconds, default=600.0, metavar="N", help="how long (default 600)"
    )
    parser.add_argument(
        "--trial-seconds",
        type=seconds,
        default=60.0,
        metavar="N",
        help="that a candidate may take before it counts as hanging (default 60)",
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Reduce the model, and write what is left."""
    from ..graph.verification.reduce_model import reduce_model  # start-up

    if arguments.command is not None and "{model}" not in arguments.command:
        raise UsageError(
            f"reduce: --command '{arguments.command}' names no model; expected {{model}} in it.",
            code="cli-reduce-command",
            hints=("--command 'python check.py {model}'",),
        )
    with working("reducing") as tell:
        found = reduce_model(
            arguments.model,
            against=arguments.against,
            fails_with=arguments.fails_with,
            command=arguments.command,
            target=arguments.target,
            shapes=shapes_of(arguments.shapes),
            constants=constants_of(arguments.constants),
            inputs=_inputs(arguments.inputs),
            atol=arguments.atol,
            rtol=arguments.rtol,
            tolerance=arguments.tolerance,
            seconds=arguments.seconds,
            trial_seconds=arguments.trial_seconds,
            progress=tell,
        )
    file, beside = found.save(arguments.output)
    print(_json(found, file, beside) if arguments.json else _text(found, file, beside))
    return OK


def _inputs(path: str | None) -> dict[str, Array] | None:
    from .tensors import load_inputs  # start-up

    return None if path is None else load_inputs(path, ())


def _text(found: ReducedModel, file: Path, beside: Path | None) -> str:
    left = "nothing more can go" if found.is_done else "the time was over"
    nodes = ", ".join(node.op_type for node in found.proto.graph.node)
    parts = [
        paragraph("fails", found.outcome),
        paragraph("nodes", f"{found.nodes} of {found.whole}: {nodes}"),
        paragraph("trials", f"{found.trials}; {left}"),
        paragraph("written", *map(str, filter(None, (file, beside)))),
    ]
    return "\n".join(parts)


def _json(found: ReducedModel, file: Path, beside: Path | None) -> str:
    plain = {
        "outcome": found.outcome,
        "nodes": found.nodes,
        "whole": found.whole,
        "operators": [node.op_type for node in found.proto.graph.node],
        "trials": found.trials,
        "done": found.is_done,
        "file": str(file),
        "inputs": None if beside is None else str(beside),
    }
    return json.dumps(plain, indent=1)
