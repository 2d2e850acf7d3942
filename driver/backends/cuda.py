"""The back end "cuda": CUDA C, compiled by NVRTC, which runs on the GPU of this machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...runtime.cuda.device import availability
from ...runtime.engine.engine_code import Sections
from ...runtime.engine.gpu_code import GpuCode
from ...runtime.engine.parts import EngineParts
from ...tir.json_reader import Reader
from ...tir.target.target import Target
from ..jobs import KernelJob, ProgramJob
from .backend import Backend, given_over

if TYPE_CHECKING:
    from ...codegen.cuda.artifact import CudaArtifact
    from ...codegen.lower.split_prepare import Prepared
    from ...runtime.arrays import Array
    from ...runtime.kernel import Kernel
    from ...runtime.kernel_code import Code
    from ..tuning.cuda_tuner import CudaTuner


class CudaBackend:
    """Targets of GPUs. What builds is imported by the method that does, as in c.py."""

    is_emulated = True

    def complete(self, target: Target) -> Target:
        """The target with the architecture of the GPU that is here. Raises: NoDevice."""
        found = availability.availability()
        if isinstance(found, availability.Unavailable):
            raise found.error()
        return given_over(Target("cuda", found.devices[0].arch), target)

    def warm_up(self, target: Target) -> None:
        """There is nothing to make."""

    def build(self, job: KernelJob) -> Kernel:
        """A kernel of CUDA C, which is compiled and loaded at its first run."""
        from ..build_kernel import build_kernel

        return build_kernel(self, job)

    def build_program(self, job: ProgramJob) -> EngineParts:
        """The parts of an engine for a GPU, which need not be here: what depends on constants alone
        is computed there, before the first run.
        """
        from ...codegen.cuda.program import check_flat
        from ..build_parts import build_parts
        from ..compile_ahead_cuda import CheckedOn, CompileAheadCuda

        check_flat(job.program)  # before anything is compiled
        target = job.target
        checked_on: CheckedOn = "emulation" if job.options.verify == "emulated" else "device"
        return build_parts(job, "nvrtc", lambda: CompileAheadCuda(target, checked_on))

    def read_code(self, data: Reader, sections: Sections, compiler: str) -> GpuCode:
        """An engine's code from its file."""
        return GpuCode.read(data, sections, compiler)

    @property
    def tuner(self) -> CudaTuner:
        """How candidates are tuned."""
        from ..tuning.cuda_tuner import CudaTuner

        return CudaTuner()

    def why_not_run(self, target: Target) -> str | None:
        """Why no GPU runs its code here; None: one does."""
        found = availability.availability()
        return "no GPU" if isinstance(found, availability.Unavailable) else None

    def stamp(self, target: Target) -> str:
        """NVRTC, and the GPU on which kernels were checked."""
        from ...runtime.cuda.toolchain.nvrtc import NvrtcNotFound, find_nvrtc

        try:
            compiler = find_nvrtc().identity
        except NvrtcNotFound:
            compiler = ""
        found = availability.availability()
        device = "" if isinstance(found, availability.Unavailable) else found.devices[0].name
        return f"{compiler} {device}"

    def write(self, parts: Prepared, target: Target, notes: str = "") -> CudaArtifact:
        """A lowered function as CUDA C. Raises: TargetError for what a grid cannot run."""
        from ...codegen.cuda.build import write_cuda

        return write_cuda(parts, target, notes=notes)

    def load(
        self, artifact: CudaArtifact, constants: Mapping[str, object]
    ) -> tuple[Code, Mapping[str, Array]]:
        """What runs the artifact on the first GPU, and the arrays that its constants are."""
        from ...runtime.cuda.device.code import DeviceCode
        from ...runtime.kernel import accept_constants

        bound = accept_constants(artifact, constants)
        return DeviceCode(artifact, bound), bound


CUDA: Backend = CudaBackend()
