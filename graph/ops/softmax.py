"""Softmax over one or several axes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...tir import te
from ...tir.expr import Expr
from ...tir.te import Tensor
from ..types import Array, TensorType
from .base import Operator, check_arity, check_float, refuse


@dataclass(frozen=True, slots=True)
class Softmax(Operator):
    """exp(x - m) / sum of exp(x - m), m and the sum taken over all of `axes` together (ascending,
    not negative).

    One axis is ONNX's meaning from opset 13 on; all axes from one on is its meaning before.
    """

    axes: tuple[int, ...]

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        check_float(self, types)
        if not self.axes or list(self.axes) != sorted(set(self.axes) & set(range(types[0].rank))):
            refuse(
                self, f"axes {self.axes} are not ascending axes of {types[0]}", code="softmax-axes"
            )
        return types

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        if x.size == 0:
            return (x,)
        powers = np.exp(x - x.max(axis=self.axes, keepdims=True))
        return (powers / powers.sum(axis=self.axes, keepdims=True),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (x,) = tensors
        kept = tuple(1 if d in self.axes else size for d, size in enumerate(x.shape))

        def steps() -> dict[int, te.ReduceAxis]:
            return {d: te.reduce_axis(x.shape[d], name=f"r{d}") for d in self.axes}

        def at(tensor: Tensor, indices: tuple[Expr, ...], along: dict[int, te.ReduceAxis]) -> Expr:
            return tensor[tuple(along.get(d, index) for d, index in enumerate(indices))]

        def reduced(indices: tuple[Expr, ...]) -> tuple[Expr | int, ...]:
            return tuple(0 if d in self.axes else index for d, index in enumerate(indices))

        a, b = steps(), steps()
        largest = te.compute(
            kept, lambda *i: te.max_any(at(x, i, a), axis=tuple(a.values())), name=f"{name}_max"
        )
        powers = te.compute(
            x.shape, lambda *i: te.exp(x[i] - largest[reduced(i)]), name=f"{name}_exp"
        )
        total = te.compute(
            kept, lambda *i: te.sum(at(powers, i, b), axis=tuple(b.values())), name=f"{name}_sum"
        )
        return (te.compute(x.shape, lambda *i: powers[i] / total[reduced(i)], name=name),)
