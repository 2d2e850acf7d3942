"""The code of a program: its functions are lowered and proved, compiled while others are lowered,
and checked; a schedule that is refused, or whose kernel fails its check, gives way to the next one.

What compiles, and how its result is run for a check, is for each back end to say (`Compiling`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from ..runtime.arrays import NO_SIZES
from ..runtime.engine.engine_code import Constants, EngineCode
from ..runtime.model.report import KernelReport
from ..schedule.source import ScheduleSource
from ..schedule.verdict import UNKNOWN
from ..tir.dim import Dim
from ..tir.program.program import Program
from ..tir.target.target import Target
from .check.blas_threads import fewer_blas_threads
from .check.budget import unchecked_because
from .check.chain import changed_kernels
from .check.clock import Clock
from .check.engine_runs import EngineRuns
from .check.program import KernelCheck, ProgramCheckError
from .check.unproved import ProofError, unproved
from .check.ways import Ways
from .kept_kernels import CachedKernels
from .lower_program import LoweredKernel, LoweredProgram, lower_program


class CompiledProgram(Protocol):
    """A program whose kernels are compiled."""

    @property
    def code(self) -> EngineCode:
        """The program's code as a value."""
        ...

    @property
    def seconds(self) -> float:
        """Of all compilers, as if they had run one after the other."""
        ...

    @property
    def not_run(self) -> str | None:
        """What the report says of its kernels where this machine cannot run them; None: it can."""
        ...

    def symbol(self, kernel: LoweredKernel) -> str:
        """What the code of a kernel is called."""
        ...

    def checks(self, kernels: Mapping[str, LoweredKernel]) -> dict[str, KernelCheck]:
        """Run kernels once beside their references; what is found of each, by name."""
        ...

    def engine_runs(
        self, constants: Constants, program: Program, sizes: Mapping[Dim, int] = NO_SIZES
    ) -> EngineRuns | str:
        """How the whole is run for its check, or why it is not. program: before schedules; sizes:
        of what a run decides.
        """
        ...


class Compiling(Protocol):
    """A program on its way to its compiled form. seconds: what `add` and those before it took."""

    seconds: list[tuple[str, float]]

    def add(self, kernel: LoweredKernel) -> None:
        """Write a kernel, and let it be compiled."""
        ...

    def finish(self, lowered: Program) -> CompiledProgram:
        """The compiled program. Raises: CompileFailed."""
        ...


@dataclass(frozen=True, slots=True)
class ProgramTexts:
    """The code of a program, checked, and what is reported of it."""

    compiled: CompiledProgram
    kernels: tuple[KernelReport, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CodeOptions:
    """How code is made.

    source: schedules; strict: no contraction, no re-association. check: whether kernels are run
    beside their references, where this machine can. compiler: what compiles them is called.
    divisible: names of functions that the caller takes apart where the schedule of their rule is
    refused, or their kernel wrong. allow: instructions with a liberty that rules may use. kept:
    kernels of earlier builds; None: every kernel is made, and none is kept.
    """

    source: ScheduleSource | None
    strict: bool
    check: bool
    compiler: str
    divisible: frozenset[str] = frozenset()
    allow: tuple[str, ...] = ()
    kept: CachedKernels | None = None


def build_code(
    program: Program,
    target: Target,
    options: CodeOptions,
    compiling: Callable[[], AbstractContextManager[Compiling]],
    clock: Clock,
) -> ProgramTexts:
    """Lower, compile and check. What was lowered is let go with it.

    Raises: ProgramRefusedError, ProgramCheckError for what is divisible; for a function that no way
    is left for: ScheduleError, TargetError, InternalError, ProgramCheckError, and ProofError where
    its proof is undecided and nothing is checked; CompileFailed.
    """
    known: dict[str, LoweredKernel] = {}
    ways: dict[str, Ways] = {}
    while True:
        with compiling() as ahead:
            lowered = lower_program(
                program,
                target,
                source=options.source,
                strict=options.strict,
                allow=options.allow,
                divisible=options.divisible,
                known=known,
                ways=ways,
                made=ahead.add,
                kept=options.kept,
            )
            clock.lap("lower", ahead.seconds)
            known = {key: kernel.counted() for key, kernel in known.items()}
            compiled = ahead.finish(lowered.program)
        clock.lap(f"wait for {options.compiler}")
        clock.add(f"{options.compiler}, beside the others", compiled.seconds)
        unchecked = compiled.not_run if options.check else "off"
        checks = {} if unchecked is not None else _checks(compiled, lowered, target, options)
        clock.lap("check")
        failed = _failed(program, lowered, checks, unchecked)
        if failed is None:
            break
        if isinstance(failed.error, ProgramCheckError) and _divisible(
            failed.error.functions, lowered, options
        ):
            raise failed.error
        for name, reason in failed.reasons.items():
            key = lowered.kernels[name].key
            ways[key].give_up(reason, failed.error)
            del known[key]
    notes = [note for name, kernel in lowered.kernels.items() for note in kernel.notes(name)]
    notes += _keep(options.kept, lowered, checks)
    none = KernelCheck(unchecked or "", None, 0.0)
    labels: dict[str, list[str]] = {name: [] for name in lowered.kernels}
    for launch in lowered.program.launches:
        labels[launch.function].append(launch.label)
    kernels = tuple(
        _report(name, lowered, compiled.symbol(kernel), checks.get(name, none), labels[name])
        for name, kernel in lowered.kernels.items()
    )
    return ProgramTexts(compiled, kernels, tuple(notes))


@dataclass(frozen=True, slots=True)
class _Failed:
    """Kernels that cannot stay: why, by name; what is raised where no way is left for one."""

    reasons: dict[str, str]
    error: ProgramCheckError | ProofError


def _failed(
    program: Program,
    lowered: LoweredProgram,
    checks: Mapping[str, KernelCheck],
    unchecked: str | None,
) -> _Failed | None:
    """The kernels that failed their checks; those that were not run, and whose proof is undecided.

    unchecked: why none was run.
    """
    bad = {name: check.verdict for name, check in checks.items() if not check.ok}
    if bad:
        wrong = {f: bad[k] for f, k in lowered.kernel_of.items() if k in bad}
        reasons = {name: f"its kernel failed the check: {verdict}" for name, verdict in bad.items()}
        return _Failed(reasons, ProgramCheckError(program.name, wrong))
    ran = {name for name, check in checks.items() if check.error is not None}
    verdicts = {name: kernel.verdict for name, kernel in lowered.kernels.items() if name not in ran}
    error = unproved(verdicts, runs_here=unchecked in (None, "off"))
    if error is None:
        return None
    undecided = (name for name, verdict in verdicts.items() if verdict.status == UNKNOWN)
    return _Failed(dict.fromkeys(undecided, "its kernel is neither proved nor checked"), error)


def _divisible(wrong: Iterable[str], lowered: LoweredProgram, options: CodeOptions) -> bool:
    """Whether one of the functions that are wrong as their rules schedule them is to be taken
    apart.
    """
    names = options.divisible.intersection(wrong)
    kernels = (lowered.kernels[lowered.kernel_of[name]] for name in names)
    return any(kernel.origin == "rule" for kernel in kernels)


def _checks(
    compiled: CompiledProgram, lowered: LoweredProgram, target: Target, options: CodeOptions
) -> dict[str, KernelCheck]:
    """What is found of each kernel, or was found by an earlier build."""
    kernels = lowered.kernels
    new = {name: kernel for name, kernel in kernels.items() if kernel.check is None}
    known = {name: kernel.check for name, kernel in kernels.items() if kernel.check is not None}
    large = {name: why for name, kernel in new.items() if (why := unchecked_because(kernel.func))}
    left = {name: KernelCheck(why, None, 0.0) for name, why in large.items()}
    with fewer_blas_threads(1):
        run = compiled.checks({name: kernel for name, kernel in new.items() if name not in large})
        changed = changed_kernels(new, target, strict=options.strict)
    return known | run | left | changed


def _keep(
    kept: CachedKernels | None, lowered: LoweredProgram, checks: Mapping[str, KernelCheck]
) -> list[str]:
    """Keep what this build made; a line of what it found, if anything."""
    if kept is None:
        return []
    for name, kernel in lowered.kernels.items():
        check = checks.get(name)
        ran = check if check is not None and check.error is not None else None
        if not kernel.kept or (kernel.check is None and ran is not None):
            kept.put(kernel, ran)
    found = [kernel for kernel in lowered.kernels.values() if kernel.kept]
    checked = sum(kernel.check is not None for kernel in found)
    if not found:
        return []
    return [
        f"{len(found)} of {len(lowered.kernels)} kernels were lowered and proved by an earlier "
        f"build, {checked} of them checked"
    ]


def _report(
    name: str, lowered: LoweredProgram, symbol: str, check: KernelCheck, labels: Sequence[str]
) -> KernelReport:
    kernel = lowered.kernels[name]
    return KernelReport(
        name=name,
        symbol=symbol,
        labels=tuple(labels),
        rule=kernel.rule,
        origin=kernel.origin,
        state=kernel.state,
        proof=kernel.verdict.summary,
        proof_seconds=kernel.verdict.milliseconds / 1e3,
        check=check.verdict,
        check_seconds=check.seconds,
        error=check.error,
        check_ran=check.ran,
    )
