"""Operators that make integers of floating-point numbers by a scale: DynamicQuantizeLinear."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np

from ...tir.expr import Expr
from ...tir.reference.arithmetic import convert_array
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Array, Floats, TensorType
from .base import Operator, OperatorRole, check_arity, check_float, shape_of

LEVELS = 255.0  # the largest uint8


def _whole(x: Tensor, combine: Callable[..., Expr], name: str) -> Tensor:
    """All elements combined, as a vector of one: of each row, then of the rows, for a reduction to
    rows runs in vectors.
    """
    *around, size = (1, *shape_of(x)) if x.shape else (1, 1)

    def row(_: Expr, *i: Expr) -> Expr:
        r = te.reduce_axis(size, name="r")
        return combine(x[(*i, r) if x.shape else ()], axis=r)

    rows = te.compute(around, row, name=f"{name}_rows")
    if len(around) == 1:
        return rows
    axes = tuple(te.reduce_axis(size, name=f"r{d}") for d, size in enumerate(around[1:]))
    return te.compute(1, lambda i: combine(rows[(i, *axes)], axis=axes), name=name)


@dataclass(frozen=True, slots=True)
class DynamicQuantizeLinear(Operator):
    """y = saturate(round(x / scale) + zero), with the scale and the zero of all elements.

    The scale is 1/255 of the distance from the smallest to the largest element, 0 among them; 1
    where all are 0. The zero and y are uint8: a half is rounded to even, what lies outside becomes
    the nearest number. Where an element is NaN, so is the scale, and all integers are 0.
    """

    role = OperatorRole.GENERAL
    output_count = 3

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        check_float(self, types)
        (x,) = types
        return TensorType("uint8", x.shape), TensorType(x.dtype, ()), TensorType("uint8", ())

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x = cast(Floats, arrays[0])
        low, high = (cast(Floats, np.asarray(end(x, initial=0))) for end in (np.min, np.max))
        step = 1.0 if low == high else (high - low) / x.dtype.type(LEVELS)
        scale = cast(Floats, np.asarray(step, x.dtype))
        zero = convert_array(np.rint(-low / scale), np.dtype("uint8"))
        return convert_array(np.rint(x / scale) + zero, np.dtype("uint8")), scale, zero

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (x,) = tensors
        nothing = te.const(0.0, x.dtype)

        lowest, highest = (
            _whole(x, combine, f"{name}_{end}")
            for combine, end in ((te.min, "min"), (te.max, "max"))
        )

        def step() -> Expr:
            low, high = te.minimum(lowest[0], nothing), te.maximum(highest[0], nothing)
            return te.select(te.eq(low, high), te.const(1.0, x.dtype), (high - low) / LEVELS)

        def offset() -> Expr:
            low = te.minimum(lowest[0], nothing)
            return te.cast(te.round(-low / scale[()]), "uint8")

        def element(*i: Expr) -> Expr:
            return te.cast(te.round(x[i] / scale[()]) + te.cast(zero[()], x.dtype), "uint8")

        scale = te.compute((), step, name=f"{name}_scale")
        zero = te.compute((), offset, name=f"{name}_zero")
        return te.compute(shape_of(x), element, name=name), scale, zero
