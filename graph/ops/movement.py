"""Operators that move elements and change none: Identity, Reshape, Transpose, Concat."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from ...tir.expr import Expr
from ...tir.sizes import AnySize, Size, axis_of, closed_shape, factor_beside, product_of
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Array, Shape, TensorType, composed, inverse, permuted
from .base import (
    JoinableAxes,
    Operator,
    OperatorRole,
    Permutation,
    Permuted,
    Runs,
    check_arity,
    check_same_dtype,
    listed,
    normal_axis,
    refuse,
    shape_of,
    tensor_type,
)

_CHAINED = 32  # pieces of a Concat that are asked for one after the other; of more, by halves


@dataclass(frozen=True, slots=True)
class Identity(Operator):
    """The input itself."""

    role = OperatorRole.MOVEMENT
    rearranges = True

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        return types

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return arrays

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (x,) = tensors
        return (te.compute(shape_of(x), lambda *i: x[i], name=name),)

    def is_view(self, types: tuple[TensorType, ...]) -> bool:
        return True

    def unchanged_input(self, count: int, is_all: Callable[[int, int], bool]) -> int | None:
        return 0


@dataclass(frozen=True, slots=True)
class Reshape(Operator):
    """The same elements in row-major order under another shape."""

    shape: Shape

    role = OperatorRole.MOVEMENT
    rearranges = True

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        if types[0].elements != product_of(self.shape) or any(size < 0 for size in self.shape):
            problem = (
                f"{types[0]} has {types[0].elements} elements, "
                f"shape {list(self.shape)} has {product_of(self.shape)}"
            )
            refuse(self, problem, code="reshape-count")
        return (TensorType(types[0].dtype, self.shape),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (arrays[0].reshape(closed_shape(self.shape)),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (x,) = tensors
        shape = shape_of(x)

        def element(*indices: Expr) -> Expr:
            if 0 in x.shape:
                return te.const(0, x.dtype)
            source: list[Expr | int] = []
            for before, after in reshape_groups(shape, self.shape):
                extents = [self.shape[d] for d in after]
                source += _split(
                    _joined([indices[d] for d in after], extents), [shape[d] for d in before]
                )
            return x[tuple(source)]

        return (te.compute(self.shape, element, name=name),)

    def is_view(self, types: tuple[TensorType, ...]) -> bool:
        return True

    def unchanged_input(self, count: int, is_all: Callable[[int, int], bool]) -> int | None:
        return 0

    def absorb(self, before: Operator) -> Operator | None:
        return self if isinstance(before, Reshape) else None


@dataclass(frozen=True, slots=True)
class Transpose(Operator):
    """Axis d of the result is axis permutation[d] of the input."""

    permutation: tuple[int, ...]

    role = OperatorRole.MOVEMENT
    rearranges = True

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        if sorted(self.permutation) != list(range(types[0].rank)):
            problem = f"{self.permutation} is not a permutation of the axes of {types[0]}"
            refuse(self, problem, code="transpose-permutation")
        return (TensorType(types[0].dtype, permuted(types[0].shape, self.permutation)),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.asarray(arrays[0].transpose(self.permutation), order="C"),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (x,) = tensors
        back = inverse(self.permutation)
        shape = permuted(shape_of(x), self.permutation)
        return (te.compute(shape, lambda *i: x[tuple(i[d] for d in back)], name=name),)

    def is_view(self, types: tuple[TensorType, ...]) -> bool:
        shape = types[0].shape
        return 0 in shape or keeps_order(shape, self.permutation)

    def unchanged_input(self, count: int, is_all: Callable[[int, int], bool]) -> int | None:
        return 0 if self.permutation == tuple(range(len(self.permutation))) else None

    def absorb(self, before: Operator) -> Operator | None:
        if not isinstance(before, Transpose):
            return None
        return Transpose(composed(before.permutation, self.permutation))

    def joinable_axes(self, shape: Shape) -> JoinableAxes | None:
        return JoinableAxes((True,) * len(shape), self.permutation)

    def join_axes(self, runs: Runs) -> Operator:
        source = [self.permutation[run[0]] if run else 0 for run in runs]
        return Transpose(tuple(sorted(source).index(axis) for axis in source))


@dataclass(frozen=True, slots=True)
class Concat(Operator):
    """The inputs one after the other along `axis`, which is not negative."""

    axis: int

    role = OperatorRole.MOVEMENT
    rearranges = True

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, None)
        check_same_dtype(self, types)
        axis = normal_axis(self, self.axis, types[0].rank)
        rests = {(*type_.shape[:axis], *type_.shape[axis + 1 :]) for type_ in types}
        if len(rests) > 1 or len({type_.rank for type_ in types}) > 1:
            problem = f"inputs must agree on every axis but {axis}, got {listed(types)}"
            refuse(self, problem, code="concat-shape")
        shape = list(types[0].shape)
        shape[axis] = sum((type_.shape[axis] for type_ in types[1:]), types[0].shape[axis])
        return (TensorType(types[0].dtype, tuple(shape)),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.concatenate(arrays, axis=self.axis),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (result,) = self.infer(tuple(map(tensor_type, tensors)))
        axis = normal_axis(self, self.axis, result.rank)
        pieces = [tensor for tensor in tensors if tensor.shape[axis]] or [tensors[0]]
        extents = [piece.extents[axis] for piece in pieces]
        ends = list(accumulate(extents, operator.add))

        def element(*i: Expr) -> Expr:
            def read(number: int) -> Expr:
                piece, place = pieces[number], i[axis]
                if number:
                    place = place - ends[number - 1]
                found = piece[(*i[:axis], place, *i[axis + 1 :])]
                if number < len(pieces) - 1 or all(isinstance(n, int) for n in extents):
                    return found
                # always so: what all pieces have together is a size of its own
                return te.select(place < extents[number], found, te.const(0, found.dtype))

            def joined(first: int, last: int) -> Expr:
                """The pieces from `first` to `last`: one after the other, or halves of many."""
                if first == last:
                    return read(first)
                middle = first if len(pieces) <= _CHAINED else (first + last) // 2
                before = i[axis] < ends[middle]
                return te.select(before, joined(first, middle), joined(middle + 1, last))

            return joined(0, len(pieces) - 1)

        return (te.compute(result.shape, element, name=name),)

    def unchanged_input(self, count: int, is_all: Callable[[int, int], bool]) -> int | None:
        return 0 if count == 1 else None

    def permute_axes(self, permutation: Permutation) -> Permuted | None:
        return Permuted(Concat(permutation[self.axis]), permutation)

    def joinable_axes(self, shape: Shape) -> JoinableAxes | None:
        rank = len(shape)
        kinds = tuple(axis < self.axis for axis in range(rank))
        return JoinableAxes(kinds, tuple(range(rank)), frozenset({self.axis}))

    def join_axes(self, runs: Runs) -> Operator:
        return Concat(next(n for n, run in enumerate(runs) if self.axis in run))


def keeps_order(shape: Shape, permutation: tuple[int, ...]) -> bool:
    """Whether permuting only moves axes of size 1, so that the elements keep their order."""
    long = [axis for axis in permutation if shape[axis] != 1]
    return long == sorted(long)


def reshape_groups(
    before: Shape, after: Shape
) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
    """Split a reshape into the smallest runs of axes that hold the same elements: pairs (axes
    before, axes after).

    (2, 12, 5) -> (2, 3, 4, 5) gives ((0,), (0,)), ((1,), (1, 2)), ((2,), (3,)). Axes of size 1 left
    over at the end form pairs with one side empty. A shape without elements is one group.
    """
    if 0 in before:
        return ((tuple(range(len(before))), tuple(range(len(after)))),)
    groups = []
    i = j = 0
    while i < len(before) and j < len(after):
        first_i, first_j, a, b = i, j, before[i], after[j]
        i, j = i + 1, j + 1
        while a != b:
            if _divides(a, b):
                a, i = a * before[i], i + 1
            else:
                b, j = b * after[j], j + 1
        groups.append((tuple(range(first_i, i)), tuple(range(first_j, j))))
    if i < len(before) or j < len(after):
        groups.append((tuple(range(i, len(before))), tuple(range(j, len(after)))))
    return tuple(groups)


def _divides(a: AnySize, b: AnySize) -> bool:
    """Whether `a` is what lacks axes of two products that differ."""
    if isinstance(a, Size) or isinstance(b, Size):
        return factor_beside(b, a) is not None
    return a < b


def _joined(indices: list[Expr], extents: list[AnySize]) -> Expr | int:
    """The row-major position of `indices` among `extents`."""
    position: Expr | int = 0
    for index, extent in zip(indices, extents, strict=True):
        position = position * axis_of(extent) + index
    return position


def _split(position: Expr | int, extents: list[AnySize]) -> list[Expr | int]:
    """The indices among `extents` of a row-major position; an axis of size 1 has index 0."""
    indices: list[Expr | int] = [0] * len(extents)
    long = [axis for axis, extent in enumerate(extents) if extent != 1]
    for axis in reversed(long[1:]):
        extent = axis_of(extents[axis])
        indices[axis] = position % extent
        position = position // extent
    if long:
        indices[long[0]] = position
    return indices
