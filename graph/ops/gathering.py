"""Operators that read where another tensor says: Gather, GatherElements, GatherND.

An index counts from the end where it is negative. One outside of -n .. n-1 has no meaning: a call
raises IndexError, after it has run with the nearest index that exists, which the reference takes.
Of a tensor without elements nothing can be read, so that the result has none either.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...tir.dim import Dim
from ...tir.expr import Expr
from ...tir.sizes import AnySize, axis_of, closed
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Array, Shape, TensorType
from .base import Operator, OperatorRole, check_arity, normal_axis, refuse, shape_of, tensor_type


@dataclass(frozen=True, slots=True)
class Gather(Operator):
    """y[*p, *i, *q] = x[*p, indices[*i], *q] with p for the axes before `axis`, which is not
    negative.
    """

    axis: int

    role = OperatorRole.MOVEMENT
    checks_indices = True
    rearranges = False

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        _check_indices(self, types)
        x, indices = types
        normal_axis(self, self.axis, x.rank)
        shape = (*x.shape[: self.axis], *indices.shape, *x.shape[self.axis + 1 :])
        _check_source(self, types, x.shape[self.axis : self.axis + 1])
        return (TensorType(x.dtype, shape),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, indices = arrays
        return (np.take(x, places_from_front(indices, x.shape[self.axis]), self.axis),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        x, indices = tensors
        (result,) = self.infer(tuple(map(tensor_type, tensors)))
        shape, end = shape_of(x), self.axis + len(indices.shape)

        def element(*i: Expr) -> Expr:
            if 0 in x.shape:
                return te.const(0, x.dtype)
            at = index_from_front(indices[i[self.axis : end]], shape[self.axis])
            return where_any(x[(*i[: self.axis], at, *i[end:])], shape[self.axis])

        return (te.compute(result.shape, element, name=name),)


@dataclass(frozen=True, slots=True)
class GatherElements(Operator):
    """y[i] = x[i with indices[i] at `axis`]; `axis` is not negative."""

    axis: int

    role = OperatorRole.MOVEMENT
    checks_indices = True
    rearranges = False

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        _check_indices(self, types)
        x, indices = types
        normal_axis(self, self.axis, x.rank)
        pairs = zip(x.shape, indices.shape, strict=False)
        large = [d for d, (has, wants) in enumerate(pairs) if d != self.axis and wants > has]
        if x.rank != indices.rank or large:
            problem = f"indices {indices} do not fit {x} on every axis but {self.axis}"
            refuse(self, problem, code="gather-elements-shape")
        _check_source(self, types, x.shape[self.axis : self.axis + 1])
        return (TensorType(x.dtype, indices.shape),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, indices = arrays
        sizes = (None if d == self.axis else size for d, size in enumerate(indices.shape))
        part = x[tuple(map(slice, sizes))]
        return (
            np.take_along_axis(part, places_from_front(indices, x.shape[self.axis]), self.axis),
        )

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        x, indices = tensors
        shape = shape_of(x)

        def element(*i: Expr) -> Expr:
            if 0 in x.shape:
                return te.const(0, x.dtype)
            at = index_from_front(indices[i], shape[self.axis])
            return where_any(x[(*i[: self.axis], at, *i[self.axis + 1 :])], shape[self.axis])

        return (te.compute(shape_of(indices), element, name=name),)


@dataclass(frozen=True, slots=True)
class GatherND(Operator):
    """y[*b, *i, *r] = x[*b, *indices[*b, *i], *r]: the last axis of `indices` holds a position in
    the first of the axes of x behind the first `batch` ones, which both inputs have.
    """

    batch: int = 0

    role = OperatorRole.MOVEMENT
    checks_indices = True
    rearranges = False

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        _check_indices(self, types)
        x, indices = types
        batch = self.batch
        depth = closed(indices.shape[-1]) if indices.rank else 0
        if not (0 <= batch < indices.rank and 0 < depth <= x.rank - batch):
            problem = f"indices {indices} name no positions in {x} behind {batch} batch axes"
            refuse(self, problem, code="gather-nd-depth")
        if x.shape[:batch] != indices.shape[:batch]:
            problem = f"{x} and {indices} differ in the first {batch} axes"
            refuse(self, problem, code="gather-nd-batch")
        shape = (*indices.shape[:-1], *x.shape[batch + depth :])
        _check_source(self, types, x.shape[batch : batch + depth])
        return (TensorType(x.dtype, shape),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, indices = arrays
        batch = np.indices(indices.shape[:-1], sparse=True)[: self.batch]
        sizes = x.shape[self.batch : self.batch + indices.shape[-1]]
        position = np.moveaxis(places_from_front(indices, sizes), -1, 0)
        return (x[(*batch, *position)],)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        x, indices = tensors
        (result,) = self.infer(tuple(map(tensor_type, tensors)))
        outer = len(indices.shape) - 1
        depth = indices.shape[-1]

        def element(*i: Expr) -> Expr:
            if 0 in x.shape:
                return te.const(0, x.dtype)
            sizes = shape_of(x)[self.batch : self.batch + depth]
            at = [index_from_front(indices[(*i[:outer], n)], size) for n, size in enumerate(sizes)]
            return where_any(x[(*i[: self.batch], *at, *i[outer:])], *sizes)

        return (te.compute(result.shape, element, name=name),)


def _check_indices(operator: Operator, types: tuple[TensorType, ...]) -> None:
    """Refuse what is not a tensor and a tensor of int32 or int64."""
    check_arity(operator, types, 2, 2)
    if types[1].dtype not in ("int32", "int64"):
        refuse(operator, f"expected int32 or int64 indices, got {types[1]}", code="gather-indices")


def _check_source(operator: Operator, types: tuple[TensorType, ...], sizes: Shape) -> None:
    """Refuse indices into an axis without elements, where there are any."""
    if 0 in sizes and types[1].elements != 0:
        refuse(operator, f"{types[1]} has indices into no elements", code="gather-empty")


def places_from_front(indices: Array, sizes: int | tuple[int, ...]) -> NDArray[np.int64]:
    """Indices from the front, moved into axes of `sizes`."""
    extent = np.asarray(sizes)
    places = indices.astype(np.int64)
    return np.clip(np.where(places < 0, places + extent, places), 0, np.maximum(extent - 1, 0))


def index_from_front(value: Expr, size: AnySize) -> Expr:
    """An index from the front, checked."""
    position = te.cast(value, "int64")
    counted = te.select(position < 0, position + axis_of(size), position)
    return te.checked(counted, size, what="index from the front")


def where_any(value: Expr, *sizes: AnySize) -> Expr:
    """What is read at data along axes of these sizes; 0 in a call that finds one of them empty."""
    for size in map(axis_of, sizes):
        if isinstance(size, Dim) and size.low == 0:
            value = te.select(size > 0, value, te.const(0, value.dtype))
    return value
