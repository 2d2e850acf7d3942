"""CudaProgram: what CUDA code generation hands to the runtime for a whole model, as one value.

Each kernel is a source of its own; what a run does are steps over slices, as of any program. All
slices of the arena lie in one allocation: `arena_bytes` of tensors, then `workspace_bytes` of what
kernels need between their own launches.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...tir.program.program import Copy, Launch, Slice
from ...tir.sizes import AnySize, closed
from ..artifact import Parameter
from ..program_artifact import EmittedProgram
from .artifact import CudaArtifact, KernelLaunch, Part

ALIGNMENT = 256  # bytes, of every array that has its place in another's memory
PREPARE = ".prepare"  # what is added to a kernel's name where the part `prepare` of it is launched


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaProgram(EmittedProgram):
    """A model as CUDA C; `prepare` runs on the device, before the first run.

    kernels: every function that a launch names, each once, by name; see `part`. The arguments of a
    launch are the slices of its part's parameters, then those of its temporaries.
    """

    kernels: tuple[CudaArtifact, ...]

    @property
    def passing(self) -> tuple[int, ...]:
        """The constants that `prepare` alone touches: the device needs them until it has run."""
        touched = {item.position for launch in self.prepare for item in launch.arguments}
        return tuple(sorted(touched - set(self.read)))

    @property
    def weights_bytes(self) -> int:
        """Bytes of the constants that a run reads, each where an array may begin."""
        return sum(aligned(self.constants[position].bytes) for position in self.read)

    @property
    def interface_bytes(self) -> int:
        """Bytes of the inputs and outputs on the device, each where an array may begin."""
        return sum(aligned(parameter.bytes) for parameter in (*self.inputs, *self.outputs))

    @property
    def source(self) -> str:
        """The sources of all kernels, one behind the other; each is compiled by itself."""
        return "\n".join(kernel.source for kernel in self.kernels)

    def kernel(self, name: str) -> CudaArtifact:
        """The kernel called `name`; KeyError when there is none."""
        for kernel in self.kernels:
            if kernel.name == name:
                return kernel
        raise KeyError(name)

    def part(self, function: str) -> Part:
        """What a launch of `function` runs; KeyError when there is no such kernel."""
        kernel = self.kernel(function.removesuffix(PREPARE))
        part = kernel.prepare if function.endswith(PREPARE) else kernel.run
        if part is None:
            raise KeyError(function)
        return part

    def kernel_parameters(self, function: str) -> tuple[Parameter, ...]:
        """The parameters of that part."""
        return self.part(function).parameters

    def places(self, launch: Launch) -> dict[str, Slice]:
        """Where the parameters and temporaries of a launch lie, by name."""
        return dict(zip(self.part(launch.function).names, launch.arguments, strict=True))

    def sizes(self, launch: Launch) -> dict[str, AnySize]:
        """The sizes that the kernels of a launch take, by name."""
        return dict(zip(self.part(launch.function).sizes, launch.sizes, strict=True))

    def launches_at(self, step: Launch) -> tuple[KernelLaunch, ...]:
        """The kernels that a launch runs, whose sizes are numbers: those that have blocks."""
        sizes = {name: closed(size) for name, size in self.sizes(step).items()}
        return self.part(step.function).launches_at(sizes)

    @property
    def steps(self) -> tuple[Launch | Copy, ...]:
        """The steps of a run but the Syncs, in order: none of them is a branch or a loop."""
        return tuple(step for step in self.body if isinstance(step, Launch | Copy))

    def written(self, step: Launch | Copy) -> tuple[Slice, ...]:
        """The slices that a step writes."""
        if isinstance(step, Copy):
            return (step.target,)
        part, places = self.part(step.function), self.places(step)
        return tuple(places[name] for name in part.written)


def aligned(size: int) -> int:
    """Bytes up to where the next array may begin."""
    return -(-size // ALIGNMENT) * ALIGNMENT
