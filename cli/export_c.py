"""`tilewright export-c`: write a model as C that needs neither Python nor any library."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from .arguments import add_json, add_model, add_schedules, add_variants, add_verb, described_by
from .errors import OK
from .precision import add_precision
from .text import paragraph

if TYPE_CHECKING:
    from .arguments import Verbs

_EXAMPLES = """\
  tilewright export-c squeezenet.onnx -o squeezenet    model.c, model.h, weights.bin, Makefile
  make -C squeezenet                                   compiles it
  tilewright export-c model.onnx --target c:avx2 -o out    for a machine with AVX2
  tilewright export-c model.onnx --shapes batch:1-4-16 --specialise batch:1 -o out
"""


def add_parser(verbs: Verbs) -> None:
    """The verb and its options."""
    parser = add_verb(
        verbs,
        "export-c",
        "write a model as plain C",
        described_by(__doc__),
        _EXAMPLES,
        "MODEL -o FOLDER",
    )
    add_model(parser, engines=True)
    add_precision(parser)
    add_schedules(parser)
    add_variants(parser)
    parser.add_argument(
        "-o", "--output", metavar="FOLDER", required=True, help="where the files go; made if needed"
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Compile the model and export it."""
    from ..tir.text.size import bytes_text  # start-up
    from .described import described
    from .engines import engine_of

    engine = engine_of(arguments)
    folder = engine.export_c(Path(arguments.output))
    sizes = {file.name: file.stat().st_size for file in sorted(folder.iterdir()) if file.is_file()}
    if arguments.json:
        print(json.dumps({**described(engine), "folder": str(folder), "files": sizes}, indent=1))
        return OK
    print(paragraph("model", str(engine.interface)))
    print(paragraph("target", str(engine.parts.artifact.target)))
    print(
        paragraph("written", *(f"{folder / n} ({bytes_text(size)})" for n, size in sizes.items()))
    )
    return OK
