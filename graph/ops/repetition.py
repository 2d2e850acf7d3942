"""Operators that repeat elements: Expand, Tile."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...tir.expr import Expr
from ...tir.sizes import axis_of, closed, closed_shape
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Array, Shape, TensorType
from .base import Operator, OperatorRole, check_arity, refuse, shape_of, tensor_type
from .elementwise import broadcast, broadcast_read


@dataclass(frozen=True, slots=True)
class Expand(Operator):
    """The input broadcast with `shape`, as NumPy does."""

    shape: Shape

    role = OperatorRole.MOVEMENT
    rearranges = True

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        return (broadcast(self, (types[0], TensorType(types[0].dtype, self.shape))),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        shape = np.broadcast_shapes(x.shape, closed_shape(self.shape))
        return (np.ascontiguousarray(np.broadcast_to(x, shape)),)

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

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.tile(arrays[0], self.repeats),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (x,) = tensors

        def element(*indices: Expr) -> Expr:
            shape = map(axis_of, shape_of(x))
            sizes = zip(indices, shape, self.repeats, strict=True)
            return x[tuple(i if count == 1 else i % size for i, size, count in sizes)]

        return (te.compute(self._shape(shape_of(x)), element, name=name),)

    def _shape(self, shape: Shape) -> Shape:
        pairs = zip(shape, self.repeats, strict=True)
        return tuple(size if count == 1 else closed(size) * count for size, count in pairs)
