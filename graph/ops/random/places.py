"""Where numbers lie among running totals: how one element of several is drawn by its weight."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....tir.expr import Expr
from ....tir.sizes import largest
from ....tir.te import te
from ....tir.te.te import Tensor
from ...types import Array, TensorType
from ..base import (
    Operator,
    OperatorRole,
    ReferenceWork,
    check_arity,
    check_float,
    refuse,
    tensor_type,
)


@dataclass(frozen=True, slots=True)
class CountAtMost(Operator):
    """For each number of a row of the second input, how many of that row of the first one are not
    above it, as an int32.

    totals [rows, n], numbers [rows, m]   ->   [rows, m]
    """

    role = OperatorRole.GENERAL
    operand_names = ("totals", "numbers")

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 2, 2)
        check_float(self, types)
        totals, numbers = types
        if totals.rank != 2 or numbers.rank != 2 or totals.shape[0] != numbers.shape[0]:
            refuse(
                self,
                f"expected matrices of as many rows, got {totals} and {numbers}",
                code="places",
            )
        return (TensorType("int32", numbers.shape),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        totals, numbers = arrays
        pairs = zip(totals, numbers, strict=True)
        found = [np.less_equal(row, some[:, None]).sum(1, dtype=np.int32) for row, some in pairs]
        return (np.array(found, np.int32).reshape(numbers.shape),)

    def work(self, types: tuple[TensorType, ...]) -> ReferenceWork:
        pairs = largest(types[0].elements) * largest(types[1].shape[1])
        return ReferenceWork(pairs // max(1, largest(types[0].shape[0])), pairs)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        totals, numbers = tensors
        shape = tensor_type(numbers).shape
        k = te.reduce_axis(tensor_type(totals).shape[1], name="k")

        def element(i: Expr, j: Expr) -> Expr:
            one, none = te.const(1, "int32"), te.const(0, "int32")
            return te.sum(te.select(totals[i, k] <= numbers[i, j], one, none), axis=k)

        return (te.compute(shape, element, name=name),)
