"""Kernels for a GPU go to NVRTC, each as a source of its own, while the next ones are still being
lowered; and how they are checked: on the GPU that is here, or emulated.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ..codegen.cuda.artifact import CudaArtifact
from ..codegen.cuda.build import write_cuda
from ..codegen.cuda.program import emit_program
from ..codegen.cuda.program_artifact import CudaProgram
from ..codegen.lower.split_prepare import Prepared
from ..runtime.arrays import NO_SIZES, Array
from ..runtime.cuda.device.availability import Unavailable, availability
from ..runtime.cuda.device.code import DeviceCode
from ..runtime.cuda.emulator.emulated_code import EmulatedCode, EmulationFailed
from ..runtime.cuda.toolchain.compile import Cubin
from ..runtime.cuda.toolchain.cubins import Cubins
from ..runtime.engine.engine_code import Constants
from ..runtime.engine.gpu_code import GpuCode
from ..runtime.kernel import Kernel
from ..runtime.kernel_code import Code
from ..tir.analysis.specialise import specialise
from ..tir.dim import Dim
from ..tir.instructions.warp_products import cut_terms
from ..tir.program.program import Program
from ..tir.reference.error_bound import sample_of
from ..tir.target.target import Target
from .check.budget import checked_sizes
from .check.check import Checker, CheckError
from .check.data import Draw, draw_arrays, draws_for
from .check.engine_runs import EngineRuns
from .check.gpu_engine_runs import device_runs, emulated_runs
from .check.program import KernelCheck
from .lower_program import LoweredKernel

CheckedOn = Literal["device", "emulation"]
NO_GPU = "not run: no GPU"  # of the check of a kernel


@dataclass(frozen=True, slots=True)
class CompiledCuda:
    """A program as CUDA C, and a cubin for each of its kernels.

    checked_on: what runs a kernel for its check.
    """

    artifact: CudaProgram
    cubins: tuple[Cubin, ...]
    checked_on: CheckedOn

    @property
    def code(self) -> GpuCode:
        """The CUDA C and its cubins."""
        return GpuCode(self.artifact, self.cubins)

    @property
    def seconds(self) -> float:
        """Of all compilers, as if they had run one after the other."""
        return sum(cubin.seconds for cubin in self.cubins)

    @property
    def no_gpu(self) -> str | None:
        """Why kernels that are to be checked on a GPU cannot be run on one; None: they can."""
        found = availability() if self.checked_on == "device" else None
        return found.reason if isinstance(found, Unavailable) else None

    @property
    def not_run(self) -> str | None:
        """Why nothing is checked: kernels run on a GPU, and none is here."""
        return None if self.no_gpu is None else NO_GPU

    def symbol(self, kernel: LoweredKernel) -> str:
        """The kernels that a run of it launches."""
        launches = self.artifact.part(kernel.run.name).launches
        return ", ".join(launch.kernel for launch in launches)

    def checks(self, kernels: Mapping[str, LoweredKernel]) -> dict[str, KernelCheck]:
        """Run kernels once beside their references, one after the other."""
        return {name: self._check(kernel) for name, kernel in kernels.items()}

    def _check(self, kernel: LoweredKernel) -> KernelCheck:
        """Run a kernel beside its reference, constants random too: on a device on data of every
        kind, emulated, which takes long, of one; at several choices of its sizes.
        """
        began, func = time.perf_counter(), kernel.func
        drawn = draw_arrays(func, Draw.NORMAL, np.random.default_rng(0))
        constants = {b.name: drawn[b.name] for b in func.constants}
        position = [made.name for made in self.artifact.kernels].index(kernel.run.name)
        artifact, cubin = self.artifact.kernels[position], self.cubins[position]
        draws = draws_for(func) if self.checked_on == "device" else (Draw.NORMAL,)
        code: Code | None = None
        verdict, error = "ok", None
        try:
            for number, sizes in enumerate(checked_sizes(func)):
                plain, made = specialise(func, sizes), artifact.at(sizes)
                if code is None or made.said:  # else it is the same at all sizes
                    code = self._code(made, constants, cubin)
                sample, cut = sample_of(plain), cut_terms(artifact.target)
                for draw in draws if number == 0 else (Draw.NORMAL,):
                    checker = Checker.of(plain, constants, draw, sample=sample, cut=cut)
                    error = max(error or 0.0, checker.check(Kernel(made, code)).ratio)
        except (CheckError, EmulationFailed) as failure:
            verdict = failure.message
        ran = f"{' and '.join(map(str, draws))} data on the {self.checked_on}"
        return KernelCheck(verdict, error, time.perf_counter() - began, ran)

    def _code(self, artifact: CudaArtifact, constants: Mapping[str, Array], cubin: Cubin) -> Code:
        """What runs a kernel for its check."""
        if self.checked_on == "device":
            return DeviceCode(artifact, constants, cubin)
        return EmulatedCode(artifact, constants)

    def engine_runs(
        self, constants: Constants, program: Program, sizes: Mapping[Dim, int] = NO_SIZES
    ) -> EngineRuns | str:
        """On the GPU that is here, or emulated. Raises: DeviceError."""
        if self.no_gpu is not None:
            return (
                f"not run: no GPU: {self.no_gpu}; verify='emulated' runs the engine on the CPU "
                "when it is built"
            )
        if self.checked_on == "device":
            return device_runs(self.artifact, self.cubins, constants, sizes)
        return emulated_runs(self.artifact, constants, program, sizes)


class CompileAheadCuda:
    """The kernels of one program, written and compiled as they come."""

    def __init__(self, target: Target, checked_on: CheckedOn) -> None:
        """Raises: NvrtcNotFound."""
        self.seconds: list[tuple[str, float]] = []  # of lowering and writing, by their parts
        self._target = target
        self._checked_on: CheckedOn = checked_on
        self._kernels: list[CudaArtifact] = []
        self._cubins = Cubins(target.isa)

    def __enter__(self) -> CompileAheadCuda:
        return self

    def __exit__(self, *error: object) -> None:
        self._cubins.__exit__()

    def add(self, kernel: LoweredKernel) -> None:
        """Write a kernel, its schedule in a comment, and let it be compiled. Raises: TargetError
        for what a grid cannot run.
        """
        began = time.perf_counter()
        self.seconds += kernel.seconds
        notes = "\n".join(kernel.steps)
        made = write_cuda(Prepared(kernel.prepare, kernel.run), self._target, notes=notes)
        made = replace(made, source=str(made.source))  # an engine keeps no statements
        self._kernels.append(made)
        self._cubins.add(made.source, made.name)
        self.seconds.append(("write", time.perf_counter() - began))

    def finish(self, lowered: Program) -> CompiledCuda:
        """The program and its cubins. Raises: CompileFailed."""
        artifact = emit_program(lowered, self._kernels, self._target)
        return CompiledCuda(artifact, self._cubins.made(), self._checked_on)
