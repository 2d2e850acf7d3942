"""A program of plain functions becomes an Engine, by the back end of its target."""

from __future__ import annotations

from collections.abc import Mapping

from ..runtime.arrays import ArgumentTypeError, Array
from ..runtime.engine.engine import Engine, Reference
from ..schedule.source import ScheduleSource
from ..tir.errors import TargetError
from ..tir.program.program import Program
from ..tir.program.syncs import place_syncs, verify_program
from ..tir.target.target import Target
from .backends.table import backend_of
from .jobs import ProgramJob, ProgramOptions
from .resolve_target import resolve_target


def build_program(
    program: Program,
    constants: Mapping[str, Array],
    target: Target | str | None = None,
    *,
    source: ScheduleSource | None = None,
    reference: Reference | None = None,
    options: ProgramOptions | None = None,
) -> Engine:
    """Compile a program for a target: this machine's CPU by default.

    program: of functions of stage TENSOR; Syncs are placed anew. constants: an array for each
    constant, by name; one that repeats a value may be a broadcast view. source: schedules. A
    schedule that is refused, or whose kernel fails its check, gives way to that of the rule, then
    to plainer ones, and the report says so. reference: computes the outputs, for `Engine.verify`.
    Raises: IRError, ArgumentTypeError, CompilerNotFound; ProgramRefusedError for one of
    `options.divisible`; ProgramCheckError naming the functions whose kernels are wrong; where no
    way is left: ScheduleError, TargetError, InternalError.
    """
    options = options or ProgramOptions()
    resolved = resolve_target(target)
    program = place_syncs(program)
    verify_program(program)
    _check_constants(program, constants)
    job = ProgramJob(program, constants, resolved, source, options)
    backend = backend_of(resolved)
    if options.verify == "emulated" and not backend.is_emulated:
        raise TargetError(
            f"build: verify='emulated' runs kernels for a GPU on the CPU; the target is "
            f"'{resolved}'.",
            code="build-emulated",
            hints=("verify='kernels' runs each kernel where it belongs.",),
        )
    return Engine(
        backend.build_program(job),
        reference=reference,
        threads=options.threads,
        max_contexts=options.max_contexts,
    )


def _check_constants(program: Program, constants: Mapping[str, Array]) -> None:
    prepared = program.prepared
    for position, tensor in enumerate(program.constants):
        if position in prepared:
            continue
        array = constants.get(tensor.name)
        if array is None or array.shape != tensor.shape or array.dtype != tensor.dtype.numpy:
            got = "none" if array is None else f"{array.dtype.name}{list(array.shape)}"
            raise ArgumentTypeError(
                f"build: constant '{tensor.name}' of '{program.name}' is "
                f"{tensor.dtype}{list(tensor.shape)}; got {got}.",
                code="program-constant",
            )
