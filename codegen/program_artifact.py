"""What code generation hands to the runtime for a whole model, as one value.

The object of a ProgramArtifact defines one entry, `symbol`, that runs the model, and the entries of
its kernels, which the model's entry calls; checks and the profiler call them one by one. All have
the type that artifact.py states. The arguments of the model's entry are the pointers of the inputs,
of the constants that it reads, of the outputs; then the sizes that the call decides, each an
integer as wide as a pointer; then scratch memory: the arena, then the workspace, then each thread's
workspace.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol, Self

from ..tir.dim import Dim
from ..tir.program.program import (
    Branch,
    Launch,
    Program,
    ProgramCheck,
    ProgramTensor,
    ReadSize,
    Repeat,
    Slice,
    Step,
    Sync,
    kept_words,
    launches_of,
    sizes_read,
)
from ..tir.program.steps_at import steps_at
from ..tir.sizes import dims_in, shape_with
from ..tir.target.target import Target
from .artifact import Entry, Parameter


class HasInterface(Protocol):
    """A whole model, whichever back end wrote it."""

    @property
    def name(self) -> str:
        """The model's name."""

    @property
    def inputs(self) -> tuple[Parameter, ...]:
        """What a run takes."""

    @property
    def outputs(self) -> tuple[Parameter, ...]:
        """What a run gives."""


@dataclass(frozen=True, slots=True)
class Scratch:
    """Scratch memory of a run on some threads: `bytes + threads * thread_bytes`, behind the arena
    where it says where something begins.
    """

    bytes: int
    thread_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EmittedProgram(ABC):
    """A model as a back end wrote it: what a run takes, gives and does.

    constants: all of them; role "constant" (bound at build) or "prepared" (computed by `prepare`).
    read: the positions of those that a run reads. body: what a run does; slices of the space
    "constant" count in `constants`. prepare: launches that compute the prepared constants, once, in
    order. arena_bytes, workspace_bytes: scratch memory of a run, and of its kernels behind it.
    """

    name: str
    target: Target
    inputs: tuple[Parameter, ...]
    constants: tuple[Parameter, ...]
    read: tuple[int, ...]
    outputs: tuple[Parameter, ...]
    body: tuple[Step, ...]
    prepare: tuple[Launch, ...] = ()
    arena_bytes: int = 0
    workspace_bytes: int = 0

    @abstractmethod
    def kernel_parameters(self, function: str) -> tuple[Parameter, ...]:
        """The parameters of what a launch of `function` runs; KeyError where there is none. A
        launch hands it slices for these first.
        """

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The sizes that a call decides: those of the inputs, in their order."""
        return dims_in(size for parameter in self.inputs for size in parameter.shape)

    @property
    def sizes_read(self) -> tuple[ReadSize, ...]:
        """The sizes that a run computes, and where they lie when it has run."""
        return sizes_read(self.body)

    @property
    def all_dims(self) -> tuple[Dim, ...]:
        """The sizes that a call decides, and those that a run computes."""
        computed = [step.dim for step in self.sizes_read]
        given = dims_in(size for parameter in self.outputs for size in parameter.shape)
        return tuple(dict.fromkeys((*self.dims, *computed, *given)))

    def at(self, values: Mapping[Dim, int]) -> Self:
        """What it takes, gives and does at these sizes; those that a run computes stay."""
        if not self.dims:
            return self
        inputs, outputs = (
            tuple(replace(p, shape=shape_with(p.shape, values)) for p in parameters)
            for parameters in (self.inputs, self.outputs)
        )
        return replace(self, inputs=inputs, outputs=outputs, body=steps_at(self.body, values))

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The launches of a run, in order, those within branches and loops once each."""
        return launches_of(self.body)

    @property
    def bound(self) -> tuple[int, ...]:
        """The constants that somebody has to give: those that a run or `prepare` reads and that
        nothing computes.
        """
        needed = sorted({*self.read, *constants_of((*self.body, *self.prepare))})
        return tuple(n for n in needed if self.constants[n].role == "constant")

    @property
    def checks(self) -> tuple[ProgramCheck, ...]:
        """The checks of indices that a run makes, in order."""
        kept = kept_words(self.body)
        return tuple(
            ProgramCheck(launch.label or launch.function, parameter.check, kept.get(word, word))
            for launch in self.launches
            for parameter, word in zip(
                self.kernel_parameters(launch.function), launch.arguments, strict=False
            )
            if parameter.check is not None
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramArtifact(EmittedProgram):
    """A model as C text; launches name symbols.

    symbol: the model's entry, which does `body` and takes the constants `read` in that order.
    kernels: every function that a launch names, by symbol; texts: the C definitions of each; main:
    those of the model's entry. `c.program_source` makes whole sources of them.
    scratch: where the scratch memory of each launch of `body` begins; () where a file from before
    does not say. arena_bytes, workspace_bytes, thread_workspace_bytes: the parts of its scratch
    memory, each a multiple of 64.
    """

    symbol: str
    kernels: tuple[Entry, ...]
    texts: tuple[str, ...]
    main: str
    scratch: tuple[Scratch, ...] = ()
    thread_workspace_bytes: int = 0

    @property
    def entry(self) -> Entry:
        """The entry that runs the model."""
        constants = (self.constants[position] for position in self.read)
        return Entry(
            self.symbol,
            (*self.inputs, *constants, *self.outputs),
            self.arena_bytes + self.workspace_bytes,
            self.thread_workspace_bytes,
        )

    def kernel_parameters(self, function: str) -> tuple[Parameter, ...]:
        """The parameters of the kernel whose symbol is `function`; KeyError where there is none."""
        return self.kernel(function).parameters

    def kernel(self, symbol: str) -> Entry:
        """The entry called `symbol`; KeyError when there is none."""
        for entry in self.kernels:
            if entry.symbol == symbol:
                return entry
        raise KeyError(symbol)

    def scratch_bytes(self, threads: int) -> int:
        """Bytes of scratch memory of a run on `threads` threads."""
        return self.arena_bytes + self.workspace_bytes + threads * self.thread_workspace_bytes


def parameters_with(role: str, tensors: Iterable[ProgramTensor]) -> tuple[Parameter, ...]:
    """The tensors of a program's interface as parameters of one role."""
    return tuple(Parameter(t.name, t.dtype, t.shape, role) for t in tensors)


def constant_parameters(program: Program) -> tuple[Parameter, ...]:
    """All constants of a program, bound or prepared."""
    prepared = program.prepared
    return tuple(
        Parameter(t.name, t.dtype, t.shape, "prepared" if position in prepared else "constant")
        for position, t in enumerate(program.constants)
    )


def constants_of(steps: Iterable[Step]) -> tuple[int, ...]:
    """The positions of the constants that steps touch, ascending."""
    slices = (item for step in steps for item in slices_of(step))
    return tuple(sorted({item.position for item in slices if item.space == "constant"}))


def slices_of(step: Step) -> tuple[Slice, ...]:
    """The slices that a step touches, with all within it."""
    match step:
        case Launch():
            return step.arguments
        case Sync():
            return ()
        case Branch():
            inside = (*step.then, *step.otherwise)
            return (step.condition, *(item for one in inside for item in slices_of(one)))
        case Repeat():
            return (*step.before_first, *(item for one in step.body for item in slices_of(one)))
    return step.effects.touched
