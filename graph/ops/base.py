"""What an operator is: a frozen value with a shape rule, a NumPy meaning, a tensor expression.

The three stand side by side in one file per family. `reference` is the meaning: it computes in the
dtype of its inputs, so that called with float64 it is the oracle. `express` says the same in the
language of kernels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal, NoReturn

import numpy as np

from ...tir.te import Tensor
from ..errors import ModelError
from ..types import Array, TensorType

Layout = Literal["NCHW", "NHWC"]


@dataclass(frozen=True, slots=True)
class Work:
    """What NumPy has to do for `reference`, counted before it is done.

    held: elements that lie in memory at once, at most. steps: elements that are touched one by one;
    a multiply-add of a matrix product, which goes in blocks, counts as a sixteenth of one.
    """

    held: int
    steps: int


@dataclass(frozen=True, slots=True)
class Operator(ABC):
    """One operator with its attributes as typed fields."""

    @abstractmethod
    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """The types of the outputs. Raises: ModelError when the inputs do not fit."""

    @abstractmethod
    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        """The outputs, computed by NumPy in the dtype of the inputs, which `infer` accepts."""

    @abstractmethod
    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        """The outputs as tensor expressions; `name` begins the name of every stage."""

    def work(self, types: tuple[TensorType, ...]) -> Work:
        """What `reference` takes on inputs of these types, which `infer` accepts: by default the
        inputs, the outputs, and as much as these for what lies between.
        """
        given = sum(type_.elements for type_ in types)
        made = sum(type_.elements for type_ in self.infer(types))
        return Work(given + 2 * made, given + made)

    @property
    def title(self) -> str:
        """The operator's name, as printed."""
        return type(self).__name__


def refuse(operator: Operator, problem: str, *, code: str) -> NoReturn:
    """Raise a ModelError that starts with the operator's name."""
    raise ModelError(f"{operator.title}: {problem}.", code=code)


def listed(types: tuple[TensorType, ...]) -> str:
    """The types in one line."""
    return ", ".join(map(str, types)) if types else "none"


def check_arity(
    operator: Operator, types: tuple[TensorType, ...], least: int, most: int | None
) -> None:
    """Refuse when the number of inputs is not between `least` and `most` (None: no upper bound)."""
    if least <= len(types) and (most is None or len(types) <= most):
        return
    expected = (
        f"{least}"
        if least == most
        else f"{least} or more"
        if most is None
        else f"{least} to {most}"
    )
    refuse(operator, f"takes {expected} inputs, got {len(types)}: {listed(types)}", code="op-arity")


def check_same_dtype(operator: Operator, types: tuple[TensorType, ...]) -> None:
    """Refuse inputs of different element types."""
    if len({type_.dtype for type_ in types}) > 1:
        refuse(
            operator, f"inputs must have one element type, got {listed(types)}", code="op-dtypes"
        )


def check_float(operator: Operator, types: tuple[TensorType, ...]) -> None:
    """Refuse inputs that are not floating-point numbers of one type."""
    check_same_dtype(operator, types)
    if not types[0].is_float:
        refuse(
            operator, f"expected float16, float32 or float64, got {types[0].dtype}", code="op-float"
        )


def check_number(operator: Operator, types: tuple[TensorType, ...]) -> None:
    """Refuse inputs that are not numbers of one type."""
    check_same_dtype(operator, types)
    if types[0].dtype == "bool":
        refuse(operator, "expected numbers, got bool", code="op-number")


def check_bool(operator: Operator, types: tuple[TensorType, ...]) -> None:
    """Refuse inputs that are not truth values."""
    if wrong := [type_ for type_ in types if type_.dtype != "bool"]:
        refuse(operator, f"expected bool, got {wrong[0].dtype}", code="op-bool")


def normal_axis(operator: Operator, axis: int, rank: int) -> int:
    """`axis` counted from the front. Raises: ModelError when it lies outside -rank .. rank-1."""
    if -rank <= axis < rank:
        return axis % rank
    refuse(operator, f"axis {axis} lies outside {-rank} .. {rank - 1}", code="op-axis")


def product_work(base: Work, multiply_adds: int) -> Work:
    """`base` with a matrix product."""
    return Work(base.held, base.steps + multiply_adds // 16)


def lowest(dtype: str) -> float | int:
    """The identity of max: -inf, or the least integer."""
    return float("-inf") if dtype.startswith("float") else int(np.iinfo(dtype).min)


def highest(dtype: str) -> float | int:
    """The identity of min: inf, or the greatest integer."""
    return float("inf") if dtype.startswith("float") else int(np.iinfo(dtype).max)


def tensor_type(tensor: Tensor) -> TensorType:
    """The type of a tensor of the expression language."""
    return TensorType(str(tensor.dtype), tensor.shape)
