"""Reductions along axes: sums, sums of squares, means, products, largest and smallest elements."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from ...tir.expr import Expr
from ...tir.sizes import AnySize, Size, product_of
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import NARROW_INTEGERS, Array, Floats, Shape, TensorType
from .base import (
    Operator,
    OperatorRole,
    Permutation,
    Permuted,
    check_arity,
    check_float,
    check_number,
    highest,
    lowest,
    refuse,
    shape_of,
)


@dataclass(frozen=True, slots=True)
class Reduction(Operator):
    """All elements along `axes` (ascending, not negative, at least one) become one.

    keepdims: whether the axes stay, with size 1. Over no elements, the result is the neutral
    element: 0, 1, or the least or greatest number that the type has. Integers wrap around.
    """

    axes: tuple[int, ...]
    keepdims: bool = True

    role = OperatorRole.GENERAL

    @abstractmethod
    def combine(self, element: Expr, axes: te.Axes) -> Expr:
        """`element` reduced over `axes`."""

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        check_number(self, types)
        check_axes(self, self.axes, types[0])
        shape = reduced_shape(types[0].shape, self.axes, self.keepdims)
        return (TensorType(types[0].dtype, shape),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (x,) = tensors
        return (reduced(x, self.axes, self.keepdims, name, self.combine),)

    def permute_axes(self, permutation: Permutation) -> Permuted | None:
        """Axes that are left keep the order they have."""
        axes = tuple(sorted(permutation[axis] for axis in self.axes))
        if not self.keepdims:
            left = [d for n, d in enumerate(permutation) if n not in self.axes]
            permutation = tuple(sorted(left).index(d) for d in left)
        return Permuted(replace(self, axes=axes), permutation)


@dataclass(frozen=True, slots=True)
class ReduceSum(Reduction):
    """The sum."""

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        return (np.sum(x, axis=self.axes, keepdims=self.keepdims, dtype=x.dtype),)

    def combine(self, element: Expr, axes: te.Axes) -> Expr:
        return te.sum(element, axis=axes, dtype=element.dtype)


@dataclass(frozen=True, slots=True)
class IntegerSum(Reduction):
    """The sum of integers of 8 or 16 bits in int32, which wraps around."""

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        (reduced,) = Reduction.infer(self, types)
        if types[0].dtype not in NARROW_INTEGERS:
            problem = f"expected int8, uint8 or int16, got {types[0]}"
            refuse(self, problem, code="integer-sum-type")
        return (TensorType("int32", reduced.shape),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        return (np.sum(x, axis=self.axes, keepdims=self.keepdims, dtype=np.int32),)

    def combine(self, element: Expr, axes: te.Axes) -> Expr:
        return te.sum(te.cast(element, "int32"), axis=axes)


@dataclass(frozen=True, slots=True)
class ReduceSumSquare(Reduction):
    """The sum of the squares."""

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        squares = np.multiply(x, x)
        return (np.sum(squares, axis=self.axes, keepdims=self.keepdims, dtype=x.dtype),)

    def combine(self, element: Expr, axes: te.Axes) -> Expr:
        return te.sum(element * element, axis=axes, dtype=element.dtype)


@dataclass(frozen=True, slots=True)
class ReduceMean(Reduction):
    """The sum, divided by the number of elements; NaN over none."""

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        check_float(self, types)
        return Reduction.infer(self, types)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        with np.errstate(all="ignore"):
            total = np.sum(x, axis=self.axes, keepdims=self.keepdims, dtype=x.dtype)
            return (np.divide(total, counted(x.shape, self.axes), dtype=x.dtype),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (x,) = tensors
        total = reduced(x, self.axes, self.keepdims, f"{name}_sum", self.combine)
        return (divided(total, counted_in(x, self.axes), name),)

    def combine(self, element: Expr, axes: te.Axes) -> Expr:
        return te.sum(element, axis=axes)


@dataclass(frozen=True, slots=True)
class ReduceProd(Reduction):
    """The product."""

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x = cast(Floats, arrays[0])
        return (np.prod(x, axis=self.axes, keepdims=self.keepdims, dtype=x.dtype),)

    def combine(self, element: Expr, axes: te.Axes) -> Expr:
        return te.prod(element, axis=axes, dtype=element.dtype)


@dataclass(frozen=True, slots=True)
class ReduceMax(Reduction):
    """The largest element; NaN where one is NaN."""

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        return (np.max(x, axis=self.axes, keepdims=self.keepdims, initial=lowest(x.dtype.name)),)

    def combine(self, element: Expr, axes: te.Axes) -> Expr:
        return te.max(element, axis=axes)


@dataclass(frozen=True, slots=True)
class ReduceMin(Reduction):
    """The smallest element; NaN where one is NaN."""

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        return (np.min(x, axis=self.axes, keepdims=self.keepdims, initial=highest(x.dtype.name)),)

    def combine(self, element: Expr, axes: te.Axes) -> Expr:
        return te.min(element, axis=axes)


def check_axes(operator: Operator, axes: tuple[int, ...], type_: TensorType) -> None:
    """Refuse axes that a tensor lacks, out of order, or none."""
    if not axes or list(axes) != sorted(set(axes) & set(range(type_.rank))):
        refuse(operator, f"axes {axes} are not ascending axes of {type_}", code="op-axes")


def reduced_shape(shape: Shape, axes: tuple[int, ...], keepdims: bool) -> Shape:
    """The shape of what is left of `shape`."""
    sizes = [1 if d in axes else size for d, size in enumerate(shape)]
    return tuple(size for d, size in enumerate(sizes) if keepdims or d not in axes)


def counted(shape: tuple[int, ...], axes: tuple[int, ...]) -> int:
    """How many elements become one."""
    return int(np.prod([shape[axis] for axis in axes], dtype=np.int64))


def counted_in(x: Tensor, axes: tuple[int, ...]) -> AnySize:
    """How many elements of a tensor become one."""
    return product_of(shape_of(x)[axis] for axis in axes)


def divided(total: Tensor, count: AnySize, name: str) -> Tensor:
    """Sums over `count` elements as their mean."""
    number = te.cast(count.expression, total.dtype) if isinstance(count, Size) else float(count)
    return te.compute(shape_of(total), lambda *i: total[i] / number, name=name)


def row(indices: tuple[Expr, ...], axes: tuple[int, ...]) -> tuple[Expr | int, ...]:
    """Where in a result of reducing, with its axes kept, an element finds its own."""
    return tuple(0 if d in axes else index for d, index in enumerate(indices))


def reduced(
    x: Tensor,
    axes: tuple[int, ...],
    keepdims: bool,
    name: str,
    combine: Callable[[Expr, te.Axes], Expr],
    element: Callable[[tuple[Expr, ...]], Expr] | None = None,
) -> Tensor:
    """A stage that reduces x[i], or `element(i)`, along `axes`.

    combine: te.sum or another of its kind.
    """
    shape = shape_of(x)
    steps = {d: te.reduce_axis(shape[d], name=f"r{d}") for d in axes}

    def value(*indices: Expr) -> Expr:
        kept = iter(indices)
        if keepdims:
            at = tuple(steps.get(d, index) for d, index in enumerate(indices))
        else:
            at = tuple(steps[d] if d in steps else next(kept) for d in range(len(x.shape)))
        return combine(element(at) if element else x[at], tuple(steps.values()))

    return te.compute(reduced_shape(shape, axes, keepdims), value, name=name)
