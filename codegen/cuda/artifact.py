"""What CUDA code generation hands to the runtime: one source, and the launches that make a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from ...tir.dim import Dim
from ...tir.dtype import DType
from ...tir.target.target import Target
from ..artifact import Parameter, ToldSize

Dimensions = tuple[int, int, int]  # along x, y and z


@dataclass(frozen=True, slots=True)
class Stop:
    """Where a size that the call decides ends a grid: blocks along an axis (0 is x) from
    ceil((scale * size + offset) / step) on do nothing.
    """

    axis: int
    size: str
    scale: int
    step: int
    offset: int

    def blocks(self, sizes: Mapping[str, int]) -> int:
        """How many blocks do something."""
        return max(0, -(-(self.scale * sizes[self.size] + self.offset) // self.step))


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """One run of a kernel.

    grid: blocks, at the largest sizes; block: threads of each. arguments: what the kernel takes, in
    order, by name: of parameters and temporaries it takes the addresses, of sizes the values.
    shared_bytes: of dynamic shared memory of a block. stops: what ends the grid before.
    """

    kernel: str
    grid: Dimensions
    block: Dimensions
    arguments: tuple[str, ...]
    shared_bytes: int = 0
    stops: tuple[Stop, ...] = ()

    def at(self, sizes: Mapping[str, int]) -> KernelLaunch:
        """The launch at the sizes of a call, by their names: of the blocks that do something."""
        grid = list(self.grid)
        for stop in self.stops:
            grid[stop.axis] = min(grid[stop.axis], stop.blocks(sizes))
        return replace(self, grid=(grid[0], grid[1], grid[2]), stops=())


@dataclass(frozen=True, slots=True)
class Temporary:
    """Device memory that a call needs between its launches."""

    name: str
    dtype: DType
    shape: tuple[int, ...]

    @property
    def largest_shape(self) -> tuple[int, ...]:
        """Its shape."""
        return self.shape

    @property
    def bytes(self) -> int:
        """Bytes of the whole array."""
        return prod(self.shape) * self.dtype.bytes


@dataclass(frozen=True, slots=True)
class Part:
    """Launches that run after each other.

    parameters: the arrays that they are handed, by name; temporaries: what lives between them;
    sizes: what launches call the sizes of the artifact, in its order.
    """

    parameters: tuple[Parameter, ...]
    launches: tuple[KernelLaunch, ...]
    temporaries: tuple[Temporary, ...] = ()
    sizes: tuple[str, ...] = ()

    def launches_at(self, sizes: Mapping[str, int]) -> tuple[KernelLaunch, ...]:
        """The launches that do something at the sizes of a call, by their names here."""
        made = (launch.at(sizes) for launch in self.launches)
        return tuple(launch for launch in made if 0 not in launch.grid)

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
    sizes: that a call decides. said: those that no array of a call tells, by the names that
    launches have for them.
    """

    name: str
    source: str
    target: Target
    run: Part
    prepare: Part | None = None
    sizes: tuple[ToldSize, ...] = ()
    said: tuple[tuple[str, int], ...] = ()

    def at(self, values: Mapping[Dim, int]) -> CudaArtifact:
        """The artifact where the sizes that no array tells are known."""
        pairs = zip(self.run.sizes, self.sizes, strict=True)
        said = tuple((name, values[size.dim]) for name, size in pairs if size.parameter is None)
        return replace(self, said=said) if said else self

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The arrays of a call, and those that are bound before."""
        return self.run.parameters

    @property
    def free_parameters(self) -> tuple[Parameter, ...]:
        """Those that a call is handed arrays for, in order."""
        return tuple(p for p in self.parameters if p.role in ("input", "output"))

    def sizes_of(self, shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
        """The sizes of a call on arrays of these shapes, for the free parameters in order, by the
        names that launches have for them.
        """
        free = [n for n, p in enumerate(self.parameters) if p.role in ("input", "output")]
        return dict(self.said) | {
            name: shapes[free.index(size.parameter)][size.axis]
            for name, size in zip(self.run.sizes, self.sizes, strict=True)
            if size.parameter is not None
        }
