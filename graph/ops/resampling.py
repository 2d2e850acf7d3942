"""Resample: along one axis each element is a weighted sum of neighbours that tables name."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...tir.expr import Expr
from ...tir.sizes import closed, largest
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Array, TensorType
from .base import (
    Operator,
    OperatorRole,
    Permutation,
    Permuted,
    ReferenceWork,
    check_arity,
    check_float,
    listed,
    normal_axis,
    refuse,
    shape_of,
    tensor_type,
)


@dataclass(frozen=True, slots=True)
class Resample(Operator):
    """y[*p, i, *q] = sum over t of x[*p, starts[i] + t, *q] * weights[i, t], with p for the axes
    before `axis`, which is not negative and has a fixed size.

    Inputs: x; starts, int64 of [n]; weights of [n, taps]. An index outside of the axis is that of
    its first or last element.
    """

    axis: int

    role = OperatorRole.GENERAL
    operand_names = ("x", "starts", "weights")

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 3, 3)
        x, starts, weights = types
        check_float(self, (x, weights))
        normal_axis(self, self.axis, x.rank)
        fitting = weights.rank == 2 and starts == TensorType("int64", weights.shape[:1])
        if not fitting or (closed(x.shape[self.axis]) == 0 and weights.elements != 0):
            problem = f"{listed(types[1:])} are no starts and weights for axis {self.axis} of {x}"
            refuse(self, problem, code="resample-tables")
        shape = (*x.shape[: self.axis], *starts.shape, *x.shape[self.axis + 1 :])
        return (TensorType(x.dtype, shape),)

    def work(self, types: tuple[TensorType, ...]) -> ReferenceWork:
        (result,), base = self.infer(types), Operator.work(self, types)
        count = largest(result.elements)
        return ReferenceWork(base.held + 2 * count, base.steps + count * closed(types[2].shape[1]))

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, starts, weights = arrays
        shape = [*x.shape]
        shape[self.axis] = starts.size
        total, behind = np.zeros(shape, x.dtype), (1,) * (x.ndim - self.axis - 1)
        if total.size:
            for tap in range(weights.shape[1]):
                at = np.clip(starts.astype(np.int64) + tap, 0, x.shape[self.axis] - 1)
                part = np.multiply(np.take(x, at, self.axis), weights[:, tap].reshape(-1, *behind))
                total = np.add(total, part, dtype=x.dtype)
        return (total,)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        x, starts, weights = tensors
        (result,) = self.infer(tuple(map(tensor_type, tensors)))
        axis = self.axis
        size, taps = closed(shape_of(x)[axis]), closed(shape_of(weights)[1])
        if size == 0 or taps == 0:
            return (te.compute(result.shape, lambda *_: te.const(0, x.dtype), name=name),)
        t = te.reduce_axis(taps, name="t")

        def element(*i: Expr) -> Expr:
            # every start lies within the axis, but an index that data give needs bounds
            at = te.clamp_index(starts[i[axis]] + t, size)
            return te.sum(x[(*i[:axis], at, *i[axis + 1 :])] * weights[i[axis], t], axis=t)

        return (te.compute(result.shape, element, name=name),)

    def permute_axes(self, permutation: Permutation) -> Permuted | None:
        return Permuted(replace(self, axis=permutation[self.axis]), permutation)
