"""`tilewright verify`: compare what a model computes with onnxruntime, with ONNX's reference
evaluator, or of an archive with torch, on random inputs or given ones. Exit code 1 where an output
differs.
"""

from __future__ import annotations

import argparse
import json
import math
from typing import TYPE_CHECKING, Literal

from .arguments import (
    add_bound,
    add_json,
    add_model,
    add_schedules,
    add_sizes,
    add_verb,
    described_by,
    shapes_of,
    sizes_of,
    whole,
)
from .constants import constants_of
from .errors import MISMATCH, OK, UsageError
from .precision import add_precision, precision_of
from .text import bad, good, paragraph, table, working

if TYPE_CHECKING:
    from ..graph.verification.differences import ValueDifference
    from ..graph.verification.first_difference import FirstDifference, InnerComparison, ValueRange
    from ..graph.verification.verify_model import ModelReport
    from .arguments import Verbs

SYSTEMS = ("onnxruntime", "reference")
_EXAMPLES = """\
  tilewright verify model.onnx
  tilewright verify model.onnx --against reference --intermediates
  tilewright verify model.pt2
  tilewright verify model.onnx --precision int8 --calibration model.npz --rtol 0.05
  tilewright verify model.onnx --shapes batch:1-8-64 --sizes batch:3 --seeds 10
  tilewright verify model.twe --model model.onnx --inputs in.npz
"""
_HEADS = ("output", "type", "error", "relative", "of allowed", "at", "ours", "theirs", "NaN/inf")


def add_parser(verbs: Verbs) -> None:
    """The verb and its options."""
    parser = add_verb(
        verbs,
        "verify",
        "compare a model with another system",
        described_by(__doc__),
        _EXAMPLES,
        "MODEL",
    )
    add_model(parser, engines=True)
    add_precision(parser)
    add_schedules(parser)
    parser.add_argument("--model", dest="source", metavar="FILE", help="the model of an engine")
    add_against(parser, "default: onnxruntime; torch of a .pt2", (*SYSTEMS, "torch"))
    parser.add_argument(
        "--intermediates",
        action="store_true",
        help="compare values within, too, and name the first node that differs",
    )
    add_inputs(parser)
    parser.add_argument(
        "--seed", type=whole, default=0, metavar="S", help="of the first random inputs (default 0)"
    )
    parser.add_argument(
        "--seeds", type=_some, default=3, metavar="N", help="so many random inputs (default 3)"
    )
    add_sizes(parser)
    add_bound(parser, "theirs", "1e-4")
    add_json(parser)
    parser.set_defaults(run=run)


def add_against(
    parser: argparse._ActionsContainer, default: str, systems: tuple[str, ...] = SYSTEMS
) -> None:
    """Add `--against`."""
    parser.add_argument(
        "--against",
        choices=systems,
        metavar="SYSTEM",
        help=f"onnxruntime, or reference: the evaluator of the onnx package ({default})",
    )


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Add `--inputs`."""
    parser.add_argument(
        "--inputs",
        "--load-inputs",
        dest="inputs",
        metavar="FILE",
        help=".npz by name, or .npy for one input; else random",
    )


def run(arguments: argparse.Namespace) -> int:
    """Compare, and print a line for each output."""
    from ..graph.given_model import is_archive  # start-up
    from ..graph.verification.differences import ValueBound
    from ..graph.verification.systems import system_named
    from ..graph.verification.verify_model import check_compared, verify_model
    from .engines import engine_of, schedules_of
    from .tensors import load_inputs

    against: Literal["onnxruntime", "reference", "torch"] | None = arguments.against
    source = _source(arguments)
    if not is_archive(source):
        system_named(against or "onnxruntime")  # before anything is compiled
    given = precision_of(arguments)
    bounds = (arguments.atol, arguments.rtol, arguments.tolerance)
    check_compared(given.kinds, ValueBound(*bounds), intermediates=arguments.intermediates)
    engine = engine_of(arguments, given)
    inputs = None
    if arguments.inputs is not None:
        inputs = load_inputs(arguments.inputs, engine.inputs)
    with working("verifying") as tell:
        report = verify_model(
            source,
            against=against,
            engine=engine,
            target=arguments.target,
            shapes=shapes_of(arguments.shapes),
            constants=constants_of(arguments.constants),
            inputs=inputs,
            sizes=sizes_of(arguments.sizes),
            seed=arguments.seed,
            seeds=arguments.seeds,
            atol=arguments.atol,
            rtol=arguments.rtol,
            tolerance=arguments.tolerance,
            schedules=schedules_of(arguments),
            intermediates=arguments.intermediates,
            progress=tell,
        )
    print(json.dumps(_json(report), indent=1) if arguments.json else _text(report))
    return OK if report else MISMATCH


def _source(arguments: argparse.Namespace) -> str:
    """The ONNX model that the other system runs. Raises: UsageError."""
    from .engines import SUFFIX  # start-up

    model: str = arguments.model
    if not model.endswith(SUFFIX):
        if arguments.source is not None:
            raise UsageError(
                f"verify: --model is given with '{model}', which is no engine; expected one of "
                "both.",
                code="cli-verify-both",
            )
        return model
    if arguments.source is None:
        raise UsageError(
            f"verify: '{model}' is an engine, which other systems cannot run; expected its model, "
            "too.",
            code="cli-verify-model",
            hints=(f"tilewright verify {model} --model MODEL.onnx",),
        )
    if arguments.intermediates:
        raise UsageError(
            f"verify: --intermediates is given with the engine '{model}'; expected a model, of "
            "which engines that keep values within can be compiled.",
            code="cli-verify-inside",
        )
    source: str = arguments.source
    return source


def _text(report: ModelReport) -> str:
    rows = [_row(one) for one in report.outputs]
    parts = [
        paragraph("model", report.model),
        paragraph("target", report.target),
        paragraph("against", f"{report.system}, {report.runs} run{'s' * (report.runs != 1)}"),
        table(_HEADS, rows),
    ]
    problems = [f"{one.name}: {one.problem}" for one in report.outputs if one.problem]
    if problems:
        parts.append(paragraph("problems", *map(bad, problems)))
    if report.inside is not None:
        parts.append(paragraph("inside", *str(report.inside).splitlines()))
    parts.append(paragraph("result", good("equal within bounds") if report else bad("different")))
    return "\n".join(parts)


def _row(one: ValueDifference) -> tuple[str, ...]:
    """The cells under _HEADS; of values of other shapes or types, only what they are."""
    kind = f"{one.dtype}[{', '.join(map(str, one.shape))}]"
    if one.problem:
        return (one.name, kind, *[""] * (len(_HEADS) - 2))
    place = f"[{', '.join(map(str, one.place))}], {one.at}"
    return (
        one.name,
        kind,
        f"{one.error:.3g}",
        f"{one.relative:.2g}",
        f"{one.share:.2g}",
        place,
        one.ours,
        one.theirs,
        str(one.unlike),
    )


def _json(report: ModelReport) -> dict[str, object]:
    return {
        "model": report.model,
        "target": report.target,
        "against": report.system,
        "runs": report.runs,
        "equal": bool(report),
        "outputs": [_value_json(one) for one in report.outputs],
        "inside": None if report.inside is None else _inside_json(report.inside),
    }


def _value_json(one: ValueDifference) -> dict[str, object]:
    """All that is known of a difference; null stands for what is infinite."""
    return {
        "name": one.name,
        "dtype": one.dtype,
        "shape": list(one.shape),
        "equal": one.is_equal,
        "error": _finite(one.error),
        "relative": _finite(one.relative),
        "share": _finite(one.share),
        "place": list(one.place),
        "ours": one.ours,
        "theirs": one.theirs,
        "unlike": one.unlike,
        "at": one.at,
        "problem": one.problem,
    }


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _inside_json(inside: InnerComparison) -> dict[str, object]:
    first = inside.first
    return {
        "compared": inside.compared,
        "left_out": list(inside.left_out),
        "first": None if first is None else _first_json(first),
    }


def _first_json(first: FirstDifference) -> dict[str, object]:
    return {
        "node": first.node,
        "operator": first.operator,
        "kept": first.is_kept,
        "value": _value_json(first.value),
        "alone": None if first.alone is None else _value_json(first.alone),
        "inputs": [_range_json(one) for one in first.inputs],
        "outputs": [_range_json(one) for one in first.outputs],
    }


def _range_json(one: ValueRange) -> dict[str, object]:
    return {
        "name": one.name,
        "dtype": one.dtype,
        "shape": list(one.shape),
        "low": one.low,
        "high": one.high,
        "unlike": one.unlike,
    }


def _some(text: str) -> int:
    number = whole(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is below 1")
    return number
