"""Artifact: what code generation hands to the runtime, as one value: source text and how to call
what it defines.

Every entry has the type `void (void *const *args, const struct tw_team *team, int thread, int
threads)` and is called once per thread, each time with the same `args`: the data pointers of its
parameters, in order, then the sizes that the call decides, each an integer as wide as a pointer,
then one pointer to scratch memory, 64-byte aligned, of `workspace_bytes + threads *
thread_workspace_bytes` bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ..tir.dtype import DType
from ..tir.index_check import IndexCheck
from ..tir.target.target import Target

if TYPE_CHECKING:  # what is only called needs no language
    from ..tir.func import PrimFunc


@dataclass(frozen=True, slots=True)
class Size:
    """A size that a call decides, of `low` .. `high`, and where the shapes of the inputs tell it:
    as the extent of an axis of a parameter, by its position.
    """

    name: str
    low: int
    high: int
    parameter: int
    axis: int

    def __hash__(self) -> int:  # at each call; those of a kernel stand in different places
        return self.parameter << 8 | self.axis


@dataclass(frozen=True, slots=True)
class Parameter:
    """One pointer of a call.

    role: "input", "constant" (bound when a kernel is built), "prepared" (a result of `prepare`, or
    an input of `run` that `prepare` made; 64-byte aligned) or "output".
    check: what an output says that is no result but a check of indices; such outputs come last.
    sizes: for each axis the position, among the sizes of the entry, of the one that is its extent,
    None where that is a number; () where all are. `shape` then has the upper bound.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    role: str
    check: IndexCheck | None = None
    sizes: tuple[int | None, ...] = ()

    @property
    def bytes(self) -> int:
        """Bytes of the whole array, at most."""
        size = self.dtype.bytes
        for extent in self.shape:
            size *= extent
        return size


def parameters_of(func: PrimFunc) -> tuple[Parameter, ...]:
    """The pointers of a call of a function."""
    position = {dim: n for n, dim in enumerate(func.dims)}
    return tuple(
        Parameter(
            p.name,
            p.buffer.type,
            p.buffer.shape,
            p.role,
            p.check,
            tuple(None if dim is None else position[dim] for dim in p.buffer.dims),
        )
        for p in func.parameters
    )


def sizes_of(func: PrimFunc) -> tuple[Size, ...]:
    """The sizes that a call of a function decides, each where the first input tells it."""
    places = [
        (dim, n, axis)
        for n, p in enumerate(func.parameters)
        for axis, dim in enumerate(p.buffer.dims)
    ]
    found = (next(place for place in places if place[0] is dim) for dim in func.dims)
    return tuple(
        Size(dim.name, dim.low, dim.high, n, axis) for dim, n, axis in found if dim is not None
    )


class HasParameters(Protocol):
    """Something that is called on arrays."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The arrays, in order."""


class Written(HasParameters, Protocol):
    """What a kernel says of itself, whichever back end wrote it."""

    @property
    def name(self) -> str:
        """The function's name."""

    @property
    def source(self) -> str:
        """The source text."""

    @property
    def target(self) -> Target:
        """What it was written for."""

    @property
    def sizes(self) -> tuple[Size, ...]:
        """The sizes that a call decides."""

    @property
    def prepare(self) -> HasParameters | None:
        """What is called once, on the constants."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A function of the source: its name, its parameters, the sizes that a call decides, and the
    scratch memory that it needs, in bytes.
    """

    symbol: str
    parameters: tuple[Parameter, ...]
    workspace_bytes: int = 0
    thread_workspace_bytes: int = 0
    sizes: tuple[Size, ...] = ()


@dataclass(frozen=True, slots=True)
class Artifact:
    """A kernel as C text.

    symbol, parameters, sizes, workspace_bytes, thread_workspace_bytes: the entry that a call runs.
    prepare: the entry that computes the parameters of role "prepared" from the constants, once; its
    own parameters are constants, then, with role "output", the prepared buffers under the names
    that `parameters` has for them. None where nothing depends on constants alone.
    """

    name: str
    symbol: str
    source: str
    target: Target
    parameters: tuple[Parameter, ...]
    workspace_bytes: int = 0
    thread_workspace_bytes: int = 0
    prepare: Entry | None = None
    sizes: tuple[Size, ...] = ()

    @property
    def run(self) -> Entry:
        """The entry that a call runs."""
        return Entry(
            self.symbol,
            self.parameters,
            self.workspace_bytes,
            self.thread_workspace_bytes,
            self.sizes,
        )
