"""Kernels go to the C compiler while the next ones are still being lowered.

Which of them share a translation unit depends on their order and length alone.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cached_property

from ..codegen.c.program import KernelTexts, emit_program
from ..codegen.c.program_source import declarations, unit_source
from ..codegen.program_artifact import ProgramArtifact
from ..runtime.arrays import NO_SIZES
from ..runtime.cpu.pool import pool_object, use_pool
from ..runtime.cpu.program_code import NativeProgram
from ..runtime.engine.cpu_code import CpuCode
from ..runtime.engine.engine_code import Constants
from ..runtime.machine.host import allowed_cpus, why_not_run
from ..runtime.toolchain.compile import Units
from ..runtime.toolchain.library import SharedObject
from ..tir.dim import Dim
from ..tir.program.program import Program
from ..tir.target.target import Target
from .check.check_process import CheckedObject, CheckJob, CheckProcess
from .check.engine_runs import ThreadedRuns
from .check.program import KernelCheck, KernelChecker
from .lower_program import LoweredKernel

# Characters of a translation unit: gcc takes half a second for as many, and 50 ms for the first.
UNIT = 1 << 16
FEW = 8  # kernels that one process checks in the time that another one takes to start


class CompiledC:
    """A program as C, and the object of it."""

    def __init__(
        self,
        artifact: ProgramArtifact,
        shared: SharedObject,
        symbols: Mapping[str, str],
        beside: CheckProcess | None = None,
    ) -> None:
        """symbols: of the entries of its functions, by name. beside: checks kernels, too."""
        self.artifact = artifact
        self.shared = shared
        self._symbols = symbols
        self._beside = beside

    @property
    def seconds(self) -> float:
        """Of all compilers, as if they had run one after the other."""
        return self.shared.seconds

    @property
    def not_run(self) -> str | None:
        """Why nothing is checked: the processor lacks the instructions."""
        why = why_not_run(self.artifact.target)
        return None if why is None else f"not run: for {self.artifact.target}, {why}"

    def symbol(self, kernel: LoweredKernel) -> str:
        """The kernel's entry."""
        return self._symbols[kernel.run.name]

    def checks(self, kernels: Mapping[str, LoweredKernel]) -> dict[str, KernelCheck]:
        """Run kernels once beside their references."""
        jobs = {name: self._job(kernel) for name, kernel in kernels.items()}
        checker = KernelChecker(self.artifact, self.shared)
        if self._beside is None:
            return {name: job.run(checker) for name, job in jobs.items()}
        return self._beside.checks(CheckedObject(self.artifact, self.shared), checker, jobs)

    def _job(self, kernel: LoweredKernel) -> CheckJob:
        prepare = None if kernel.prepare is None else self._symbols[kernel.prepare.name]
        return CheckJob(kernel.func, self.symbol(kernel), prepare, kernel.strict)

    @cached_property
    def code(self) -> CpuCode:
        """The C and its object, with the pool that runs it."""
        return CpuCode(self.artifact, self.shared, pool_object())

    def engine_runs(
        self, constants: Constants, program: Program, sizes: Mapping[Dim, int] = NO_SIZES
    ) -> ThreadedRuns | str:
        """On threads of this machine."""
        if self.not_run is not None:
            return self.not_run
        pool = self.code.pool
        assert pool is not None
        use_pool(pool)
        return ThreadedRuns(NativeProgram(self.artifact, self.shared, constants), sizes)


class CompileAhead:
    """The kernels of one program, written and compiled as they come."""

    def __init__(self, name: str, target: Target, units: Units, *, checks: bool = False) -> None:
        """For the program called `name`. checks: its kernels will be checked."""
        self.texts = KernelTexts(name, target)
        self.seconds: list[tuple[str, float]] = []  # of lowering and writing, by their parts
        self._name = name
        self._target = target
        self._units = units
        self._waiting: list[str] = []
        self._features: set[str] = set()
        self._unchecked = 0 if checks and why_not_run(target) is None else None
        self._beside: CheckProcess | None = None

    def __enter__(self) -> CompileAhead:
        return self

    def __exit__(self, *error: object) -> None:
        self._units.__exit__()

    def add(self, kernel: LoweredKernel) -> None:
        """Write a kernel, its schedule in a comment, and compile it when a unit is full."""
        began = time.perf_counter()
        self.seconds += kernel.seconds
        self._expect(kernel)
        for func in kernel.functions:
            trace = kernel.steps if func is kernel.run else ()
            made = self.texts.add(func, "\n".join(trace))
            self._waiting.append(made.text)
            self._features.update(made.target.features)
        if sum(map(len, self._waiting)) >= UNIT:
            self._compile()
        self.seconds.append(("write", time.perf_counter() - began))

    def finish(self, lowered: Program) -> CompiledC:
        """The object of all kernels and the program's entry. Raises: CompileFailed."""
        artifact = emit_program(lowered, self._target, texts=self.texts)
        self._waiting += (declarations(artifact), artifact.main)
        self._compile()
        shared = self._units.link()
        names = (func.name for func in lowered.functions)
        symbols = {n: entry.symbol for n, entry in zip(names, artifact.kernels, strict=True)}
        return CompiledC(artifact, shared, symbols, self._beside)

    def _expect(self, kernel: LoweredKernel) -> None:
        """Start what checks beside this process, once there is enough for both."""
        if self._unchecked is None or kernel.check is not None or self._beside is not None:
            return
        self._unchecked += 1
        if self._unchecked == FEW and allowed_cpus() > 1:
            self._beside = CheckProcess()

    def _compile(self) -> None:
        target = self._target.using(self._features)
        self._units.add(unit_source(self._name, target, self._waiting), target)
        self._waiting.clear()
        self._features.clear()
