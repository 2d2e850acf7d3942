"""What the operators that work element by element have in common: NumPy's broadcasting.

An element of the result is a function of the elements of the inputs that broadcasting aligns with
it. A subclass gives that function twice, by NumPy and as an expression.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Literal

import numpy as np

from ...tir.analysis.expr_size import height, occurrences
from ...tir.dtype import dtype
from ...tir.expr import Expr, Var
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Shape, Splat, TensorType, numpy_type
from .base import (
    InlineCost,
    JoinableAxes,
    Number,
    Operator,
    OperatorRole,
    check_arity,
    check_bool,
    check_float,
    check_integer,
    check_number,
    check_same_dtype,
    computed_type,
    listed,
    refuse,
    shape_of,
    tensor_type,
)

Takes = Literal["any", "bool", "float", "integer", "number"]

_CHECKS = {
    "any": check_same_dtype,
    "bool": check_bool,
    "float": check_float,
    "integer": check_integer,
    "number": check_number,
}


@dataclass(frozen=True, slots=True)
class Elementwise(Operator):
    """A function of numbers, applied to each element.

    arity: least and most inputs, None for no upper bound. takes: the element types of the inputs,
    which all have the same. gives: that of the result, "" for that of the inputs. neutral: what the
    second input may be everywhere, and the first one of a commutative operator, without changing
    the other.
    """

    role = OperatorRole.ELEMENTWISE
    arity: ClassVar[tuple[int, int | None]] = (2, 2)
    takes: ClassVar[Takes] = "number"
    gives: ClassVar[Literal["", "bool"]] = ""
    neutral: ClassVar[int | None] = None

    @abstractmethod
    def element(self, *elements: Expr) -> Expr:
        """One element of the result from one of each input."""

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, *self.arity)
        _CHECKS[self.takes](self, types)
        return (TensorType(self.gives or types[0].dtype, broadcast(self, types).shape),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        shape = broadcast(self, tuple(map(tensor_type, tensors))).shape

        def element(*indices: Expr) -> Expr:
            return self.element(*(broadcast_read(tensor, indices) for tensor in tensors))

        return (te.compute(shape, element, name=name),)

    def unchanged_input(self, count: int, is_all: Callable[[int, int], bool]) -> int | None:
        if count == 1 and self.arity[1] is None:
            return 0
        if self.neutral is None:
            return None
        if is_all(1, self.neutral):
            return 0
        return 1 if self.commutative and is_all(0, self.neutral) else None

    def fold_splats(self, splats: Sequence[Splat]) -> Number | None:
        scalars = [np.asarray(splat.value, numpy_type(splat.dtype)) for splat in splats]
        with np.errstate(all="ignore"):
            number: Number = self.compute(*scalars)[0].item()
        return number

    def inline_cost(self, dtypes: tuple[str, ...]) -> InlineCost:
        return _inline_cost(self, dtypes)

    def joinable_axes(self, shape: Shape) -> JoinableAxes | None:
        return JoinableAxes((True,) * len(shape), tuple(range(len(shape))))


@cache
def _inline_cost(operator: Elementwise, dtypes: tuple[str, ...]) -> InlineCost:
    read = [Var(f"x{n}", computed_type(dtype(name))) for n, name in enumerate(dtypes)]
    made = operator.element(*read)
    return InlineCost(height(made) - 1, tuple(occurrences(made, var) for var in read))


def broadcast(operator: Operator, types: tuple[TensorType, ...]) -> TensorType:
    """The common type of `types`.

    Raises: ModelError when two sizes of an axis differ and none is 1.
    """
    rank = max(type_.rank for type_ in types)
    shape = []
    for axis in range(-rank, 0):
        sizes = {type_.shape[axis] for type_ in types if type_.rank >= -axis} - {1}
        if len(sizes) > 1:
            distinct = f"{sorted(sizes, key=str)} in {listed(types)}"
            problem = f"shapes do not broadcast: axis {axis} has sizes {distinct}"
            refuse(operator, problem, code="op-broadcast")
        shape.append(sizes.pop() if sizes else 1)
    return TensorType(types[0].dtype, tuple(shape))


def broadcast_read(tensor: Tensor, indices: tuple[Expr, ...]) -> Expr:
    """The element of `tensor` that broadcasting aligns with `indices`."""
    aligned = indices[len(indices) - len(tensor.shape) :]
    pairs = zip(shape_of(tensor), aligned, strict=True)
    return tensor[tuple(0 if size == 1 else index for size, index in pairs)]
