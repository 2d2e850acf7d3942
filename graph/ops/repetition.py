"""Operators that repeat elements: Expand, Tile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ...tir.dim import Dim
from ...tir.expr import Expr
from ...tir.sizes import axis_of, closed, closed_shape
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Array, Shape, TensorType
from .base import Operator, OperatorRole, check_arity, refuse, shape_of, tensor_type
from .elementwise import broadcast, broadcast_read

MOST_REPEATS = 8  # of an axis that a run decides


@dataclass(frozen=True, slots=True)
class Expand(Operator):
    """The input broadcast with `shape`, as NumPy does."""

    shape: Shape

    role = OperatorRole.MOVEMENT
    rearranges = True

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        return (broadcast(self, (types[0], TensorType(types[0].dtype, self.shape))),)

    def unchanged_input(self, count: int, is_all: Callable[[int, int], bool]) -> int | None:
        return 0  # where the shape is its own

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        shape = np.broadcast_shapes(x.shape, closed_shape(self.shape))
        return (np.array(np.broadcast_to(x, shape), order="C"),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (x,) = tensors
        (shape,) = (type_.shape for type_ in self.infer((tensor_type(x),)))
        return (te.compute(shape, lambda *i: broadcast_read(x, i), name=name),)


@dataclass(frozen=True, slots=True)
class Tile(Operator):
    """The input `repeats[d]` times one after the other along each axis d."""

    repeats: tuple[int, ...]

    role = OperatorRole.MOVEMENT
    rearranges = True

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        (x,) = types
        if len(self.repeats) != x.rank or min((0, *self.repeats)) < 0:
            problem = f"expected a count of 0 or more for each axis of {x}, got {self.repeats}"
            refuse(self, problem, code="tile-repeats")
        return (TensorType(x.dtype, self._shape(x.shape)),)

    def unchanged_input(self, count: int, is_all: Callable[[int, int], bool]) -> int | None:
        return 0 if set(self.repeats) <= {1} else None

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.tile(arrays[0], self.repeats),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (x,) = tensors

        def element(*indices: Expr) -> Expr:
            sizes = zip(indices, x.extents, self.repeats, strict=True)
            places = [_walked(index, size, count) for index, size, count in sizes]
            return _first_inside(x, places)

        return (te.compute(self._shape(shape_of(x)), element, name=name),)

    def facts(self, types: tuple[TensorType, ...]) -> tuple[Expr, ...]:
        (x,) = types
        pairs = zip(map(axis_of, x.shape), map(axis_of, self._shape(x.shape)), strict=True)
        return tuple(
            size * count - whole
            for (size, whole), count in zip(pairs, self.repeats, strict=True)
            if isinstance(size, Dim) and isinstance(whole, Dim) and count != 1
        )

    def _shape(self, shape: Shape) -> Shape:
        pairs = zip(shape, self.repeats, strict=True)
        return tuple(
            (closed(size) if count > MOST_REPEATS else size) * count for size, count in pairs
        )


@dataclass(frozen=True, slots=True)
class _Way:
    """Where an element may be taken from along an axis. condition: where it is; None: wherever no
    way before it is taken.
    """

    place: Expr
    condition: Expr | None


def _walked(index: Expr, size: int | Dim, count: int) -> list[_Way]:
    """The ways along an axis, of which the first that may be is taken. How often a size that a run
    decides has been walked is found by comparing: no linear form divides by it.
    """
    if not isinstance(size, Dim) or count == 1:
        return [_Way(index if count == 1 else index % size, None)]
    return [
        _Way(index - size * n, None if n == count - 1 else index < size * (n + 1))
        for n in range(count)
    ]


def _first_inside(x: Tensor, axes: Sequence[Sequence[_Way]], *places: Expr) -> Expr:
    """The element at the first way of each axis that may be taken."""
    if not axes:
        return x[places]
    *ways, last = axes[0]
    found = _first_inside(x, axes[1:], *places, last.place)
    for way in reversed(ways):
        assert way.condition is not None
        taken = _first_inside(x, axes[1:], *places, way.place)
        found = te.select(way.condition, taken, found)
    return found
