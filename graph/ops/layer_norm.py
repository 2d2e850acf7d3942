"""Normalisation by statistics of the element's own row: LayerNormalization, RMSNormalization.

Mean and variance take two passes over the data, the second of squared differences from the mean, so
that a large mean costs no digits. GroupNormalization and InstanceNormalization are
LayerNormalization of reshaped data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np

from ...tir.expr import Expr
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Array, Floats, TensorType
from .base import Operator, OperatorRole, check_arity, check_float, listed, refuse, shape_of
from .elementwise import broadcast, broadcast_read
from .reduction import counted, counted_in, divided, reduced, row


@dataclass(frozen=True, slots=True)
class LayerNormalization(Operator):
    """(x - mean) * (1 / sqrt(variance + epsilon)) * scale + bias, mean and variance over `axis`
    and all axes behind it.

    Inputs: x, scale and, if wanted, bias, which broadcast to x. axis: not negative.
    """

    axis: int
    epsilon: float = 1e-5

    role = OperatorRole.ROWWISE

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 2, 3)
        return _checked(self, types, self.axis)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, *affine = (cast(Floats, array) for array in arrays)
        axes = tuple(range(self.axis, x.ndim))
        with np.errstate(all="ignore"):
            centred = x - _mean(x, axes)
            inverse = 1 / np.sqrt(_mean(centred * centred, axes) + self.epsilon)
            y = centred * inverse.astype(x.dtype) * affine[0]
        return (y + affine[1] if len(affine) > 1 else y,)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        x, *affine = tensors
        axes = tuple(range(self.axis, len(x.shape)))
        mean = _mean_of(x, axes, f"{name}_mean", lambda i: x[i])

        def square(i: tuple[Expr, ...]) -> Expr:
            centred = x[i] - mean[row(i, axes)]
            return centred * centred

        variance = _mean_of(x, axes, f"{name}_variance", square)
        root = _root(variance, self.epsilon, f"{name}_root")
        # as ONNX defines it: times the reciprocal, which is one division for each row
        inverse = _inverse(root, f"{name}_inverse")

        def element(*i: Expr) -> Expr:
            own = row(i, axes)
            y = (x[i] - mean[own]) * inverse[own] * broadcast_read(affine[0], i)
            return y + broadcast_read(affine[1], i) if len(affine) > 1 else y

        return (te.compute(shape_of(x), element, name=name),)


@dataclass(frozen=True, slots=True)
class RMSNormalization(Operator):
    """x / sqrt(mean of x * x + epsilon) * scale, the mean over `axis` and all axes behind it.

    Inputs: x and scale, which broadcasts to x. axis: not negative. inverse: x is multiplied by the
    reciprocal of the root, which rounds twice and divides once for each row.
    """

    axis: int
    epsilon: float = 1e-5
    inverse: bool = False

    role = OperatorRole.ROWWISE

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 2, 2)
        return _checked(self, types, self.axis)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, scale = (cast(Floats, array) for array in arrays)
        axes = tuple(range(self.axis, x.ndim))
        with np.errstate(all="ignore"):
            root = np.sqrt(_mean(x * x, axes) + self.epsilon)
            return ((x * (1 / root) if self.inverse else x / root) * scale,)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        x, scale = tensors
        axes = tuple(range(self.axis, len(x.shape)))
        squares = _mean_of(x, axes, f"{name}_squares", lambda i: x[i] * x[i])
        root = _root(squares, self.epsilon, f"{name}_root")
        inverse = _inverse(root, f"{name}_inverse") if self.inverse else None

        def element(*i: Expr) -> Expr:
            own = row(i, axes)
            y = x[i] / root[own] if inverse is None else x[i] * inverse[own]
            return y * broadcast_read(scale, i)

        return (te.compute(shape_of(x), element, name=name),)


def _checked(
    operator: Operator, types: tuple[TensorType, ...], axis: int
) -> tuple[TensorType, ...]:
    check_float(operator, types)
    x = types[0]
    if not 0 <= axis < x.rank:
        refuse(operator, f"{x} has no axis {axis} to begin with", code="layer-norm-axis")
    if broadcast(operator, types).shape != x.shape:
        problem = f"scale and bias must broadcast to the data, got {listed(types)}"
        refuse(operator, problem, code="layer-norm-scale")
    return (x,)


def _mean(x: Floats, axes: tuple[int, ...]) -> Floats:
    return cast(Floats, np.sum(x, axis=axes, keepdims=True) / counted(x.shape, axes))


def _mean_of(
    x: Tensor, axes: tuple[int, ...], name: str, element: Callable[[tuple[Expr, ...]], Expr]
) -> Tensor:
    """The mean of `element(i)` along `axes`, which stay with size 1."""
    total = reduced(x, axes, True, f"{name}_sum", te.sum, element)
    return divided(total, counted_in(x, axes), name)


def _root(mean: Tensor, epsilon: float, name: str) -> Tensor:
    return te.compute(shape_of(mean), lambda *i: te.sqrt(mean[i] + epsilon), name=name)


def _inverse(root: Tensor, name: str) -> Tensor:
    return te.compute(shape_of(root), lambda *i: 1.0 / root[i], name=name)
