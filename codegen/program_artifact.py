"""ProgramArtifact: what code generation hands to the runtime for a whole model, as one value.

The object defines one entry, `symbol`, that runs the model, and the entries of its kernels, which
the model's entry calls; checks and the profiler call them one by one. All have the
type that artifact.py states. The arguments of the model's entry are the pointers of the inputs, of
the constants that it reads, of the outputs, and of scratch memory: the arena, then the workspace,
then each thread's workspace.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ..tir.program.program import Launch, ProgramCheck, Step
from ..tir.target import Target
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


@dataclass(frozen=True, slots=True)
class ProgramArtifact:
    """A model as C text.

    constants: all of them; role "constant" (bound at build) or "prepared" (computed by `prepare`).
    read: the positions of those that the model's entry takes, in the order of its arguments.
    kernels: every function that a launch names, by symbol; texts: the C definitions of each; main:
    those of the model's entry. `c.program_source` makes whole sources of them.
    body: what the model's entry does; launches name symbols, and slices of the space "constant"
    count in `constants`.
    prepare: launches that compute the prepared constants, to be run once, in order. scratch: where
    the scratch memory of each launch of `body` begins; () where a file from before does not say.
    arena_bytes, workspace_bytes, thread_workspace_bytes: the parts of its scratch memory, each a
    multiple of 64.
    """

    name: str
    symbol: str
    target: Target
    inputs: tuple[Parameter, ...]
    constants: tuple[Parameter, ...]
    read: tuple[int, ...]
    outputs: tuple[Parameter, ...]
    kernels: tuple[Entry, ...]
    texts: tuple[str, ...]
    main: str
    body: tuple[Step, ...]
    prepare: tuple[Launch, ...] = ()
    scratch: tuple[Scratch, ...] = ()
    arena_bytes: int = 0
    workspace_bytes: int = 0
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

    @property
    def bound(self) -> tuple[int, ...]:
        """The constants that somebody has to give: those that a run or `prepare` reads and that
        nothing computes.
        """
        given = (item.position for launch in self.prepare for item in launch.arguments)
        needed = sorted({*self.read, *given})
        return tuple(n for n in needed if self.constants[n].role == "constant")

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The launches of a run, in order."""
        return tuple(step for step in self.body if isinstance(step, Launch))

    @property
    def checks(self) -> tuple[ProgramCheck, ...]:
        """The checks of indices that a run makes, in order."""
        return tuple(
            ProgramCheck(launch.label or launch.function, parameter.check, word)
            for launch in self.launches
            for parameter, word in zip(
                self.kernel(launch.function).parameters, launch.arguments, strict=True
            )
            if parameter.check is not None
        )

    def kernel(self, symbol: str) -> Entry:
        """The entry called `symbol`; KeyError when there is none."""
        for entry in self.kernels:
            if entry.symbol == symbol:
                return entry
        raise KeyError(symbol)

    def scratch_bytes(self, threads: int) -> int:
        """Bytes of scratch memory of a run on `threads` threads."""
        return self.arena_bytes + self.workspace_bytes + threads * self.thread_workspace_bytes
