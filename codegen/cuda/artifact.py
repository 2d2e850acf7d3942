"""What CUDA code generation hands to the runtime: one source, and the launches that make a call."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ...tir.dtype import DType
from ...tir.target import Target
from ..artifact import Parameter, Size

Dimensions = tuple[int, int, int]  # along x, y and z


@dataclass(frozen=True, slots=True)
class Launch:
    """One run of a kernel.

    grid: blocks; block: threads of each. arguments: what the kernel takes, in order, by name: of
    parameters and temporaries it takes the addresses. shared_bytes: of dynamic shared memory of a
    block.
    """

    kernel: str
    grid: Dimensions
    block: Dimensions
    arguments: tuple[str, ...]
    shared_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Temporary:
    """Device memory that a call needs between its launches."""

    name: str
    dtype: DType
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """Bytes of the whole array."""
        return prod(self.shape) * self.dtype.bytes


@dataclass(frozen=True, slots=True)
class Part:
    """Launches that run after each other.

    parameters: the arrays that they are handed, by name; temporaries: what lives between them.
    """

    parameters: tuple[Parameter, ...]
    launches: tuple[Launch, ...]
    temporaries: tuple[Temporary, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """What its launches name: the parameters, then the temporaries."""
        return (*(p.name for p in self.parameters), *(t.name for t in self.temporaries))

    @property
    def written(self) -> tuple[str, ...]:
        """Those of them that hold nothing before it runs."""
        results = (p.name for p in self.parameters if p.role == "output")
        return (*results, *(t.name for t in self.temporaries))


@dataclass(frozen=True, slots=True)
class CudaArtifact:
    """A function as CUDA C.

    run: a call: inputs, prepared constants and outputs. prepare: what computes, once, the
    parameters of role "prepared" from the constants; None where nothing depends on them alone.
    """

    name: str
    source: str
    target: Target
    run: Part
    prepare: Part | None = None

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The arrays of a call, and those that are bound before."""
        return self.run.parameters

    @property
    def sizes(self) -> tuple[Size, ...]:
        """The sizes that a call decides: none."""
        return ()
