"""Backend: what builds and runs code for the targets of one kind, as one value.

Clients find it by `table.backend_of` and ask it for what they need; none asks a target what it is.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Protocol

from ...runtime.engine.engine_code import EngineCode, Sections
from ...runtime.engine.parts import EngineParts
from ...tir.json_reader import Reader
from ...tir.target.target import Target
from ..jobs import KernelJob, ProgramJob

if TYPE_CHECKING:  # loading an engine needs a back end, and no kernels
    from ...runtime.kernel import Kernel
    from ..tuning.tuner import Tuner


class Backend(Protocol):
    """What builds and runs code for the targets of one kind."""

    def __hash__(self) -> int: ...  # it is a value

    @property
    def is_emulated(self) -> bool:
        """Whether the CPU emulates the device that its code is for: verify="emulated"."""
        ...

    @property
    def tuner(self) -> Tuner[Any] | None:  # of its own artifacts
        """How candidates are tuned; None where nothing can be timed."""
        ...

    def complete(self, target: Target) -> Target:
        """An open target with what it does not give as this machine has it. Raises: TargetError;
        NoDevice.
        """
        ...

    def why_not_run(self, target: Target) -> str | None:
        """Why this machine does not run its code, in words that follow its name; None: it does."""
        ...

    def stamp(self, target: Target) -> str:
        """What compiles for a target here, and what checks it: an engine that is kept in the cache
        is for that alone.
        """
        ...

    def warm_up(self, target: Target) -> None:
        """Begin to make, beside the caller, what its builds need whatever they are of."""
        ...

    def build(self, job: KernelJob) -> Kernel:
        """The kernel of a function. Raises: as `tw.build`."""
        ...

    def build_program(self, job: ProgramJob) -> EngineParts:
        """The parts of an engine of a program. Raises: as `build_program`."""
        ...

    def read_code(self, data: Reader, sections: Sections, compiler: str) -> EngineCode:
        """An engine's code from its file. Raises: IRError; Malformed."""
        ...


def given_over(base: Target, target: Target) -> Target:
    """A complete target with what an open one gives, such as its threads, in place of its own."""
    given = {f.name: value for f in fields(target) if (value := getattr(target, f.name))}
    return replace(base, **given)
