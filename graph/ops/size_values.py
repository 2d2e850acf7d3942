"""SizeValues: sizes that a run decides, as integers in a tensor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...tir.expr import Expr
from ...tir.sizes import as_expression, closed_shape
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
