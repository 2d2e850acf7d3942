"""Softmax and LogSoftmax over one or several axes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from ...tir.expr import Expr
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Array, Floats, Shape, TensorType
from .base import (
    JoinableAxes,
    Operator,
    OperatorRole,
    Permutation,
    Permuted,
    Runs,
    check_arity,
    check_float,
    shape_of,
)
from .reduction import check_axes, reduced, row

_LOG2_E = math.log2(math.e)


def exponential(x: Expr, largest: Expr) -> Expr:
    """e ** (x - largest), as a power of two.

    The product rounds the exponent by half an ulp, as the difference did before it, and 2**x takes
    less arithmetic than e**x, which would have to keep the exponent exact.
    """
    return power(x - largest)


def power(difference: Expr) -> Expr:
    """e ** difference, in the same way."""
    return te.exp2(difference * _LOG2_E)


@dataclass(frozen=True, slots=True)
class Softmax(Operator):
    """exp(x - m) / sum of exp(x - m), m and the sum taken over all of `axes` together (ascending,
    not negative).

    One axis is ONNX's meaning from opset 13 on; all axes from one on is its meaning before.
    """

    axes: tuple[int, ...]

    role = OperatorRole.ROWWISE

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        check_float(self, types)
        check_axes(self, self.axes, types[0])
        return types

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        if x.size == 0:
            return (x,)
        powers = np.exp(x - x.max(axis=self.axes, keepdims=True))
        return (powers / powers.sum(axis=self.axes, keepdims=True),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (x,) = tensors
        largest = reduced(x, self.axes, True, f"{name}_max", te.max_any)
        powers = te.compute(
            shape_of(x),
            lambda *i: exponential(x[i], largest[row(i, self.axes)]),
            name=f"{name}_exp",
        )
        total = reduced(powers, self.axes, True, f"{name}_sum", te.sum)
        # one division for each row: the sum is at least 1, so its reciprocal loses nothing
        scale = te.compute(shape_of(total), lambda *i: 1.0 / total[i], name=f"{name}_scale")
        return (
            te.compute(shape_of(x), lambda *i: powers[i] * scale[row(i, self.axes)], name=name),
        )

    def permute_axes(self, permutation: Permutation) -> Permuted | None:
        axes = tuple(sorted(permutation[axis] for axis in self.axes))
        return Permuted(replace(self, axes=axes), permutation)

    def joinable_axes(self, shape: Shape) -> JoinableAxes | None:
        if all(shape[axis] == 1 for axis in self.axes):
            return None
        rank = len(shape)
        return JoinableAxes(tuple(d in self.axes for d in range(rank)), tuple(range(rank)))

    def join_axes(self, runs: Runs) -> Operator:
        return Softmax(tuple(n for n, run in enumerate(runs) if run and run[0] in self.axes))


@dataclass(frozen=True, slots=True)
class LogSoftmax(Operator):
    """The logarithm of Softmax: (x - m) - log(sum of exp(x - m)), which loses no small value."""

    axes: tuple[int, ...]

    role = OperatorRole.ROWWISE

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        check_float(self, types)
        check_axes(self, self.axes, types[0])
        return types

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x = cast(Floats, arrays[0])
        if x.size == 0:
            return (x,)
        shifted = x - x.max(axis=self.axes, keepdims=True)
        return (shifted - np.log(np.exp(shifted).sum(axis=self.axes, keepdims=True)),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (x,) = tensors
        largest = reduced(x, self.axes, True, f"{name}_max", te.max_any)

        def shifted(i: tuple[Expr, ...]) -> Expr:
            return x[i] - largest[row(i, self.axes)]

        total = reduced(x, self.axes, True, f"{name}_sum", te.sum, lambda i: te.exp(shifted(i)))
        # one logarithm for each row
        lost = te.compute(shape_of(total), lambda *i: te.log(total[i]), name=f"{name}_log")
        return (
            te.compute(shape_of(x), lambda *i: shifted(i) - lost[row(i, self.axes)], name=name),
        )

    def permute_axes(self, permutation: Permutation) -> Permuted | None:
        axes = tuple(sorted(permutation[axis] for axis in self.axes))
        return Permuted(replace(self, axes=axes), permutation)
