"""Ranges whose ends are data: how long one is, and its elements."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...tir.expr import Expr
from ...tir.sizes import AnySize, closed
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Array, TensorType
from .base import Operator, OperatorRole, check_arity, check_number, refuse

_FAR = 1 << 40  # beyond every bound of a length, and exact as a float


@dataclass(frozen=True, slots=True)
class RangeLength(Operator):
    """How many numbers start, start + step, ... lie before `limit`, an int64 of 0 to 2**40: start,
    limit and step are one number each, of one type. The quotient is that of float64; infinitely
    many, as of step 0, are 2**40.
    """

    role = OperatorRole.GENERAL

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 3, 3)
        _check_scalars(self, types)
        return (TensorType("int64", ()),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        start, limit, step = arrays
        steps = np.subtract(limit, start).astype(np.float64) / step.astype(np.float64)
        count = np.minimum(np.maximum(np.ceil(steps), 0), _FAR)
        return (np.asarray(np.where(np.isnan(steps), 0, count)).astype(np.int64),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        start, limit, step = tensors

        def element() -> Expr:
            apart = te.cast(limit[()] - start[()], "float64")
            steps = te.ceil(apart / te.cast(step[()], "float64"))
            count = te.select(steps > 0.0, steps, te.const(0.0, "float64"))
            return te.cast(te.select(count < float(_FAR), count, float(_FAR)), "int64")

        return (te.compute((), element, name=name),)


@dataclass(frozen=True, slots=True)
class RangeValues(Operator):
    """The vector start, start + step, ... of `count` numbers: start and step are one number each,
    of one type.
    """

    count: AnySize

    role = OperatorRole.GENERAL

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 2, 2)
        _check_scalars(self, types)
        return (TensorType(types[0].dtype, (self.count,)),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        start, step = arrays
        numbers = np.arange(closed(self.count)).astype(start.dtype)
        return (np.add(start, np.multiply(numbers, step)),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        start, step = tensors

        def element(i: Expr) -> Expr:
            return start[()] + te.cast(i, start.dtype) * step[()]

        return (te.compute(self.count, element, name=name),)


def _check_scalars(operator: Operator, types: tuple[TensorType, ...]) -> None:
    check_number(operator, types)
    if wrong := [type_ for type_ in types if type_.rank]:
        refuse(operator, f"expected numbers without axes, got {wrong[0]}", code="range-scalars")
