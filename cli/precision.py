"""Precision on the command line: `--precision`, `--calibration` and `--accuracy`, and what they ask
of a compile.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import UsageError

if TYPE_CHECKING:
    from ..graph.precision.accuracy import Accuracy
    from ..graph.precision.calibration.calibration import Calibration
    from ..runtime.arrays import Array

METRICS = ("top1", "agreement", "error")
_FLOAT = "float32"
_EXPECTED = "expected"  # the array of a held-out file that is no input
_FILES = "with files that np.savez('0.npz', x=images, expected=labels) writes."
_DROP = 0.01
_MEASURED = ("--accuracy", "--max-drop", "--held-out")


@dataclass(frozen=True, slots=True)
class GivenPrecision:
    """What is asked of the products of a model; as `compile` takes it."""

    precision: str | Mapping[str, str] = _FLOAT
    calibration: Calibration | None = None
    accuracy: Accuracy | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        """The types that are asked for, other than float32."""
        from ..graph.options import kinds_of  # start-up

        return kinds_of(self.precision)

    def __str__(self) -> str:
        given = self.precision
        if isinstance(given, str):
            return given
        return ", ".join(f"{name}={kind}" for name, kind in given.items())


def add_precision(parser: argparse.ArgumentParser) -> None:
    """Add the options of precision."""
    add_types(parser, ", or auto, what is fastest within --accuracy")
    parser.add_argument(
        "--accuracy",
        choices=METRICS,
        metavar="METRIC",
        help="int8 only where the model keeps this, and kernels, timed here, are not over 5 %% "
        "slower: top1, the share of samples whose largest output is the expected one; agreement, "
        "with that of float32; error, the power of what outputs are off by over their own",
    )
    parser.add_argument(
        "--max-drop",
        type=float,
        metavar="D",
        help=f"by how much it may be worse than that of float32 (default {_DROP})",
    )
    parser.add_argument(
        "--held-out",
        metavar="FOLDER",
        help="the data that it is measured on: a .npz for each run, with the inputs by name, and "
        f"for top1 the places as '{_EXPECTED}'",
    )


def add_types(parser: argparse.ArgumentParser, auto: str = "") -> None:
    """Add `--precision` and `--calibration`, the options of precision that measure nothing. auto:
    what is said of a type that is no type of a product.
    """
    parser.add_argument(
        "--precision",
        action="append",
        default=[],
        metavar="[LAYER=]TYPE",
        help=f"what products compute with: int8, bfloat16 or float16{auto}; or only those of one "
        "layer, fc1=int8, several times (default: float32)",
    )
    parser.add_argument(
        "--calibration",
        metavar="FILE",
        help="the ranges for int8, which `tilewright calibrate` wrote",
    )


def add_planned_types(parser: argparse.ArgumentParser) -> None:
    """Add `--precision` and `--calibration` to a verb that measures no model; `types_of` refuses
    the others.
    """
    add_types(parser)
    for option in _MEASURED:
        parser.add_argument(option, help=argparse.SUPPRESS)


def types_of(arguments: argparse.Namespace) -> GivenPrecision:
    """What the options of `add_planned_types` ask for.

    Raises: UsageError; what `Calibration.load` raises.
    """
    precision = _precision(arguments.precision)
    for option in _MEASURED:
        if getattr(arguments, option.strip("-").replace("-", "_")) is not None:
            raise UsageError(
                f"{arguments.verb}: {option} is given, and what an accuracy takes is measured in "
                "each compile; expected the types of products.",
                code="cli-types-accuracy",
                hints=(
                    "compile once with --accuracy; `tilewright explain` says what each product "
                    "has, and --precision fc1=int8 --precision ... names that.",
                ),
            )
    return GivenPrecision(precision, _calibration(arguments.calibration))


def precision_of(arguments: argparse.Namespace) -> GivenPrecision:
    """What the options of precision ask for; float32 of a verb without them.

    Raises: UsageError; AccuracyError; what `Calibration.load` raises.
    """
    given = vars(arguments)
    if not any(given.get(name) for name in ("precision", "calibration", "accuracy", "held_out")):
        if given.get("max_drop") is not None:
            raise _alone("--max-drop")
        return GivenPrecision()
    return GivenPrecision(
        _precision(arguments.precision), _calibration(arguments.calibration), _accuracy(arguments)
    )


def _precision(texts: Sequence[str]) -> str | Mapping[str, str]:
    """A type, or those of layers by name. Raises: UsageError."""
    pairs = [text.rpartition("=") for text in texts]
    named = {name: kind for name, equals, kind in pairs if equals}
    if not named and len(texts) < 2:
        return texts[0] if texts else _FLOAT
    if len(named) < len(texts) or not all(named):
        raise UsageError(
            f"--precision: {', '.join(map(repr, texts))} contradict each other; expected one type "
            "for all products, or one LAYER=TYPE for each of some layers.",
            code="cli-precision",
            hints=("--precision int8, or --precision fc1=int8 --precision fc2=bfloat16.",),
        )
    return named


def _calibration(path: str | None) -> Calibration | None:
    if path is None:
        return None
    from ..graph.precision.calibration.calibration import (
        Calibration,  # start-up: most compiles need none
    )

    return Calibration.load(path)


def _accuracy(arguments: argparse.Namespace) -> Accuracy | None:
    """The budget. Raises: UsageError; AccuracyError."""
    metric, folder, drop = arguments.accuracy, arguments.held_out, arguments.max_drop
    if metric is None:
        for option, value in (("--max-drop", drop), ("--held-out", folder)):
            if value is not None:
                raise _alone(option)
        return None
    if folder is None:
        raise UsageError(
            f"--accuracy: '{metric}' is measured on data, and none are given; expected --held-out.",
            code="cli-accuracy-data",
            hints=(f"--held-out FOLDER, {_FILES}",),
        )
    from ..graph.precision.accuracy import Accuracy  # start-up: most compiles need none

    return Accuracy(metric, _DROP if drop is None else drop, _held_out(Path(folder), metric))


def _alone(option: str) -> UsageError:
    return UsageError(
        f"{option}: no --accuracy is given, which says what is measured; expected one of "
        f"{', '.join(METRICS)}.",
        code="cli-accuracy",
    )


def _held_out(folder: Path, metric: str) -> list[tuple[dict[str, Array], object]]:
    """The inputs of each file, in the order of their names, and what is expected of them.

    Raises: UsageError; OSError.
    """
    from .tensors import load_inputs  # start-up

    paths = sorted(folder.glob("*.npz"))
    if not paths:
        raise UsageError(
            f"--held-out: '{folder}' is no folder with .npz files; expected one for each run.",
            code="cli-held-out",
            hints=(f"a folder {_FILES}",),
        )
    found: list[tuple[dict[str, Array], object]] = []
    for path in paths:
        arrays = load_inputs(str(path), (), "--held-out")
        expected = arrays.pop(_EXPECTED, None)
        if metric == "top1" and expected is None:
            raise UsageError(
                f"--held-out: '{path}' has no array '{_EXPECTED}', which top1 compares with; it "
                f"has {', '.join(map(repr, arrays))}.",
                code="cli-held-out-expected",
                hints=("--accuracy agreement compares with float32, and needs none.",),
            )
        found.append((arrays, expected))
    return found
