"""Artifact: what code generation hands to the runtime, as one value: source text and how to call
what it defines.

Every entry has the type `void (void *const *args, const struct tw_team *team, int thread, int
threads)` and is called once per thread, each time with the same `args`: the data pointers of its
parameters, in order, then the sizes that the call decides, each an integer as wide as a pointer,
then one pointer to scratch memory, 64-byte aligned, of `workspace_bytes + threads *
thread_workspace_bytes` bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from ..tir.analysis.facts import dims_of_facts
from ..tir.dim import Dim
from ..tir.dtype import DType
from ..tir.index_check import IndexCheck
from ..tir.sizes import AnySize, largest, product_of, size_of
from ..tir.target.target import Target

if TYPE_CHECKING:  # what is only called needs no language
    from ..tir.func import PrimFunc


@dataclass(frozen=True, slots=True)
class ToldSize:
    """A size that a call decides, and where the shapes of its arrays tell it: as the extent of an
    axis of a parameter, by its position. parameter: None where the caller has to say it.
    """

    dim: Dim
    parameter: int | None = None
    axis: int = 0


@dataclass(frozen=True, slots=True)
class Parameter:
    """One pointer of a call.

    role: "input", "constant" (bound when a kernel is built), "prepared" (a result of `prepare`, or
    an input of `run` that `prepare` made; 64-byte aligned) or "output".
    check: what an output says that is no result but a check of indices; such outputs come last.
    """

    name: str
    dtype: DType
    shape: tuple[AnySize, ...]
    role: str
    check: IndexCheck | None = None

    @property
    def largest_shape(self) -> tuple[int, ...]:
        """The shape where all sizes are as large as they may be."""
        return tuple(map(largest, self.shape))

    @property
    def bytes(self) -> int:
        """Bytes of the whole array, at most."""
        return self.dtype.bytes * largest(product_of(self.shape))


def parameters_of(func: PrimFunc) -> tuple[Parameter, ...]:
    """The pointers of a call of a function."""
    return tuple(
        Parameter(p.name, p.buffer.type, tuple(map(size_of, p.buffer.extents)), p.role, p.check)
        for p in func.parameters
    )


def sizes_of(func: PrimFunc) -> tuple[ToldSize, ...]:
    """The sizes that a call of a function decides, each where the first parameter tells it. What
    facts tie together the caller has to say, who has seen to them.
    """
    tied = dims_of_facts(func.facts)
    told = told_sizes(func.dims, parameters_of(func))
    return tuple(ToldSize(size.dim) if size.dim in tied else size for size in told)


def told_sizes(dims: Sequence[Dim], parameters: Sequence[Parameter]) -> tuple[ToldSize, ...]:
    """Where the first of some parameters tells each dim."""
    places = [(s, n, axis) for n, p in enumerate(parameters) for axis, s in enumerate(p.shape)]
    first = {size: (n, axis) for size, n, axis in reversed(places)}
    return tuple(ToldSize(dim, *first.get(size_of(dim), (None,))) for dim in dims)


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
    def sizes(self) -> tuple[ToldSize | int, ...]:
        """The sizes that a call decides; numbers where they are known."""

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
    sizes: tuple[ToldSize | int, ...] = ()

    def at(self, values: Mapping[Dim, int]) -> Entry:
        """The entry where the sizes that a call decides are known."""
        sizes = (values[one.dim] if isinstance(one, ToldSize) else one for one in self.sizes)
        return replace(self, sizes=tuple(sizes))


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
    sizes: tuple[ToldSize | int, ...] = ()

    def at(self, values: Sequence[int]) -> Artifact:
        """The artifact where the sizes that a call decides are known, in their order."""
        told = (size for size in self.sizes if isinstance(size, ToldSize))
        known: dict[AnySize, int] = {
            size_of(size.dim): value for size, value in zip(told, values, strict=True)
        }
        parameters = (
            replace(p, shape=tuple(known.get(size, size) for size in p.shape))
            for p in self.parameters
        )
        return replace(self, parameters=tuple(parameters), sizes=tuple(values))

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
