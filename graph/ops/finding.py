"""Operators that find: CountTrue, how many elements are true, FindTrue, where they stand,
Coordinates, of such places, and RunStarts, where equal elements begin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...tir.expr import Expr
from ...tir.sizes import AnySize, axis_of, closed, largest, product_of
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Array, Shape, TensorType
from .base import (
    Operator,
    OperatorRole,
    ReferenceWork,
    check_arity,
    check_bool,
    refuse,
    shape_of,
    tensor_type,
)
from .triangle import CumSum

_PARTS = 16  # into which each step of a search divides what is left


@dataclass(frozen=True, slots=True)
class CountTrue(Operator):
    """How many elements of a vector are true, as int64."""

    role = OperatorRole.GENERAL

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        _check_flags(self, types)
        return (TensorType("int64", ()),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.asarray(np.count_nonzero(arrays[0]), np.int64),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (flags,) = tensors
        r = te.reduce_axis(shape_of(flags)[0], name="r")
        return (te.compute((), lambda: te.sum(te.cast(flags[r], "int64"), axis=r), name=name),)


@dataclass(frozen=True, slots=True)
class FindTrue(Operator):
    """Where the true elements of a vector stand, in order, without the first `skip`: `count` of
    them; the length of the vector where there are no more.

    The kernel counts the true elements up to each one, and searches these counts for k + skip + 1,
    for each k apart. Where a run decides how long the vector is, it goes through all of it instead.
    """

    count: AnySize
    skip: int = 0

    role = OperatorRole.GENERAL

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        _check_flags(self, types)
        return (TensorType("int64", (self.count,)),)

    def work(self, types: tuple[TensorType, ...]) -> ReferenceWork:
        base = Operator.work(self, types)
        return ReferenceWork(base.held + 8 * largest(types[0].elements), 4 * base.steps)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (flags,), count = arrays, closed(self.count)
        found = np.flatnonzero(flags)[self.skip : self.skip + count]
        return (np.pad(found, (0, count - found.size), constant_values=flags.size),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (flags,) = tensors
        (size,) = shape_of(flags)
        ones = te.compute(size, lambda i: te.cast(flags[i], "int32"), name=f"{name}_one")
        (running,) = CumSum(0).express(ones, name=f"{name}_running")
        if isinstance(size, int):
            return (self._searched(running, size, name),)
        r = te.reduce_axis(size, name="r")

        def place(k: Expr) -> Expr:
            return te.sum(te.cast(self._is_before(running[r], k), "int64"), axis=r)

        return (te.compute(self.count, place, name=name),)

    def _searched(self, running: Tensor, size: int, name: str) -> Tensor:
        """How many of the counts are at most k + skip: a search in steps of which each leaves one
        of _PARTS parts.
        """
        strides = [1]
        while strides[-1] * _PARTS <= size:
            strides.append(strides[-1] * _PARTS)
        found = te.compute(self.count, lambda k: te.const(0, "int64"), name=f"{name}_begin")
        for number, stride in enumerate(reversed(strides)):
            last = number == len(strides) - 1
            found = self._step(running, found, size, stride, name if last else f"{name}_{number}")
        return found

    def _step(self, running: Tensor, found: Tensor, size: int, stride: int, name: str) -> Tensor:
        r = te.reduce_axis(_PARTS, name="part")

        def place(k: Expr) -> Expr:
            at = found[k] + (r * stride - 1)
            # every place lies within the vector where it counts, but an index needs bounds
            count = running[te.clamp_index(at, size)]
            ahead = te.all_of(at < size, self._is_before(count, k))
            more = te.select(ahead, te.const(stride, "int64"), te.const(0, "int64"))
            return te.sum(te.select(te.eq(r, 0), found[k], more), axis=r)

        return te.compute(self.count, place, name=name)

    def _is_before(self, count: Expr, k: Expr) -> Expr:
        return count <= te.cast(k + self.skip, "int32")


@dataclass(frozen=True, slots=True)
class Coordinates(Operator):
    """The indices in an array of `shape`, a row for each of its axes, of row-major places in it."""

    shape: Shape

    role = OperatorRole.GENERAL

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        if types[0].dtype != "int64" or types[0].rank != 1 or not self.shape:
            problem = f"expected a vector of int64 and axes, got {types[0]} of {list(self.shape)}"
            refuse(self, problem, code="coordinates-type")
        return (TensorType("int64", (len(self.shape), *types[0].shape)),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (places,) = arrays
        rows = []
        for axis, size in enumerate(self.shape):
            row = places // max(1, math.prod(map(closed, self.shape[axis + 1 :])))
            rows.append(row % max(1, closed(size)) if axis else row)
        return (np.stack(rows),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (places,) = tensors
        (result,) = self.infer((tensor_type(places),))

        def element(axis: Expr, k: Expr) -> Expr:
            found = self._row(places[k], 0)
            for number in range(1, len(self.shape)):
                found = te.select(te.eq(axis, number), self._row(places[k], number), found)
            return found

        return (te.compute(result.shape, element, name=name),)

    def _row(self, place: Expr, axis: int) -> Expr:
        row = place // axis_of(product_of(self.shape[axis + 1 :]))
        return row % axis_of(self.shape[axis]) if axis else row


@dataclass(frozen=True, slots=True)
class RunStarts(Operator):
    """Of a vector, whether each element differs from the one before it, or is the first. A NaN is
    like another one.
    """

    role = OperatorRole.GENERAL

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        if types[0].rank != 1:
            refuse(self, f"expected a vector, got {types[0]}", code="runs-rank")
        return (TensorType("bool", types[0].shape),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        same = (x[1:] == x[:-1]) | ((x[1:] != x[1:]) & (x[:-1] != x[:-1]))
        return (np.concatenate([np.ones(min(x.size, 1), bool), ~same]),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (x,) = tensors
        (size,) = shape_of(x)

        def element(i: Expr) -> Expr:
            if size == 0:
                return te.const(True, "bool")
            here, before = x[i], x[te.clamp_index(i - 1, closed(size))]
            other = te.ne(here, before)
            if here.dtype.is_float:
                numbers = te.any_of(te.eq(here, here), te.eq(before, before))
                other = te.all_of(other, numbers)
            return te.any_of(te.eq(i, 0), other)

        return (te.compute(size, element, name=name),)


def _check_flags(operator: Operator, types: tuple[TensorType, ...]) -> None:
    """Refuse what is no vector of truth values."""
    check_arity(operator, types, 1, 1)
    check_bool(operator, types)
    if types[0].rank != 1:
        refuse(operator, f"expected a vector, got {types[0]}", code="find-rank")
