"""Products of floats of 16 bits in float32: each number is converted where it is read, and products
and sums are those of float32.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ...tir.dtype import FLOAT32
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Array, TensorType
from .base import Operator, OperatorRole, ReferenceWork, check_arity, listed, refuse
from .convolution import Convolution
from .matmul import MatMul

HALVES = ("float16", "bfloat16")


@dataclass(frozen=True, slots=True)
class HalfMatMul(Operator):
    """MatMul of floats of 16 bits, or of these and float32, in float32."""

    role = OperatorRole.GENERAL
    operand_names = ("a", "b")

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 2, 2)
        _check_halves(self, types)
        return MatMul().infer(tuple(TensorType("float32", type_.shape) for type_ in types))

    def work(self, types: tuple[TensorType, ...]) -> ReferenceWork:
        return MatMul().work(tuple(TensorType("float32", type_.shape) for type_ in types))

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return MatMul().reference(*_converted(arrays))

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        return MatMul().express(*map(_read, tensors), name=name)


@dataclass(frozen=True, slots=True)
class HalfConv(Convolution):
    """Conv of floats of 16 bits, or of these and float32, in float32."""

    operand_names: ClassVar[tuple[str, ...]] = ("x", "w")
    widens = True  # so that data is padded in 16 bits, of which instructions multiply pairs

    def channels_last(self) -> HalfConv:
        return replace(self, layout="NHWC")

    def result_dtype(self, types: tuple[TensorType, ...]) -> str:
        check_arity(self, types, 2, 2)
        _check_halves(self, types)
        return "float32"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        # slots make another class of this one, which `super` would not find
        return Convolution.reference(self, *_converted(arrays))


def _check_halves(operator: Operator, types: tuple[TensorType, ...]) -> None:
    """Refuse what is not float32 or of 16 bits."""
    if any(type_.dtype not in (*HALVES, "float32") for type_ in types):
        problem = f"expected float16, bfloat16 or float32, got {listed(types)}"
        refuse(operator, problem, code="half-types")


def _converted(arrays: tuple[Array, ...]) -> tuple[Array, ...]:
    """The arrays in the type in which they are multiplied: float32, or what a check computes in."""
    kind = np.result_type(np.float32, *(a.dtype for a in arrays if a.dtype.name not in HALVES))
    return tuple(array.astype(kind, copy=False) for array in arrays)


def _read(tensor: Tensor) -> Tensor:
    """A tensor as float32; itself where it is that."""
    if tensor.type == FLOAT32:
        return tensor
    return te.compute(
        tensor.extents, lambda *at: te.cast(tensor[at], "float32"), name=f"{tensor.name}_wide"
    )
