"""`tilewright compile`: compile a model and write the engine, to be run without the model."""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from .arguments import add_json, add_model, add_schedules, add_variants, add_verb, described_by
from .buckets import add_buckets
from .errors import OK, UsageError
from .precision import add_precision
from .text import paragraph

if TYPE_CHECKING:
    from ..runtime.model.report import EngineReport
    from .arguments import Verbs

_EXAMPLES = """\
  tilewright compile resnet50.onnx                          writes resnet50.twe
  tilewright compile model.onnx --shapes batch:8 -o b8.twe
  tilewright run --load-engine b8.twe                       runs it
  tilewright compile model.onnx --buckets batch:4x16        pads fewer rows where that is faster
  tilewright compile model.onnx --buckets 4 --shape-log s.jsonl
  tilewright compile model.onnx --shapes batch:1-4-16 --specialise batch:1 --specialise batch:16
  tilewright compile model.onnx --precision int8 --calibration model.npz
  tilewright compile model.onnx --precision int8 --calibration model.npz \\
    --accuracy top1 --max-drop 0.01 --held-out test/
"""


def add_parser(verbs: Verbs) -> None:
    """The verb and its options."""
    parser = add_verb(
        verbs,
        "compile",
        "compile a model to an engine file",
        described_by(__doc__),
        _EXAMPLES,
        "MODEL",
    )
    add_model(parser)
    add_precision(parser)
    add_schedules(parser)
    add_buckets(parser)
    add_variants(parser)
    parser.add_argument(
        "-o",
        "--output",
        "--save-engine",
        metavar="FILE",
        help="the engine's file (default: the model's name with .twe, in this folder)",
    )
    parser.add_argument(
        "--drop-weights",
        action="store_true",
        help="do not keep what is needed to build it anew elsewhere, and to verify it",
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Compile the model and write the engine."""
    from ..tir.text.size import bytes_text  # start-up
    from .described import described
    from .engines import SUFFIX, engine_of

    if arguments.model.endswith(SUFFIX):
        raise UsageError(
            f"compile: '{arguments.model}' is an engine already; expected a model.",
            code="cli-engine",
            hints=(f"tilewright run --load-engine {arguments.model}",),
        )
    engine = engine_of(arguments)
    output = arguments.output or Path(arguments.model).with_suffix(SUFFIX).name
    file = engine.save(output, keep_weights=not arguments.drop_weights)
    size = os.stat(file).st_size
    if arguments.json:
        print(json.dumps({**described(engine), "file": str(file), "bytes": size}, indent=1))
        return OK
    report = engine.explain()
    tuning = str(engine.tuning).partition(": ")[2]
    proofs = ", ".join(f"{count} {verdict}" for verdict, count in report.proofs.items())
    kernels = f"{len(report.kernels)} in {len(engine.parts.artifact.launches)} launches"
    print(paragraph("model", str(engine.interface)))
    print(paragraph("target", str(engine.parts.artifact.target)))
    print(paragraph("kernels", kernels + (f": {proofs}" if proofs else ""), *_unchecked(report)))
    print(paragraph("tuning", tuning))
    for label, lines in report.precision.summary:
        print(paragraph(label, *lines))
    if engine.parts.variants:
        buckets = (note for note in report.notes if note.startswith("bucket"))
        listed = "; ".join(map(str, engine.parts.variants))
        print(paragraph("variants", listed, *buckets))
    print(paragraph("memory", str(engine.memory_plan)))
    print(paragraph("written", f"{file} ({bytes_text(size)})"))
    return OK


def _unchecked(report: EngineReport) -> Iterator[str]:
    """A line for each reason why kernels were not checked."""
    reasons = Counter(kernel.check for kernel in report.kernels if kernel.check != "ok")
    for reason, count in reasons.items():
        yield f"check of {count}: {reason}"
