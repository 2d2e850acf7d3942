"""Operators: Mish, element by element, and the means of neighbours along the last axis."""

from __future__ import annotations

import numpy as np

import tilewright as tw
from tilewright import te
from tilewright.graph.ops.base import check_arity, check_float, refuse, shape_of
from tilewright.tir.expr import Expr
from tilewright.tir.sizes import axis_of


@tw.operator("my.ops::Mish", version=1, onnx=("my.ops", "Mish", (1,)), aten="my::mish")
class Mish(tw.Elementwise):
    """x * tanh(log(1 + exp(beta * x)))."""

    beta: float = 1.0

    arity = (1, 1)
    takes = "float"

    def reference(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        (x,) = arrays
        scaled = x * self.beta
        soft = np.maximum(scaled, 0.0) + np.log1p(np.exp(-np.abs(scaled)))
        return (x * np.tanh(soft),)

    def element(self, *elements: Expr) -> Expr:
        (x,) = elements
        scaled = x * self.beta
        return x * te.tanh(te.maximum(scaled, 0.0) + te.log1p(te.exp(-te.abs(scaled))))


@tw.operator("my.ops::NearMean", onnx=("my.ops", "NearMean", (1,)), aten="my::near_mean")
class NearMean(tw.Operator):
    """The mean of each `width` elements along the last axis that stand side by side."""

    width: int

    role = tw.OperatorRole.GENERAL

    def infer(self, types: tuple[tw.TensorType, ...]) -> tuple[tw.TensorType, ...]:
        check_arity(self, types, 1, 1)
        check_float(self, types)
        (x,) = types
        if not x.rank or self.width < 1 or not x.shape[-1] >= self.width:
            refuse(self, f"width is {self.width}, and x {x}", code="near-mean-width")
        return (tw.TensorType(x.dtype, (*x.shape[:-1], x.shape[-1] - self.width + 1)),)

    def reference(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        (x,) = arrays
        windows = np.lib.stride_tricks.sliding_window_view(x, self.width, axis=-1)
        return (windows.mean(axis=-1, dtype=x.dtype),)

    def facts(self, types: tuple[tw.TensorType, ...]) -> tuple[Expr, ...]:
        """Where a run decides the length, the last window ends inside of it."""
        (x,), (made,) = types, self.infer(types)
        given, found = axis_of(x.shape[-1]), axis_of(made.shape[-1])
        return () if isinstance(given, int) else (given - found - (self.width - 1),)

    def express(self, *tensors: te.Tensor, name: str) -> tuple[te.Tensor, ...]:
        (x,) = tensors
        *rows, length = shape_of(x)
        shape = (*rows, length - self.width + 1)
        k = te.reduce_axis(self.width, name="k")
        total = te.compute(
            shape, lambda *at: te.sum(x[(*at[:-1], at[-1] + k)], axis=k), name=f"{name}_sum"
        )
        return (te.compute(shape, lambda *at: total[at] / float(self.width), name=name),)
