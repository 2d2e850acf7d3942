"""A program becomes the parts of an engine by way of lowered code: its functions are lowered,
proved and compiled, each kernel is checked, what depends on constants alone is computed, and the
whole is run beside its reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace

from ..runtime.arrays import Array
from ..runtime.engine.engine_code import Constants, EngineCode, ModelArtifact
from ..runtime.engine.parts import EngineParts
from ..runtime.model.model import Model, StoredModel
from ..runtime.model.report import EngineReport
from ..tir.dim import Dim
from ..tir.program.at_sizes import program_at
from ..tir.program.program import Program
from .build_code import CodeOptions, CompiledProgram, Compiling, ProgramTexts, build_code
from .check.clock import Clock
from .check.engine import EngineChecker
from .jobs import ProgramJob, ProgramOptions
from .kept_kernels import CachedKernels


def build_parts(
    job: ProgramJob,
    compiler: str,
    compiling: Callable[[], AbstractContextManager[Compiling]],
    kept: CachedKernels | None = None,
) -> EngineParts:
    """The parts of an engine of compiled kernels. compiler: what compiles them is called;
    compiling: begins to; kept: kernels of earlier builds. Raises: as `build_program`.
    """
    program, options, clock = job.program, job.options, Clock()
    how = CodeOptions(
        job.source,
        options.strict,
        options.checks_kernels,
        compiler,
        options.divisible,
        options.allow,
        kept,
    )
    built = build_code(program, job.target, how, compiling, clock)
    code = built.compiled.code
    constants = code.prepared(_bound(code.artifact, job.constants))
    clock.lap("prepare")
    whole = "off"
    if options.checks_whole:
        whole = _whole(job, built.compiled, constants)
        clock.lap("check of the engine")
    plain = plain_model(program, job.constants) if options.keep_weights else None
    report = _report(built, clock, options, whole)
    return parts_of(code, constants, report, plain, options)


def parts_of(
    code: EngineCode,
    constants: Constants,
    report: EngineReport,
    plain: StoredModel | None,
    options: ProgramOptions,
) -> EngineParts:
    """The parts of an engine; its plan of memory says what the options know of it."""
    plan = replace(
        code.memory,
        lower_bound_bytes=options.lower_bound_bytes,
        kept_bytes=_kept_bytes(plain, options.imported),
    )
    return EngineParts(code, constants, report, plan, plain, options.imported)


def plain_model(program: Program, constants: Mapping[str, Array]) -> StoredModel:
    """The program before schedules, with the constants that are bound."""
    bound = (t.name for i, t in enumerate(program.constants) if i not in program.prepared)
    return Model(program, {name: constants[name] for name in bound}).stored()


def _whole(job: ProgramJob, compiled: CompiledProgram, constants: Constants) -> str:
    """Run the whole engine beside the reference; what was found.

    Raises: ProgramCheckError, EngineCheckError.
    """
    options = job.options
    if isinstance(options.oracle, str):
        return options.oracle
    found = ""
    for sizes in _whole_sizes(job.program):
        runs = compiled.engine_runs(constants, job.program, sizes)
        if isinstance(runs, str):
            return runs
        model = Model(program_at(job.program, sizes), job.constants)
        checker = EngineChecker(runs, model, options.oracle, tolerance=options.tolerance)
        at = ", ".join(f"{dim.name} {size}" for dim, size in sizes.items())
        found += f"{'; ' if found else ''}{f'at {at}: ' if at else ''}{checker.check()}"
    return found


def _whole_sizes(program: Program) -> tuple[Mapping[Dim, int], ...]:
    """The sizes at which an engine is run: those that are usual, and all as small as can be."""
    usual = {dim: dim.usual for dim in program.dims}
    least = {dim: dim.low for dim in program.dims}
    return (usual,) if least == usual else (usual, least)


def _bound(artifact: ModelArtifact, constants: Mapping[str, Array]) -> Constants:
    """The constants that code takes as they are bound, by position."""
    return tuple(
        constants[parameter.name] if position in artifact.bound else None
        for position, parameter in enumerate(artifact.constants)
    )


def _report(built: ProgramTexts, clock: Clock, options: ProgramOptions, whole: str) -> EngineReport:
    laps, notes = (*options.seconds, *clock.laps), (*options.notes, *built.notes)
    return EngineReport(
        *(built.kernels, notes, laps, options.tolerance, whole),
        precision=options.precision,
        allow=options.allow,
    )


def _kept_bytes(*models: StoredModel | None) -> int:
    """Bytes of the arrays of models, each once; one that repeats a value takes none."""
    arrays = {id(array): array for model in models if model for array in model.constants.values()}
    return sum(array.nbytes for array in arrays.values() if any(array.strides))
