"""Arrays in memory, and the expression that reads an element of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .dim import Dim, Extent, dims_of, most
from .dtype import INT64, DType
from .errors import IRError
from .expr import Cast, Expr, const
from .node import Leaf
from .number import index_number

_FORMER_SCOPES = {"team": "shared"}  # of texts and traces written before 25 November 2026


def current_scope(name: str) -> str:
    """The name of a scope, where it is a former one its name of today."""
    return _FORMER_SCOPES.get(name, name)


@dataclass(frozen=True, slots=True)
class Alignment:
    """The stride of `axis` leaves `offset` when it is divided by `factor`; both count elements."""

    axis: int
    factor: int
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Buffer(Leaf):
    """A row-major array. Two Buffers are equal only when they are one object.

    scope: "global" (parameters and workspace), "shared" (of the threads of one block of a grid),
    "thread" (private to a thread) or "register".
    origin: the tensor whose elements this buffer keeps closer, at the same logical indices; None
    for a tensor of its own.
    dims: for each axis the dim that decides its extent, or None; () where no call decides any.
    `shape` then has the upper bound, and so have the numbers below; in scope "global" the elements
    that exist lie dense, where nothing is aligned.
    aligned: of an allocation, the axes whose strides are not dense; at most one entry for an axis,
    in order. It says where elements lie in memory: no value depends on it. The last axis is dense.
    swizzled: of an allocation in scope "shared", whether pieces of 16 bytes lie in an order that
    changes from row to row; no value depends on that either.
    """

    name: str
    type: DType
    shape: tuple[int, ...]
    scope: str = "global"
    origin: Buffer | None = None
    dims: tuple[Dim | None, ...] = ()
    aligned: tuple[Alignment, ...] = ()
    swizzled: bool = False

    def __post_init__(self) -> None:
        for item in self.aligned:
            inside = 0 <= item.axis < len(self.shape) - 1
            if not inside or not 0 <= item.offset < item.factor:
                raise IRError(
                    f"buffer: '{self.name}' of {len(self.shape)} axes has {item}; expected an axis "
                    "before the last one and 0 <= offset < factor.",
                    code="buffer-alignment",
                )

    @property
    def extents(self) -> tuple[Extent, ...]:
        """The extent of each axis: a number, or the dim that decides it."""
        dims = self.dims or (None,) * len(self.shape)
        return tuple(
            size if dim is None else dim for dim, size in zip(dims, self.shape, strict=True)
        )

    @property
    def dtype(self) -> DType:
        """The type of one element."""
        return self.type

    @property
    def is_private(self) -> bool:
        """Whether each thread has one of its own."""
        return self.scope in ("register", "thread")

    @property
    def size(self) -> int:
        """Number of elements; the most that there can be, where a dim decides."""
        product = 1
        for extent in self.shape:
            product *= extent
        return product

    @property
    def strides(self) -> tuple[int, ...]:
        """Elements from one index to the next along each axis: the fewest that `aligned` allows."""
        wanted = {item.axis: item for item in self.aligned}
        found: list[int] = []
        step = 1
        for axis in reversed(range(len(self.shape))):
            if axis in wanted:
                step += (wanted[axis].offset - step) % wanted[axis].factor
            found.append(step)
            step *= self.shape[axis]
        return tuple(reversed(found))

    @property
    def room(self) -> int:
        """Elements for which the array takes memory, with those that `aligned` leaves between."""
        return self.shape[0] * self.strides[0] if self.shape else 1

    @property
    def bytes(self) -> int:
        """Bytes of memory of the whole array."""
        return self.room * self.type.bytes * self.type.lanes

    __hash__ = object.__hash__
    __eq__ = object.__eq__

    def __getitem__(self, indices: Expr | int | tuple[Expr | int, ...]) -> Load:
        listed = indices if isinstance(indices, tuple) else (indices,)
        if len(listed) != len(self.shape):
            raise IRError(
                f"load: '{self.name}' has {len(self.shape)} dimensions; expected as many "
                f"indices, got {len(listed)}.",
                code="load-rank",
                hints=(f"{self.name}[{', '.join(f'i{n}' for n in range(len(self.shape)))}]",),
            )
        return Load(self, tuple(as_index(index, self.name) for index in listed))


def array(name: str, dtype: DType, extents: Sequence[Extent]) -> Buffer:
    """The buffer of these extents, some of which a dim may decide."""
    return Buffer(name, dtype, tuple(map(most, extents)), dims=dims_of(extents))


@dataclass(frozen=True, slots=True, eq=False)
class Load(Expr):
    """The element of `buffer` at `indices`; in lowered code the last index may be a Ramp, and lanes
    may be masked off.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    mask: Expr | None = None
    other: Expr | None = None

    def _find_dtype(self) -> DType:
        lanes = self.buffer.type.lanes
        for index in self.indices:
            lanes = max(lanes, index.dtype.lanes)
        return self.buffer.type.with_lanes(lanes)


def as_index(index: Expr | int, name: str) -> Expr:
    """An index of the buffer called `name` as an int64 expression."""
    if not isinstance(index, Expr):
        return const(index_number(index, name), INT64)
    if not index.dtype.is_integer:
        raise IRError(
            f"load: an index of '{name}' has type {index.dtype}; expected an integer.",
            code="load-index-type",
            hints=("te.cast(index, 'int64') converts it.",),
        )
    return index if index.dtype == INT64 else Cast(index, INT64)
