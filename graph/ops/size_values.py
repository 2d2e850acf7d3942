"""Integers that sizes of a run decide: the sizes themselves, and ranges between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...tir.expr import Expr
from ...tir.sizes import AnySize, as_expression, closed, closed_shape
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Array, Shape, TensorType
from .base import Operator, OperatorRole, check_arity


@dataclass(frozen=True, slots=True)
class SizeValues(Operator):
    """The int64 tensor of `shape` that holds `values` in row-major order."""

    values: Shape
    shape: tuple[int, ...]

    role = OperatorRole.GENERAL

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 0, 0)
        return (TensorType("int64", self.shape),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.array(closed_shape(self.values), np.int64).reshape(self.shape),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        def element(*indices: Expr) -> Expr:
            place: Expr | int = 0
            for index, extent in zip(indices, self.shape, strict=True):
                place = place * extent + index
            found = as_expression(self.values[-1])
            for number in reversed(range(len(self.values) - 1)):
                found = te.select(te.eq(place, number), as_expression(self.values[number]), found)
            return found

        return (te.compute(self.shape, element, name=name),)


@dataclass(frozen=True, slots=True)
class SizeRange(Operator):
    """The int64 vector start, start + step, ... of `count` elements."""

    start: AnySize
    count: AnySize
    step: int = 1

    role = OperatorRole.GENERAL

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 0, 0)
        return (TensorType("int64", (self.count,)),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (closed(self.start) + self.step * np.arange(closed(self.count), dtype=np.int64),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        start = as_expression(self.start)
        return (te.compute((self.count,), lambda i: start + i * self.step, name=name),)
