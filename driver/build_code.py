"""The code of a program: its functions are lowered and proved, compiled while others are lowered,
and checked; a given schedule whose kernel fails its check gives way to that of the rule.

What compiles, and how its result is run for a check, is for each back end to say (`Compiling`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from ..runtime.report import KernelReport
from ..schedule.source import ScheduleSource
from ..tir.program import Program
from ..tir.target import Target
from .check_budget import unchecked_because
from .check_program import KernelCheck, ProgramCheckError
from .clock import Clock
from .lower_program import LoweredKernel, LoweredProgram, lower_program


class Compiled(Protocol):
    """A program whose kernels are compiled. seconds: of all compilers, as they ran side by side."""

    @property
    def seconds(self) -> float:
        """Of all compilers, as if they had run one after the other."""
        ...

    def symbol(self, kernel: LoweredKernel) -> str:
        """What the code of a kernel is called."""
        ...

    def check(self, kernel: LoweredKernel) -> KernelCheck:
        """Run a kernel once beside its reference."""
        ...


C_co = TypeVar("C_co", bound=Compiled, covariant=True)


class Compiling(Protocol[C_co]):
    """A program on its way to its compiled form. seconds: what `add` and those before it took."""

    seconds: list[tuple[str, float]]

    def add(self, kernel: LoweredKernel) -> None:
        """Write a kernel, and let it be compiled."""
        ...

    def finish(self, lowered: Program) -> C_co:
        """The compiled program. Raises: CompileFailed."""
        ...


@dataclass(frozen=True, slots=True)
class Code(Generic[C_co]):
    """The code of a program, checked, and what is reported of it."""

    compiled: C_co
    kernels: tuple[KernelReport, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CodeOptions:
    """How code is made.

    source: schedules; strict: no contraction, no re-association. unchecked: what the report says of
    kernels that are not checked, and why; None: all are. compiler: what compiles them is called.
    """

    source: ScheduleSource | None
    strict: bool
    unchecked: str | None
    compiler: str


def build_code(
    program: Program,
    target: Target,
    options: CodeOptions,
    compiling: Callable[[], AbstractContextManager[Compiling[C_co]]],
    clock: Clock,
) -> Code[C_co]:
    """Lower, compile and check. What was lowered is let go with it.

    Raises: ScheduleError, TargetError, CompileFailed; ProgramCheckError.
    """
    known: dict[str, LoweredKernel] = {}
    by_rule: frozenset[str] = frozenset()
    notes: list[str] = []
    while True:
        with compiling() as ahead:
            lowered = lower_program(
                program,
                target,
                source=options.source,
                strict=options.strict,
                by_rule=by_rule,
                known=known,
                made=ahead.add,
            )
            clock.lap("lower", ahead.seconds)
            known = {key: kernel.counted() for key, kernel in known.items()}
            compiled = ahead.finish(lowered.program)
        clock.lap(f"wait for {options.compiler}")
        clock.add(f"{options.compiler}, beside the others", compiled.seconds)
        checks: dict[str, KernelCheck] = {}
        if options.unchecked is None:
            checks = {name: _check(compiled, kernel) for name, kernel in lowered.kernels.items()}
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
    unchecked = KernelCheck(options.unchecked or "", None, 0.0)
    labels: dict[str, list[str]] = {name: [] for name in lowered.kernels}
    for launch in lowered.program.launches:
        labels[launch.function].append(launch.label)
    kernels = tuple(
        _report(name, lowered, compiled.symbol(kernel), checks.get(name, unchecked), labels[name])
        for name, kernel in lowered.kernels.items()
    )
    return Code(compiled, kernels, tuple(notes))


def _check(compiled: Compiled, kernel: LoweredKernel) -> KernelCheck:
    """The check of one kernel, where it is not too large."""
    unchecked = unchecked_because(kernel.func)
    return compiled.check(kernel) if unchecked is None else KernelCheck(unchecked, None, 0.0)


def _report(
    name: str, lowered: LoweredProgram, symbol: str, check: KernelCheck, labels: Sequence[str]
) -> KernelReport:
    kernel = lowered.kernels[name].lowered
    return KernelReport(
        name=name,
        symbol=symbol,
        labels=tuple(labels),
        rule=kernel.rule,
        origin=kernel.schedule.origin,
        proof=str(kernel.verdict).splitlines()[0],
        proof_seconds=kernel.verdict.milliseconds / 1e3,
        check=check.verdict,
        check_seconds=check.seconds,
        error=check.error,
    )
