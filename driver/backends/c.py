"""The back end "c": C, compiled by the C compiler of this machine, or written for another one's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...runtime.engine.cpu_code import CpuCode
from ...runtime.engine.engine_code import Sections
from ...runtime.engine.parts import EngineParts
from ...runtime.machine.host import host_target, why_not_run
from ...tir.json_reader import Reader
from ...tir.target.target import Target
from ..jobs import KernelJob, ProgramJob
from .backend import Backend, given_over

if TYPE_CHECKING:
    from ...codegen.artifact import Artifact
    from ...codegen.lower.split_prepare import Prepared
    from ...runtime.arrays import Array
    from ...runtime.kernel import Kernel
    from ...runtime.kernel_code import Code
    from ..tuning.c_tuner import CTuner


class CBackend:
    """Targets of CPUs. What builds is imported by the method that does: loading an engine, which
    asks for a back end too, needs none of it.
    """

    is_emulated = False

    def complete(self, target: Target) -> Target:
        """The target with what it does not give as this machine's CPU has it."""
        return given_over(host_target(), target)

    def warm_up(self, target: Target) -> None:
        """The header of intrinsics and the thread pool."""
        from ..warm_up import begin_warm_up

        begin_warm_up(target)

    def build(self, job: KernelJob) -> Kernel:
        """A kernel of compiled C; of C alone where another processor is meant."""
        from ..build_kernel import build_kernel

        return build_kernel(self, job)

    def build_program(self, job: ProgramJob) -> EngineParts:
        """The parts of an engine of one object."""
        from ...runtime.toolchain.compile import Units
        from ..build_parts import build_parts
        from ..compile_ahead import CompileAhead
        from ..kept_kernels import CachedKernels

        name, target, options = job.program.name, job.target, job.options
        kept = None
        if options.keep_kernels and job.source is None:
            stamp = self.stamp(target)
            kept = CachedKernels(target, stamp, strict=options.strict, allow=options.allow)

        def compiling() -> CompileAhead:
            return CompileAhead(name, target, Units("model"), checks=options.checks_kernels)

        return build_parts(job, "cc", compiling, kept)

    def read_code(self, data: Reader, sections: Sections, compiler: str) -> CpuCode:
        """An engine's code from its file."""
        return CpuCode.read(data, sections, compiler)

    @property
    def tuner(self) -> CTuner:
        """How candidates are tuned."""
        from ..tuning.c_tuner import CTuner

        return CTuner()

    def why_not_run(self, target: Target) -> str | None:
        """Why this machine does not run its code, in words that follow its name; None: it does."""
        return why_not_run(target)

    def stamp(self, target: Target) -> str:
        """The C compiler, and why kernels were not checked, if they were not."""
        from ...runtime.toolchain.compiler_stamp import compiler_stamp

        return f"{compiler_stamp()} {self.why_not_run(target)}"

    def write(self, parts: Prepared, target: Target, notes: str = "") -> Artifact:
        """A lowered function as C."""
        from ...codegen.c.build import write_artifact

        return write_artifact(parts, target, notes=notes)

    def load(
        self, artifact: Artifact, constants: Mapping[str, object]
    ) -> tuple[Code, Mapping[str, Array]]:
        """What runs the artifact, compiled, and the arrays that its constants are bound to."""
        from ...runtime.cpu.native import NativeCode
        from ...runtime.engine.foreign import ForeignCode
        from ...runtime.kernel import accept_constants
        from ...runtime.toolchain.compile import compile_shared

        if self.why_not_run(artifact.target) is not None:
            return ForeignCode(artifact), {}
        shared = compile_shared(artifact.source, artifact.target, name=artifact.name)
        bound = accept_constants(artifact, constants)
        return NativeCode.load(artifact, shared, bound), bound


C: Backend = CBackend()
