"""Sizes that a run computes: `DataSize`, which says that a number is one, and `SizeWithin`, which
makes sure that a number that data give is none beyond a bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...tir.expr import Expr
from ...tir.sizes import AnySize
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Array, TensorType
from .base import Operator, OperatorRole, check_arity, refuse

_ONE = TensorType("int64", ())


@dataclass(frozen=True, slots=True)
class DataSize(Operator):
    """The input, one int64, which is what `size` is from here on: what follows may have axes of
    that size. The number lies within the bounds of the size.
    """

    size: AnySize

    role = OperatorRole.GENERAL

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        _check_one(self, types)
        return types

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return arrays

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (number,) = tensors
        return (te.compute((), lambda: number[()], name=name),)

    def is_view(self, types: tuple[TensorType, ...]) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class SizeWithin(Operator):
    """The input, one int64, where it is 0 to `most`; else a call raises IndexError, after it has
    run with the nearest of these.

    what: the number, for the message.
    """

    most: int
    what: str

    role = OperatorRole.GENERAL
    checks_indices = True

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        _check_one(self, types)
        return types

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.clip(arrays[0], 0, self.most),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (number,) = tensors

        def element() -> Expr:
            return te.checked(number[()], self.most + 1, what=self.what)

        return (te.compute((), element, name=name),)


def _check_one(operator: Operator, types: tuple[TensorType, ...]) -> None:
    check_arity(operator, types, 1, 1)
    if types[0] != _ONE:
        refuse(operator, f"expected one int64, got {types[0]}", code="data-size-type")
