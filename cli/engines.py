"""Engines for verbs, compiled from a model or read from a file, and figures about them."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..driver.load import load
from ..runtime.arrays import Array
from ..runtime.engine.engine import Engine
from ..tir.work.work import operations
from .arguments import shapes_of, sizes_of
from .buckets import buckets_of
from .constants import constants_of
from .errors import UsageError
from .precision import GivenPrecision, precision_of
from .text import working

if TYPE_CHECKING:
    from ..autotune.tuning_log import TuningLog

SUFFIX = ".twe"


def engine_of(arguments: argparse.Namespace, precision: GivenPrecision | None = None) -> Engine:
    """The engine of MODEL and its options. precision: in place of the one that is asked for.

    Raises: UsageError for contradictory options; whatever `compile` and `load` raise.
    """
    path = arguments.model
    if path is None:
        raise UsageError(
            f"{arguments.verb}: no model is given.",
            code="cli-model",
            hints=(f"tilewright {arguments.verb} MODEL.onnx",),
        )
    if path.endswith(SUFFIX):
        return loaded(path, arguments)
    from ..graph.compile import compile  # loading an engine does not need the compiler

    given = precision_of(arguments) if precision is None else precision
    with working(f"compiling {Path(path).name}") as tell:
        return compile(
            path,
            arguments.target,
            shapes=shapes_of(arguments.shapes),
            **buckets_of(arguments),
            constants=constants_of(arguments.constants),
            tolerance=arguments.tolerance,
            precision=given.precision,
            calibration=given.calibration,
            accuracy=given.accuracy,
            schedules=schedules_of(arguments),
            require_tuned=arguments.require_tuned,
            specialise=variants_of(arguments),
            progress=tell,
        )


def variants_of(arguments: argparse.Namespace) -> list[dict[str, int]]:
    """The sizes that each `--specialise` names; not every verb has it."""
    given = getattr(arguments, "specialise", [])
    return [sizes_of([text], "--specialise") for text in given]


def schedules_of(arguments: argparse.Namespace) -> TuningLog | None:
    """The tuning log that `--log` names."""
    if arguments.log is None:
        return None
    from ..autotune.tuning_log import TuningLog  # start-up: most compiles need none

    return TuningLog(arguments.log)


def loaded(path: str, arguments: argparse.Namespace) -> Engine:
    """Load the engine of a file, which fixes shapes, target, precision and schedules.

    Raises: UsageError where an option contradicts it; whatever `load` raises.
    """
    fixed = {
        "--shapes": arguments.shapes,
        "--constants": arguments.constants,
        "--target": arguments.target,
        "--tolerance": arguments.tolerance,
        "--log": arguments.log,
        "--require-tuned": arguments.require_tuned,
        "--precision": getattr(arguments, "precision", None),
        "--calibration": getattr(arguments, "calibration", None),
        "--accuracy": getattr(arguments, "accuracy", None),
        "--buckets": getattr(arguments, "buckets", None),
        "--specialise": variants_of(arguments),
    }
    for option, value in fixed.items():
        if value:
            raise UsageError(
                f"{arguments.verb}: {option} is given with the engine '{path}', which was compiled "
                "before.",
                code="cli-fixed",
                hints=(f"tilewright compile MODEL.onnx {option} ... -o {Path(path).name}",),
            )
    return load(path)


def engine_operations(engine: Engine, inputs: Mapping[str, Array]) -> int | None:
    """Floating-point operations of a run on these inputs, by definition; None for an engine without
    its program.
    """
    if engine.parts.plain is None:
        return None
    program = engine.parts.plain.model().program_for(inputs)
    cost = {func.name: operations(func) for func in program.functions}
    return sum(cost[launch.function] for launch in program.launches)


def kernel_source(engine: Engine, symbol: str) -> str:
    """The C of one kernel, with the headers that it needs; of a GPU, its CUDA C."""
    return engine.parts.code.kernel_source(symbol)
