"""Tuner: how a back end's candidates are written, compiled, sent and run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeVar

from ...codegen.artifact import Written
from ...codegen.lower.split_prepare import Prepared
from ...tir.json_reader import Json, Reader
from ...tir.target.target import Target
from .runner import Runner

Device = Literal["CPU", "GPU"]

W = TypeVar("W", bound=Written)


@dataclass(frozen=True, slots=True)
class Compiled:
    """A candidate's machine code, or what a back end has in its place.

    seconds: what compiling took. local_bytes: of a GPU's local memory, that a thread has where its
    registers do not do. origin: what a worker has to know of the machine code beside its bytes.
    """

    binary: bytes = field(repr=False)
    seconds: float
    local_bytes: int = 0
    origin: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Toolchain:
    """What a measurement is true for beside the target: the model of what runs candidates, what
    compiles them, what that is told, and the driver of a GPU.
    """

    machine: str
    compiler: str
    flags: tuple[str, ...] = ()
    driver: str = ""


class Tuner(Protocol[W]):
    """How candidates are tuned whose artifacts are of one type."""

    @property
    def device(self) -> Device:
        """What must be at rest while they are timed."""
        ...

    @property
    def least_evicted(self) -> int:
        """Bytes of constants that are taken in turn, or of memory that is written, from which a
        call finds its constants out of the caches.
        """
        ...

    def check_here(self, target: Target) -> None:
        """Refuse to measure here what this machine does not run. Raises: TargetError and, for a
        GPU, NoDevice, NvrtcNotFound, ToolNotFound.
        """
        ...

    def toolchain(self, target: Target) -> Toolchain:
        """What measures here for a target."""
        ...

    def write(self, parts: Prepared, target: Target) -> W:
        """The source of a lowered function. Raises: TargetError."""
        ...

    def compile(self, code: W, seconds: float) -> Compiled:
        """Compile a candidate in at most so many seconds.

        Raises: TuneError for one that cannot run; CompileFailed, CompileTimedOut, TargetError;
        where there is no compiler, CompilerNotFound, NvrtcNotFound, ToolNotFound.
        """
        ...

    def to_json(self, code: W) -> dict[str, Json]:
        """A candidate without its source; "target" is its target."""
        ...

    def from_json(self, data: Reader, source: str) -> W:
        """The candidate that `to_json` wrote, with its source. Raises: IRError."""
        ...

    def runner(self) -> Runner:
        """What runs candidates in a worker, which makes it once. Raises: NoDevice, DeviceError."""
        ...
