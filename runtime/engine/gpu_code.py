"""A model's code for a GPU: CUDA C, and a cubin of each of its kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...codegen.cuda.plan_text import plan_text
from ...codegen.cuda.program_artifact import CudaProgram
from ...tir.json_reader import Json, Reader
from ...tir.program.program import Effects, Launch, launch_effects
from ..cuda.device.program import DeviceProgram
from ..cuda.program_json import cuda_program_from_json, cuda_program_to_json
from ..cuda.toolchain.compile import Cubin
from ..model.model import StoredModel
from ..model.report import MemoryPlan
from .context import ProgramCode
from .engine_code import Constants, Sections, texts_of
from .format import Malformed, cubin_section, cuda_section


@dataclass(frozen=True, slots=True)
class GpuCode:
    """CUDA C and cubins, one for each kernel of the artifact."""

    artifact: CudaProgram
    cubins: tuple[Cubin, ...]

    @property
    def source(self) -> str:
        """The sources of all kernels, one behind the other."""
        return self.artifact.source

    @property
    def plan(self) -> str:
        """The steps of a run, in order, their streams, and where their arrays lie."""
        return plan_text(self.artifact)

    @property
    def memory(self) -> MemoryPlan:
        """The device's memory that runs take; inputs and outputs have their place there too."""
        from ..model.arena import arena_tensors  # a run needs no map

        artifact = self.artifact
        return MemoryPlan(
            weights_bytes=artifact.weights_bytes,
            arena_bytes=artifact.arena_bytes,
            workspace_bytes=artifact.workspace_bytes + artifact.interface_bytes,
            thread_workspace_bytes=0,
            tensors=arena_tensors(artifact.body, self._effects),
        )

    def _effects(self, launch: Launch) -> Effects:
        """What a launch reads and writes, but for its temporaries."""
        parameters = self.artifact.part(launch.function).parameters
        named = replace(launch, arguments=launch.arguments[: len(parameters)])
        return launch_effects(parameters, named)

    @property
    def compiler(self) -> str:
        """NVRTC."""
        return self.cubins[0].compiler if self.cubins else ""

    @property
    def c_program(self) -> None:
        """None: CUDA C is no C."""
        return None

    @property
    def sufficient(self) -> tuple[tuple[int, ...], ...]:
        """The constants that are bound: the device computes the others."""
        return (self.artifact.bound,)

    def kernel_source(self, symbol: str) -> str:
        """The CUDA C of one kernel."""
        return self.artifact.kernel(symbol).source

    def prepared(self, constants: Constants) -> Constants:
        """The constants as they are: the device computes the others before its first run."""
        return constants

    def load(self, constants: Constants, plain: StoredModel | None) -> ProgramCode:
        """What runs it on the first GPU, which is looked for at the first run."""
        return DeviceProgram(self.artifact, self.cubins, constants)

    def emulated(self, constants: Constants, *, checked: bool) -> ProgramCode:
        """What runs it on the CPU. Raises: CompilerNotFound, CompileFailed; EmulationFailed."""
        from ..cuda.emulator.emulated_program import EmulatedProgram  # a device needs none

        return EmulatedProgram(self.artifact, constants, checked=checked)

    def to_json(self) -> Json:
        """The artifact without its texts."""
        return cuda_program_to_json(self.artifact)

    def sections(self) -> Iterator[tuple[str, bytes]]:
        """The sources and the cubins."""
        for number, kernel in enumerate(self.artifact.kernels):
            yield cuda_section(number), kernel.source.encode()
        for number, cubin in enumerate(self.cubins):
            yield cubin_section(number), cubin.image

    @staticmethod
    def read(data: Reader, sections: Sections, compiler: str) -> GpuCode:
        """The code in a file. Raises: IRError; Malformed where a cubin is missing."""
        artifact = cuda_program_from_json(data, texts_of(sections, cuda_section))
        names = [cubin_section(number) for number in range(len(artifact.kernels))]
        for name in names:
            if name not in sections:
                raise Malformed(f"the section '{name}' is missing.")
        return GpuCode(
            artifact,
            tuple(
                Cubin(kernel.name, artifact.target.isa, bytes(sections[name]), None, compiler, 0.0)
                for kernel, name in zip(artifact.kernels, names, strict=True)
            ),
        )
