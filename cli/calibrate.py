"""`tilewright calibrate`: run a model in floats on some data, and choose a range for each of its
values: what `tilewright compile --precision int8 --calibration FILE` takes.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from .arguments import (
    add_json,
    add_shapes,
    add_verb,
    described_by,
    shapes_of,
    whole,
)
from .constants import constants_of
from .errors import OK, UsageError
from .text import paragraph, working

if TYPE_CHECKING:
    from ..graph.precision.calibration.calibration import Calibration
    from .arguments import Verbs

METHODS = ("minmax", "moving", "percentile", "entropy", "mse")
WEIGHTS = ("channel", "tensor")
_EXAMPLES = """\
  tilewright calibrate model.onnx images/ -o model.npz      images/: a .npy or .npz for each run
  tilewright calibrate model.onnx images/ -o model.npz --method entropy --equalise --most 200
  tilewright compile model.onnx --precision int8 --calibration model.npz
"""


def add_parser(verbs: Verbs) -> None:
    """The verb and its options."""
    parser = add_verb(
        verbs,
        "calibrate",
        "ranges of a model's values, for int8",
        described_by(__doc__),
        _EXAMPLES,
        "MODEL DATA -o FILE",
    )
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="an ONNX model, or an archive of torch.export (.pt2)",
    )
    parser.add_argument(
        "data",
        metavar="DATA",
        help="a folder with a file for each run: .npz by name, or .npy for one input",
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", required=True, help="the calibration's file (.npz)"
    )
    add_shapes(parser)
    parser.add_argument(
        "--method",
        choices=METHODS,
        default="minmax",
        metavar="METHOD",
        help="minmax (the default), moving, percentile, entropy or mse: how much of what is seen "
        "a range leaves out",
    )
    parser.add_argument(
        "--equalise",
        action="store_true",
        help="first divide channels between products, so that weights are as large on either side",
    )
    parser.add_argument(
        "--smooth",
        type=float,
        metavar="A",
        help="first move peaks of channels from data to the weights of matrix products, from 0 to "
        "1: 0.5 for half of them",
    )
    parser.add_argument(
        "--weights",
        choices=WEIGHTS,
        default="channel",
        metavar="SCALES",
        help="channel (the default): a scale for the weights of each output; tensor: one for all, "
        "as on hardware that has only that",
    )
    parser.add_argument("--most", type=whole, metavar="N", help="read no more than N files")
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Calibrate, and write the file."""
    from ..graph.precision.calibration.calibrate import calibrate  # start-up
    from .engines import SUFFIX

    if arguments.model.endswith(SUFFIX):
        raise UsageError(
            f"calibrate: '{arguments.model}' is an engine, whose precision was decided when it was "
            "compiled; expected a model.",
            code="cli-calibrate-engine",
        )
    with working(f"calibrating {Path(arguments.model).name}") as tell:
        found = calibrate(
            arguments.model,
            arguments.data,
            method=arguments.method,
            shapes=shapes_of(arguments.shapes),
            constants=constants_of(arguments.constants),
            equalise=arguments.equalise,
            smooth=arguments.smooth,
            weights=arguments.weights,
            most=arguments.most,
            progress=tell,
        )
    file = found.save(arguments.output)
    if arguments.json:
        print(json.dumps({**_json(found), "file": str(file)}, indent=1))
        return OK
    print(found.title)
    if found.infinite:
        print(paragraph("infinite", f"{', '.join(found.infinite)}: without a range"))
    print(paragraph("written", str(file)))
    return OK


def _json(found: Calibration) -> dict[str, object]:
    """What was found, with the ranges by value."""
    return {
        "model": found.model,
        "digest": found.digest,
        "method": found.method,
        "items": found.items,
        "weights": found.weights,
        "ranges": {name: list(ends) for name, ends in found.ranges.items()},
        "seen": {name: list(ends) for name, ends in found.extremes.items()},
        "divided": sorted(found.factors),
        "infinite": list(found.infinite),
    }
