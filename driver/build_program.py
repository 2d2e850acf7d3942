"""A program of plain functions becomes an Engine: its functions are lowered and proved, all become
one object, each kernel is checked, and what depends on constants alone is computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..codegen.artifact import Parameter
from ..codegen.c.program import emit_program
from ..codegen.program_artifact import ProgramArtifact
from ..runtime.arrays import ArgumentTypeError, Array
from ..runtime.compile import Units
from ..runtime.engine import Engine, Reference
from ..runtime.engine_parts import EngineParts
from ..runtime.library import SharedObject
from ..runtime.model import Model, StoredModel
from ..runtime.pool import pool_object
from ..runtime.program_code import prepare_constants
from ..runtime.report import EngineReport, KernelReport, MemoryPlan
from ..schedule.source import ScheduleSource
from ..tir.errors import TargetError
from ..tir.program import Program, place_syncs, verify_program
from ..tir.target import Target
from .build import Verify, resolve_target
from .check_program import KernelCheck, KernelChecker, ProgramCheckError
from .clock import Clock, Laps
from .compile_ahead import CompileAhead
from .lower_program import LoweredKernel, LoweredProgram, lower_program


@dataclass(frozen=True, slots=True)
class ProgramOptions:
    """How a program is built.

    strict: no contraction, no re-association. verify: "all" and "kernels" check every kernel.
    notes: lines for the report. lower_bound_bytes: below which no arena can be. keep_weights: keep
    program and original weights, so that a saved engine can be built anew. imported: the model as
    it was imported, for `verify`. seconds: what those who made the program took, for the report.
    tolerance: the share of an output's largest magnitude that `verify` allows where it is more than
    usual.
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
    constant, by name; one that repeats a value may be a broadcast view. source: schedules; a kernel
    whose schedule it gave and whose check fails is built by rule instead, and the report says so.
    reference: computes the outputs, for `Engine.verify`.
    Raises: ScheduleError, TargetError, IRError, ArgumentTypeError, CompilerNotFound;
    ProgramCheckError naming the functions whose kernels are wrong.
    """
    options = options or ProgramOptions()
    resolved = resolve_target(target)
    program = place_syncs(program)
    verify_program(program)
    _check_constants(program, constants)
    if resolved.kind == "python":
        parts = _interpreted(program, constants, resolved, options)
    elif resolved.kind == "c":
        parts = _compiled(program, constants, resolved, source, options)
    else:
        raise _no_engine(resolved)
    return Engine(
        parts,
        reference=reference,
        threads=options.threads,
        max_contexts=options.max_contexts,
    )


def _no_engine(target: Target) -> TargetError:
    if target.gpu is None:
        return TargetError(
            f"build: target '{target}' runs nothing; expected 'c' or 'python'.",
            code="build-target",
        )
    return TargetError(
        f"build: whole models are not built for '{target}' yet; expected 'c' or 'python'.",
        code="build-engine-gpu",
        hints=(
            f"tw.build(func, '{target}') builds one function; tw.tasks(model) lists a model's.",
        ),
    )


def _compiled(
    program: Program,
    constants: Mapping[str, Array],
    target: Target,
    source: ScheduleSource | None,
    options: ProgramOptions,
) -> EngineParts:
    clock = Clock()
    code = _code(program, target, source, options, clock)
    bound = {i: constants[tensor.name] for i, tensor in enumerate(program.constants)}
    kept = prepare_constants(code.artifact, code.shared, bound)
    clock.lap("prepare")
    laps = (*options.seconds, *clock.laps)
    report = EngineReport(code.kernels, code.notes, laps, options.tolerance)
    return _parts(code.artifact, code.shared, kept, report, program, constants, options)


@dataclass(frozen=True, slots=True)
class _Code:
    """The code of a program, checked, and what is reported of it."""

    artifact: ProgramArtifact
    shared: SharedObject
    kernels: tuple[KernelReport, ...]
    notes: tuple[str, ...]


def _code(
    program: Program,
    target: Target,
    source: ScheduleSource | None,
    options: ProgramOptions,
    clock: Clock,
) -> _Code:
    """Lower, compile and check; what was lowered is gone when constants are prepared."""
    known: dict[str, LoweredKernel] = {}
    by_rule: frozenset[str] = frozenset()
    notes = list(options.notes)
    while True:
        with Units("model") as units:
            ahead = CompileAhead(program.name, target, units)
            lowered = lower_program(
                program,
                target,
                source=source,
                strict=options.strict,
                by_rule=by_rule,
                known=known,
                made=ahead.add,
            )
            clock.lap("lower", ahead.seconds)
            known = {key: kernel.counted() for key, kernel in known.items()}
            artifact = emit_program(lowered.program, target, texts=ahead.texts)
            shared = ahead.finish(artifact)
        clock.lap("wait for cc")
        clock.add("cc, beside the others", shared.seconds)
        checks = _checks(artifact, shared, lowered) if _checked(options) else {}
        clock.lap("check")
        failures = {name: check.verdict for name, check in checks.items() if not check.ok}
        if not failures:
            break
        if any(lowered.kernels[name].lowered.schedule.origin == "rule" for name in failures):
            wrong = {f: failures[k] for f, k in lowered.kernel_of.items() if k in failures}
            raise ProgramCheckError(program.name, wrong)
        notes += [
            f"kernel '{name}': its schedule failed the check ({reason}) and was replaced by rule"
            for name, reason in failures.items()
        ]
        by_rule |= frozenset(failures)
    kernels = tuple(
        _kernel_report(name, artifact, lowered, checks.get(name)) for name in lowered.kernels
    )
    return _Code(artifact, shared, kernels, tuple(notes))


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
    return _parts(artifact, None, (), report, program, constants, options)


def _parts(
    artifact: ProgramArtifact,
    shared: SharedObject | None,
    kept: tuple[Array | None, ...],
    report: EngineReport,
    program: Program,
    constants: Mapping[str, Array],
    options: ProgramOptions,
) -> EngineParts:
    plain = None
    if options.keep_weights or shared is None:
        bound = (t.name for i, t in enumerate(program.constants) if i not in program.prepared)
        plain = Model(program, {name: constants[name] for name in bound}).stored()
    plan = MemoryPlan(
        weights_bytes=sum(array.nbytes for array in kept if array is not None),
        arena_bytes=artifact.arena_bytes,
        workspace_bytes=artifact.workspace_bytes,
        thread_workspace_bytes=artifact.thread_workspace_bytes,
        lower_bound_bytes=options.lower_bound_bytes,
        kept_bytes=_kept_bytes(plain, options.imported),
    )
    pool = pool_object() if shared is not None else None
    return EngineParts(artifact, shared, kept, report, plan, pool, plain, options.imported)


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


def _checks(
    artifact: ProgramArtifact, shared: SharedObject, lowered: LoweredProgram
) -> dict[str, KernelCheck]:
    """The check of every kernel, by name."""
    checker = KernelChecker(artifact, shared)
    symbols = _symbols(artifact, lowered)
    return {
        name: checker.check(
            kernel.func,
            symbols[kernel.run.name],
            None if kernel.prepare is None else symbols[kernel.prepare.name],
        )
        for name, kernel in lowered.kernels.items()
    }


def _symbols(artifact: ProgramArtifact, lowered: LoweredProgram) -> dict[str, str]:
    """Symbols of the functions of the lowered program, by name."""
    names = [func.name for func in lowered.program.functions]
    return {name: entry.symbol for name, entry in zip(names, artifact.kernels, strict=True)}


def _kernel_report(
    name: str, artifact: ProgramArtifact, lowered: LoweredProgram, check: KernelCheck | None
) -> KernelReport:
    kernel = lowered.kernels[name]
    labels = [step.label for step in lowered.program.launches if step.function == name]
    verdict = kernel.lowered.verdict
    return KernelReport(
        name=name,
        symbol=_symbols(artifact, lowered)[name],
        labels=tuple(labels),
        rule=kernel.lowered.rule,
        origin=kernel.lowered.schedule.origin,
        proof=str(verdict).splitlines()[0],
        proof_seconds=verdict.milliseconds / 1e3,
        check="off" if check is None else check.verdict,
        check_seconds=0.0 if check is None else check.seconds,
        error=None if check is None else check.error,
    )
