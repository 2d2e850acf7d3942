"""Operators that work element by element, with NumPy's broadcasting: Add, Mul, Sum, Relu."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import numpy as np

from ...tir import te
from ...tir.expr import Expr
from ...tir.te import Tensor
from ..types import Array, TensorType
from .base import Operator, check_arity, check_number, listed, refuse, tensor_type


def broadcast(operator: Operator, types: tuple[TensorType, ...]) -> TensorType:
    """The common type of `types`.

    Raises: ModelError when two sizes of an axis differ and none is 1.
    """
    rank = max(type_.rank for type_ in types)
    shape = []
    for axis in range(-rank, 0):
        sizes = {type_.shape[axis] for type_ in types if type_.rank >= -axis} - {1}
        if len(sizes) > 1:
            problem = (
                f"shapes do not broadcast: axis {axis} has sizes {sorted(sizes)} in {listed(types)}"
            )
            refuse(operator, problem, code="op-broadcast")
        shape.append(sizes.pop() if sizes else 1)
    return TensorType(types[0].dtype, tuple(shape))


def broadcast_read(tensor: Tensor, indices: tuple[Expr, ...]) -> Expr:
    """The element of `tensor` that broadcasting aligns with `indices`."""
    aligned = indices[len(indices) - len(tensor.shape) :]
    pairs = zip(tensor.shape, aligned, strict=True)
    return tensor[tuple(0 if size == 1 else index for size, index in pairs)]


def pointwise(
    operator: Operator,
    tensors: tuple[Tensor, ...],
    name: str,
    combine: Callable[[Expr, Expr], Expr],
) -> tuple[Tensor, ...]:
    """One stage that folds the broadcast inputs with `combine`, from left to right."""
    shape = broadcast(operator, tuple(map(tensor_type, tensors))).shape

    def element(*indices: Expr) -> Expr:
        return reduce(combine, (broadcast_read(tensor, indices) for tensor in tensors))

    return (te.compute(shape, element, name=name),)


@dataclass(frozen=True, slots=True)
class Add(Operator):
    """The sum of two tensors."""

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 2, 2)
        check_number(self, types)
        return (broadcast(self, types),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.add(*arrays),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        return pointwise(self, tensors, name, lambda a, b: a + b)


@dataclass(frozen=True, slots=True)
class Mul(Operator):
    """The product of two tensors."""

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 2, 2)
        check_number(self, types)
        return (broadcast(self, types),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.multiply(*arrays),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        return pointwise(self, tensors, name, lambda a, b: a * b)


@dataclass(frozen=True, slots=True)
class Sum(Operator):
    """The sum of one or more tensors, from left to right."""

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, None)
        check_number(self, types)
        return (broadcast(self, types),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (reduce(np.add, arrays),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        return pointwise(self, tensors, name, lambda a, b: a + b)


@dataclass(frozen=True, slots=True)
class Relu(Operator):
    """max(x, 0), element by element."""

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        check_number(self, types)
        return types

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        return (np.maximum(x, np.zeros((), x.dtype)),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (x,) = tensors
        zero = te.const(0, x.dtype)
        return (te.compute(x.shape, lambda *i: te.maximum(x[i], zero), name=name),)
