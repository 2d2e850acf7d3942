"""CudaProgram: what CUDA code generation hands to the runtime for a whole model, as one value.

Each kernel is a source of its own; what a run does are steps over slices, as of any program. All
slices of the arena lie in one allocation: `arena_bytes` of tensors, then `workspace_bytes` of what
kernels need between their own launches.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...tir.program.program import Launch, ProgramCheck, Slice, Step, Sync
from ...tir.target import Target
from ..artifact import Parameter
from .artifact import CudaArtifact, Part

ALIGNMENT = 256  # bytes, of every array that has its place in another's memory
PREPARE = ".prepare"  # what is added to a kernel's name where the part `prepare` of it is launched


@dataclass(frozen=True, slots=True)
class CudaProgram:
    """A model as CUDA C.

    constants: all of them; role "constant" (bound at build) or "prepared" (computed by `prepare`,
    on the device, before the first run). read: the positions of those that a run reads.
    kernels: every function that a launch names, each once, by name; see `part`.
    body: what a run does; prepare: what computes the prepared constants, in order. The arguments of
    a launch are the slices of its part's parameters, then those of its temporaries; slices of the
    space "constant" count in `constants`.
    """

    name: str
    target: Target
    inputs: tuple[Parameter, ...]
    constants: tuple[Parameter, ...]
    read: tuple[int, ...]
    outputs: tuple[Parameter, ...]
    kernels: tuple[CudaArtifact, ...]
    body: tuple[Step, ...]
    prepare: tuple[Launch, ...] = ()
    arena_bytes: int = 0
    workspace_bytes: int = 0

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The launches of a run, in order."""
        return tuple(step for step in self.body if isinstance(step, Launch))

    @property
    def bound(self) -> tuple[int, ...]:
        """The constants that somebody has to give: those that a launch reads and none computes."""
        launched = {
            item.position
            for step in (*self.body, *self.prepare)
            for item in slices_of(step)
            if item.space == "constant"
        }
        return tuple(n for n in sorted(launched) if self.constants[n].role == "constant")

    @property
    def passing(self) -> tuple[int, ...]:
        """The constants that `prepare` alone touches: the device needs them until it has run."""
        touched = {item.position for launch in self.prepare for item in slices_of(launch)}
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
    def checks(self) -> tuple[ProgramCheck, ...]:
        """The checks of indices that a run makes, in order."""
        return tuple(
            ProgramCheck(launch.label or launch.function, parameter.check, word)
            for launch in self.launches
            for parameter, word in zip(
                self.part(launch.function).parameters, launch.arguments, strict=False
            )
            if parameter.check is not None
        )

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

    def places(self, launch: Launch) -> dict[str, Slice]:
        """Where the parameters and temporaries of a launch lie, by name."""
        return dict(zip(self.part(launch.function).names, launch.arguments, strict=True))

    def written(self, step: Step) -> tuple[Slice, ...]:
        """The slices that a step writes."""
        match step:
            case Launch():
                part, places = self.part(step.function), self.places(step)
                return tuple(places[name] for name in part.written)
            case Sync():
                return ()
        return (step.target,)


def aligned(size: int) -> int:
    """Bytes up to where the next array may begin."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def slices_of(step: Step) -> tuple[Slice, ...]:
    """The slices that a step touches."""
    match step:
        case Launch():
            return step.arguments
        case Sync():
            return ()
    return (step.source, step.target)
