"""A program of plain functions becomes an Engine: its functions are lowered, proved and compiled,
each kernel is checked, and what depends on constants alone is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ..codegen.artifact import Parameter
from ..codegen.cuda.program_artifact import CudaProgram
from ..codegen.program_artifact import ProgramArtifact
from ..runtime.arrays import ArgumentTypeError, Array
from ..runtime.cpu.pool import pool_object, use_pool
from ..runtime.cpu.program_code import NativeProgram, prepare_constants
from ..runtime.engine.engine import Engine, Reference
from ..runtime.engine.parts import EngineParts
from ..runtime.model.model import Model, StoredModel
from ..runtime.model.report import EngineReport, KernelReport, MemoryPlan
from ..runtime.toolchain.compile import Units
from ..runtime.toolchain.library import SharedObject
from ..schedule.source import ScheduleSource
from ..tir.errors import TargetError
from ..tir.program.program import Program, place_syncs, verify_program
from ..tir.target import Target
from .build_code import CodeOptions, build_code
from .check.clock import Clock, Laps
from .check.engine import EngineChecker, Oracle
from .check.engine_runs import EngineRuns, ThreadedRuns
from .check.gpu_engine_runs import gpu_engine_runs
from .compile_ahead import CompileAhead
from .compile_ahead_cuda import CompileAheadCuda
from .resolve_target import resolve_target

Verify = Literal["all", "rewrites", "kernels", "emulated", "off"]


@dataclass(frozen=True, slots=True)
class ProgramOptions:
    """How a program is built.

    strict: no contraction, no re-association. verify: "all" and "kernels" check every kernel that
    this machine runs, and "all" the whole engine, too; "emulated" checks both for a GPU on the CPU.
    notes: lines for the report. lower_bound_bytes: below which no arena can be. keep_weights: keep
    program and original weights, so that a saved engine can be built anew. imported: the model as
    it was imported, for `verify`. seconds: what those who made the program took, for the report.
    tolerance: the share of an output's largest magnitude that `verify` allows where it is more than
    usual. divisible: see `CodeOptions`. oracle: the reference beside which the whole engine is run
    where verify is "all" or "emulated", or why there is none.
    """

    strict: bool = False
    verify: Verify = "all"
    notes: tuple[str, ...] = ()
    lower_bound_bytes: int | None = None
    keep_weights: bool = True
    imported: StoredModel | None = None
    threads: int | None = None
    max_contexts: int | None = None
    seconds: Laps = ()
    tolerance: float | None = None
    divisible: frozenset[str] = frozenset()
    oracle: Oracle | str = "off"


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
    if options.verify == "emulated" and resolved.gpu is None:
        raise TargetError(
            f"build: verify='emulated' runs kernels for a GPU on the CPU; the target is "
            f"'{resolved}'.",
            code="build-emulated",
            hints=("verify='kernels' runs each kernel where it belongs.",),
        )
    match resolved.kind:
        case "python":
            parts = _interpreted(program, constants, resolved, options)
        case "c":
            parts = _compiled(program, constants, resolved, source, options)
        case "cuda":
            parts = _for_gpu(program, constants, resolved, source, options)
        case _:
            raise TargetError(
                f"build: target '{resolved}' runs nothing; expected 'c', 'cuda' or 'python'.",
                code="build-target",
            )
    return Engine(
        parts,
        reference=reference,
        threads=options.threads,
        max_contexts=options.max_contexts,
    )


def _compiled(
    program: Program,
    constants: Mapping[str, Array],
    target: Target,
    source: ScheduleSource | None,
    options: ProgramOptions,
) -> EngineParts:
    clock = Clock()

    def compiling() -> CompileAhead:
        return CompileAhead(program.name, target, Units("model"))

    how = CodeOptions(source, options.strict, _checked(options), "cc", options.divisible)
    code = build_code(program, target, how, compiling, clock)
    artifact, shared = code.compiled.artifact, code.compiled.shared
    kept, pool, not_run = _kept(artifact, constants), pool_object(), code.compiled.not_run
    if not_run is None:
        given = {n: array for n, array in enumerate(kept) if array is not None}
        kept = prepare_constants(artifact, shared, given)
    clock.lap("prepare")
    whole = "off"
    if options.verify == "all":
        model = Model(program, constants)
        whole = not_run or _whole(lambda: _on_threads(artifact, shared, kept, pool), model, options)
        clock.lap("check of the engine")
    report = _report(code.kernels, code.notes, clock, options, whole)
    plain = _plain(program, constants) if options.keep_weights else None
    weights = sum(artifact.constants[position].bytes for position in artifact.read)
    plan = _plan(artifact, weights, plain, options)
    return EngineParts(artifact, shared, kept, report, plan, pool, plain, options.imported)


def _whole(runs: Callable[[], EngineRuns | str], model: Model, options: ProgramOptions) -> str:
    """Run the whole engine beside the reference; what was found. runs: how it is run, or why not.

    Raises: ProgramCheckError, EngineCheckError.
    """
    if isinstance(options.oracle, str):
        return options.oracle
    made = runs()
    if isinstance(made, str):
        return made
    return str(EngineChecker(made, model, options.oracle, tolerance=options.tolerance).check())


def _on_threads(
    artifact: ProgramArtifact,
    shared: SharedObject,
    constants: Sequence[Array | None],
    pool: SharedObject,
) -> ThreadedRuns:
    use_pool(pool)
    return ThreadedRuns(NativeProgram(artifact, shared, constants))


def _for_gpu(
    program: Program,
    constants: Mapping[str, Array],
    target: Target,
    source: ScheduleSource | None,
    options: ProgramOptions,
) -> EngineParts:
    """The parts of an engine for a GPU, which need not be here: what depends on constants alone is
    computed there, before the first run.
    """
    clock, emulated = Clock(), options.verify == "emulated"

    def compiling() -> CompileAheadCuda:
        return CompileAheadCuda(target, "emulation" if emulated else "device")

    checked = _checked(options) or emulated
    how = CodeOptions(source, options.strict, checked, "nvrtc", options.divisible)
    code = build_code(program, target, how, compiling, clock)
    artifact = code.compiled.artifact
    kept, whole = _kept(artifact, constants), "off"
    if options.verify in ("all", "emulated"):
        model = Model(program, constants)
        whole = _whole(lambda: gpu_engine_runs(code.compiled, kept, program), model, options)
        clock.lap("check of the engine")
    report = _report(code.kernels, code.notes, clock, options, whole)
    plain = _plain(program, constants) if options.keep_weights else None
    plan = _plan_on_device(artifact, plain, options)
    cubins = code.compiled.cubins
    return EngineParts(artifact, None, kept, report, plan, None, plain, options.imported, cubins)


def _interpreted(
    program: Program, constants: Mapping[str, Array], target: Target, options: ProgramOptions
) -> EngineParts:
    """The parts of an engine that the interpreter runs."""
    artifact = ProgramArtifact(
        name=program.name,
        symbol="",
        target=target,
        inputs=tuple(Parameter(t.name, t.dtype, t.shape, "input") for t in program.inputs),
        constants=(),
        read=(),
        outputs=tuple(Parameter(t.name, t.dtype, t.shape, "output") for t in program.outputs),
        kernels=(),
        texts=(),
        main="",
        body=(),
        arena_bytes=program.arena_bytes,
    )
    report = EngineReport((), options.notes, tolerance=options.tolerance)
    plain = _plain(program, constants)
    plan = _plan(artifact, 0, plain, options)
    return EngineParts(artifact, None, (), report, plan, None, plain, options.imported)


def _kept(
    artifact: ProgramArtifact | CudaProgram, constants: Mapping[str, Array]
) -> tuple[Array | None, ...]:
    """The constants that code takes as they are bound, by position."""
    return tuple(
        constants[parameter.name] if position in artifact.bound else None
        for position, parameter in enumerate(artifact.constants)
    )


def _report(
    kernels: tuple[KernelReport, ...],
    notes: tuple[str, ...],
    clock: Clock,
    options: ProgramOptions,
    whole: str,
) -> EngineReport:
    laps = (*options.seconds, *clock.laps)
    return EngineReport(kernels, (*options.notes, *notes), laps, options.tolerance, whole)


def _plain(program: Program, constants: Mapping[str, Array]) -> StoredModel:
    """The program before schedules, with the constants that are bound."""
    bound = (t.name for i, t in enumerate(program.constants) if i not in program.prepared)
    return Model(program, {name: constants[name] for name in bound}).stored()


def _plan(
    artifact: ProgramArtifact,
    weights_bytes: int,
    plain: StoredModel | None,
    options: ProgramOptions,
) -> MemoryPlan:
    """The memory of runs on the CPU."""
    return MemoryPlan(
        weights_bytes=weights_bytes,
        arena_bytes=artifact.arena_bytes,
        workspace_bytes=artifact.workspace_bytes,
        thread_workspace_bytes=artifact.thread_workspace_bytes,
        lower_bound_bytes=options.lower_bound_bytes,
        kept_bytes=_kept_bytes(plain, options.imported),
    )


def _plan_on_device(
    artifact: CudaProgram, plain: StoredModel | None, options: ProgramOptions
) -> MemoryPlan:
    """The memory of a device that runs take; inputs and outputs have their place there too."""
    return MemoryPlan(
        weights_bytes=artifact.weights_bytes,
        arena_bytes=artifact.arena_bytes,
        workspace_bytes=artifact.workspace_bytes + artifact.interface_bytes,
        thread_workspace_bytes=0,
        lower_bound_bytes=options.lower_bound_bytes,
        kept_bytes=_kept_bytes(plain, options.imported),
    )


def _kept_bytes(*models: StoredModel | None) -> int:
    """Bytes of the arrays of models, each once; one that repeats a value takes none."""
    arrays = {id(array): array for model in models if model for array in model.constants.values()}
    return sum(array.nbytes for array in arrays.values() if any(array.strides))


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


def _checked(options: ProgramOptions) -> bool:
    return options.verify in ("all", "kernels")
