"""Rotation: pairs of numbers turned by angles that go by their places (J. Su and others, RoFormer:
Enhanced Transformer with Rotary Position Embedding, 2021).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from ...tir.expr import Expr
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Array, Floats, TensorType
from .base import (
    Operator,
    OperatorRole,
    check_arity,
    check_float,
    listed,
    refuse,
    shape_of,
    tensor_type,
)


@dataclass(frozen=True, slots=True)
class Rotation(Operator):
    """The first input, [batch, place, head, number] or with `outer` [batch, head, place, number],
    where (a, b) becomes (a cos - b sin, b cos + a sin) for each pair of the first `width` numbers
    of a head: numbers that stand side by side (`interleaved`), or one of the first half and its
    like of the second half. The other inputs: cos and sin of [batch, place, pair].
    """

    width: int
    interleaved: bool = False
    outer: bool = False

    role = OperatorRole.GENERAL
    operand_names = ("x", "cos", "sin")

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 3, 3)
        check_float(self, types)
        x, *angles = types
        wanted = (*x.shape[:1], *x.shape[1 + self.outer : 2 + self.outer], self.width // 2)
        fits = x.rank == 4 and self.width % 2 == 0 and 0 < self.width <= x.shape[3]
        if not fits or any(type_.shape != wanted for type_ in angles):
            problem = f"expected heads, cos and sin for pairs of {self.width} numbers"
            refuse(self, f"{problem}, got {listed(types)}", code="rotation-fit")
        return (x,)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, *angles = (cast(Floats, array) for array in arrays)
        axis = 1 if self.outer else 2
        cos, sin = (cast(Floats, np.expand_dims(angle, axis)) for angle in angles)
        half, result = self.width // 2, np.array(x)
        first, second = slice(0, half), slice(half, self.width)
        if self.interleaved:
            first, second = slice(0, self.width, 2), slice(1, self.width, 2)
        a, b = x[..., first], x[..., second]
        result[..., first], result[..., second] = a * cos - b * sin, b * cos + a * sin
        return (result,)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        x, cos, sin = tensors
        (result,) = self.infer(tuple(map(tensor_type, tensors)))
        half, whole = self.width // 2, self.width == shape_of(x)[3]

        def element(*i: Expr) -> Expr:
            *outer, d = i
            batch, place = outer[0], outer[1 + self.outer]

            def turned(pair: Expr, a: Expr | int, b: Expr | int, *, is_first: bool) -> Expr:
                own, other = (x[(*outer, d + step)] for step in (a, b))
                moved = other * sin[batch, place, pair]
                kept = own * cos[batch, place, pair]
                return kept - moved if is_first else kept + moved

            if self.interleaved:
                pair = te.clamp_index(d // 2, half)
                is_first = te.eq(d % 2, 0)
                made = te.select(
                    is_first,
                    turned(pair, 0, 1, is_first=True),
                    turned(pair, 0, -1, is_first=False),
                )
            else:
                made = te.select(
                    d < half,
                    turned(d, 0, half, is_first=True),
                    turned(d - half, 0, -half, is_first=False),
                )
            return made if whole else te.select(d < self.width, made, x[i])

        return (te.compute(result.shape, element, name=name),)
