"""Operators that find the largest or smallest elements: ArgMax, ArgMin, TopK."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...tir.expr import Expr
from ...tir.sizes import AnySize, axis_of, closed, largest
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Array, Shape, TensorType
from .base import (
    Operator,
    OperatorRole,
    ReferenceWork,
    check_arity,
    check_number,
    normal_axis,
    refuse,
    shape_of,
    tensor_type,
)
from .reduction import reduced_shape
from .tournament import first_places


@dataclass(frozen=True, slots=True)
class ArgReduction(Operator):
    """Where along `axis`, which is not negative, the most extreme element stands, as int64: the
    first of those that are equal, and the first NaN where there is one.

    keepdims: whether the axis stays, with size 1. last: the last of those, not the first.
    """

    axis: int
    keepdims: bool = True
    last: bool = False

    role = OperatorRole.GENERAL

    @abstractmethod
    def place(self, element: Expr, axis: te.ReduceAxis, dtype: str) -> Expr:
        """The most extreme `element`, and where it stands, as a `dtype`."""

    @abstractmethod
    def first(self, x: Array) -> Array:
        """The result for the first of equal ones, with the axis kept, as NumPy gives it."""

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        check_number(self, types)
        normal_axis(self, self.axis, types[0].rank)
        if not types[0].shape[self.axis]:
            refuse(self, f"{types[0]} has no elements on axis {self.axis}", code="arg-empty")
        return (TensorType("int64", reduced_shape(types[0].shape, (self.axis,), self.keepdims)),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        at = self.first(np.flip(x, self.axis) if self.last else x)
        found = x.shape[self.axis] - 1 - at if self.last else at
        return (found if self.keepdims else np.squeeze(found, self.axis),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (x,) = tensors
        (result,) = self.infer((tensor_type(x),))
        size, behind = shape_of(x)[self.axis], self.axis + self.keepdims
        end, r = axis_of(size) - 1, te.reduce_axis(size, name="r")

        def element(*i: Expr) -> Expr:
            here = end - r if self.last else r
            return self.place(x[(*i[: self.axis], here, *i[behind:])], r, kind)

        # places beside data of 32 bits have as many of them
        kind = "int32" if largest(size) < 2**31 else "int64"
        _, at = te.compute(result.shape, element, name=(f"{name}_best", f"{name}_place"))

        def place(*i: Expr) -> Expr:
            found: Expr = te.cast(at[i], "int64")
            return end - found if self.last else found

        return (te.compute(result.shape, place, name=name),)


@dataclass(frozen=True, slots=True)
class ArgMax(ArgReduction):
    """Where the largest element stands."""

    def place(self, element: Expr, axis: te.ReduceAxis, dtype: str) -> Expr:
        return te.argmax(element, axis=axis, dtype=dtype)

    def first(self, x: Array) -> Array:
        at: Array = np.argmax(x, self.axis, keepdims=True)
        return at


@dataclass(frozen=True, slots=True)
class ArgMin(ArgReduction):
    """Where the smallest element stands."""

    def place(self, element: Expr, axis: te.ReduceAxis, dtype: str) -> Expr:
        return te.argmin(element, axis=axis, dtype=dtype)

    def first(self, x: Array) -> Array:
        at: Array = np.argmin(x, self.axis, keepdims=True)
        return at


@dataclass(frozen=True, slots=True)
class TopK(Operator):
    """The `count` largest (or smallest) elements along `axis`, which is not negative, the most
    extreme one first, and where they stand, as int64. Of equal elements the one with the smaller
    index comes first; a NaN counts as larger than every number.

    The kernel gives each element of a row its rank, the number of those that come before it, and
    then looks for each rank. Where far fewer are wanted than there are, only blocks whose first
    elements have a low rank are looked at (`tournament.py`).
    """

    axis: int
    count: AnySize
    largest: bool = True

    role = OperatorRole.GENERAL
    output_count = 2

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        check_number(self, types)
        (x,) = types
        normal_axis(self, self.axis, x.rank)
        size = x.shape[self.axis]
        if not 0 <= self.count <= size:
            problem = f"cannot take {self.count} of {size} elements on axis {self.axis}"
            refuse(self, problem, code="top-count")
        shape = (*x.shape[: self.axis], self.count, *x.shape[self.axis + 1 :])
        return TensorType(x.dtype, shape), TensorType("int64", shape)

    def work(self, types: tuple[TensorType, ...]) -> ReferenceWork:
        base, (x,) = Operator.work(self, types), types
        elements = largest(x.elements)
        return ReferenceWork(3 * base.held, base.steps + elements * elements.bit_length())

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        if self.largest:  # backwards, so that of equal ones the first is the last
            turned = np.argsort(np.flip(x, self.axis), self.axis, kind="stable")
            order = x.shape[self.axis] - 1 - np.flip(turned, self.axis)
        else:
            order = np.argsort(x, self.axis, kind="stable")
        places = np.take(order, range(closed(self.count)), self.axis)
        return np.take_along_axis(x, places, self.axis), places

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (x,) = tensors
        _, result = self.infer((tensor_type(x),))
        shape = shape_of(x)
        size, around = closed(shape[self.axis]), (*shape[: self.axis], *shape[self.axis + 1 :])

        def at(row: tuple[Expr, ...], here: Expr) -> tuple[Expr, ...]:
            """The indices of an element of a row."""
            return (*row[: self.axis], here, *row[self.axis :])

        def element(*i: Expr) -> Expr:
            return x[at(i[:-1], i[-1])]

        first = self.find_places(around, size, element, name)

        def place(*i: Expr) -> Expr:
            outer = (*i[: self.axis], *i[self.axis + 1 :])
            return te.cast(first[(*outer, i[self.axis])], "int64")

        places = te.compute(result.shape, place, name=f"{name}_place")

        def value(*i: Expr) -> Expr:
            if size == 0:
                return te.const(0, x.dtype)
            # every place lies within the row, but an index that data give needs bounds
            row = (*i[: self.axis], *i[self.axis + 1 :])
            return x[at(row, te.clamp_index(places[i], size))]

        return te.compute(result.shape, value, name=name), places

    def find_places(
        self, around: Shape, size: int, element: Callable[..., Expr], name: str
    ) -> Tensor:
        """Where the first elements of each row of `size` stand, in order, int32: [*around, count].

        around: the shape of the rows. element: that at the indices of a row and one in it.
        """
        return first_places(around, size, element, self.count, largest=self.largest, name=name)
