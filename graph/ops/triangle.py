"""Operators in which the position along an axis decides: Trilu, CumSum, CumProd."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from ...tir.expr import Expr
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Array, Floats, TensorType
from .base import Operator, OperatorRole, check_arity, check_number, normal_axis, refuse, shape_of


@dataclass(frozen=True, slots=True)
class Trilu(Operator):
    """Of each matrix, what stands on diagonal `diagonal` and above it (`upper`) or below it; zeros
    elsewhere. Diagonal 1 is the one above the main diagonal.
    """

    upper: bool = True
    diagonal: int = 0

    role = OperatorRole.MOVEMENT
    rearranges = False

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        if types[0].rank < 2:
            refuse(self, f"expected matrices, got {types[0]}", code="trilu-rank")
        return types

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        return ((np.triu if self.upper else np.tril)(x, self.diagonal),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (x,) = tensors
        zero = te.const(0, x.dtype)

        def element(*indices: Expr) -> Expr:
            row, column = indices[-2:]
            edge = row + self.diagonal
            return te.select(column >= edge if self.upper else column <= edge, x[indices], zero)

        return (te.compute(shape_of(x), element, name=name),)


@dataclass(frozen=True, slots=True)
class RunningTotal(Operator):
    """The total of the elements up to each along `axis`, which is not negative: a scan.

    exclusive: without the element itself; reverse: from the end. start: the total of no elements.
    Integers wrap around.
    """

    axis: int
    exclusive: bool = False
    reverse: bool = False

    role = OperatorRole.GENERAL
    start: ClassVar[int]

    @abstractmethod
    def accumulate(self, x: Array) -> Array:
        """The totals up to each element, with it, from the front."""

    @abstractmethod
    def add(self, total: Expr, element: Expr) -> Expr:
        """The total with one more element."""

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        check_number(self, types)
        normal_axis(self, self.axis, types[0].rank)
        return types

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        y = self.accumulate(np.flip(x, self.axis) if self.reverse else x)
        if self.exclusive:
            y = np.roll(y, 1, self.axis)
            y[(slice(None),) * self.axis + (slice(0, 1),)] = self.start
        return (np.flip(y, self.axis) if self.reverse else y,)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (x,) = tensors
        if x.dims:
            return (self._apart(x, name),)
        state = te.state(x.shape, x.dtype, name=name)
        axis, one = self.axis, list(x.shape)
        one[axis] = 1
        end = x.shape[axis] - 1 if self.reverse else 0

        def at(indices: tuple[Expr, ...], place: Expr) -> tuple[Expr, ...]:
            return (*indices[:axis], place, *indices[axis + 1 :])

        def first(*indices: Expr) -> Expr:
            if self.exclusive:
                return te.const(self.start, x.dtype)
            return x[at(indices, indices[axis] + end)]

        def step(*indices: Expr) -> Expr:
            before = at(indices, indices[axis] + 1 if self.reverse else indices[axis] - 1)
            return self.add(state[before], x[before if self.exclusive else indices])

        begun = te.compute(one, first, name=f"{name}_first")
        later = te.compute(x.shape, step, name=f"{name}_step")
        return (te.scan(begun, later, state, axis=axis, reverse=self.reverse),)

    def _apart(self, x: Tensor, name: str) -> Tensor:
        """Each total on its own, where a run decides a size: a scan is of closed ones."""
        r = te.reduce_axis(shape_of(x)[self.axis], name="r")

        def element(*i: Expr) -> Expr:
            here, source = i[self.axis], (*i[: self.axis], r, *i[self.axis + 1 :])
            ahead = (r > here) if self.reverse else (r < here)
            counted = ahead if self.exclusive else te.any_of(ahead, te.eq(r, here))
            chosen = te.select(counted, x[source], te.const(self.start, x.dtype))
            return self.reduce(chosen, r)

        return te.compute(shape_of(x), element, name=name)

    @abstractmethod
    def reduce(self, element: Expr, axis: te.ReduceAxis) -> Expr:
        """The total of all elements."""


@dataclass(frozen=True, slots=True)
class CumSum(RunningTotal):
    """Running sums."""

    start = 0

    def accumulate(self, x: Array) -> Array:
        return np.cumsum(x, self.axis, dtype=x.dtype)

    def add(self, total: Expr, element: Expr) -> Expr:
        return total + element

    def reduce(self, element: Expr, axis: te.ReduceAxis) -> Expr:
        return te.sum(element, axis=axis, dtype=element.dtype)


@dataclass(frozen=True, slots=True)
class CumProd(RunningTotal):
    """Running products."""

    start = 1

    def accumulate(self, x: Array) -> Array:
        return np.cumprod(cast(Floats, x), self.axis, dtype=x.dtype)

    def add(self, total: Expr, element: Expr) -> Expr:
        return total * element

    def reduce(self, element: Expr, axis: te.ReduceAxis) -> Expr:
        return te.prod(element, axis=axis, dtype=element.dtype)
