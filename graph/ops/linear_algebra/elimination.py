"""EliminationStep: one step of a Gauss-Jordan elimination, of which a loop makes an inverse or a
determinant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ....tir.expr import Expr
from ....tir.sizes import closed, largest
from ....tir.te import te
from ....tir.te.te import Tensor
from ...types import Array, Floats, TensorType
from ..base import (
    Operator,
    OperatorRole,
    ReferenceWork,
    check_arity,
    check_float,
    listed,
    refuse,
    shape_of,
)


@dataclass(frozen=True, slots=True)
class EliminationStep(Operator):
    """Step k of the Gauss-Jordan elimination of each matrix of a stack, in place and with partial
    pivoting: of the rows from k on, the one whose element in column k has the largest magnitude
    changes places with row k and is divided by that element, the pivot; the other rows lose what
    they have in that column, where the column of the inverse comes to stand (G. Golub, C. Van
    Loan, "Matrix Computations", 4th edition, 2013, sections 3.4 and 3.5).

    Inputs: x of [..., n, n]; where each row of the first matrix stands now, int32 of [..., n]; k,
    one int64. Outputs: the first two after the step; the pivot, negated where rows changed places.

    After n steps from the identity's places, column places[j] of x is column j of the inverse, and
    the product of the pivots is the determinant. A matrix without an inverse has a pivot of 0: what
    is divided by it is infinite, or no number.
    """

    role = OperatorRole.GENERAL
    output_count = 3
    operand_names = ("x", "places", "k")

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 3, 3)
        x, places, step = types
        check_float(self, (x,))
        fitting = x.rank >= 2 and x.shape[-1] == x.shape[-2] and closed(x.shape[-1]) > 0
        wanted = (TensorType("int32", x.shape[:-1]), TensorType("int64", ()))
        if not fitting or (places, step) != wanted:
            wants = "matrices of n x n, int32 of [..., n] and a step"
            refuse(self, f"expected {wants}, got {listed(types)}", code="elimination-types")
        return x, places, TensorType(x.dtype, x.shape[:-2])

    def work(self, types: tuple[TensorType, ...]) -> ReferenceWork:
        base, elements = Operator.work(self, types), largest(types[0].elements)
        return ReferenceWork(base.held + 3 * elements, base.steps + 3 * elements)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, places, step = cast(Floats, arrays[0]), cast(NDArray[np.int32], arrays[1]), arrays[2]
        size, k = x.shape[-1], int(np.clip(step, 0, x.shape[-1] - 1))
        rows = np.arange(size)
        found = np.argmax(np.where(rows < k, -1, np.abs(x[..., k])), axis=-1)[..., None]
        order = np.where(rows == k, found, np.where(rows == found, k, rows))
        swapped = np.take_along_axis(x, order[..., None], -2)
        pivot = cast(Floats, swapped[..., k, k].copy())
        with np.errstate(all="ignore"):
            row = np.divide(swapped[..., k, :], pivot[..., None])
            row[..., k] = np.divide(1, pivot)
            column = swapped[..., k].copy()
            swapped[..., k] = 0
            left = swapped - column[..., None] * row[..., None, :]
        left[..., k, :] = row
        moved = np.where(places == k, found, np.where(places == found, k, places))
        signed = np.where(found[..., 0] == k, pivot, np.negative(pivot))
        return left.astype(x.dtype), moved.astype(np.int32), signed.astype(x.dtype)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        x, places, step = tensors
        *batch, size = shape_of(places)
        count = closed(size)
        none, zero, one = (te.const(number, x.dtype) for number in (-1, 0, 1))
        now = te.compute((), lambda: te.clamp_index(step[()], count), name=f"{name}_now")
        r = te.reduce_axis(count, name="r")

        def magnitude(*i: Expr) -> Expr:
            b, row = i[:-1], i[-1]
            k = te.clamp_index(now[()], count)
            return te.select(row < k, none, te.abs(x[(*b, row, k)]))

        sizes = te.compute((*batch, count), magnitude, name=f"{name}_sizes")
        names = f"{name}_best", f"{name}_found"
        _, found = te.compute(
            tuple(batch), lambda *b: te.argmax(sizes[(*b, r)], axis=r, dtype="int32"), name=names
        )

        def signed(*b: Expr) -> Expr:
            k, own = te.clamp_index(now[()], count), te.clamp_index(found[b], count)
            return te.select(te.eq(k, own), x[(*b, own, k)], -x[(*b, own, k)])

        pivot = te.compute(tuple(batch), signed, name=f"{name}_pivot")

        def scaled(*i: Expr) -> tuple[Expr, Expr]:
            b, j = i[:-1], i[-1]
            k, own = te.clamp_index(now[()], count), te.clamp_index(found[b], count)
            is_own = te.eq(j, k)
            above = te.select(is_own, one, x[(*b, own, j)])
            return above / x[(*b, own, k)], te.select(is_own, one, zero)

        def swapped(*i: Expr) -> tuple[Expr, Expr, Expr, Expr]:
            b, row = i[:-1], i[-1]
            k, there = te.clamp_index(now[()], count), te.clamp_index(found[b], count)
            own = te.select(te.eq(row, there), k, row)
            was = te.cast(places[i], "int64")
            place = te.select(te.eq(was, k), there, te.select(te.eq(was, there), k, was))
            first, is_own = x[(*b, te.clamp_index(own, count), k)], te.eq(row, k)
            return own, first, te.select(is_own, one, zero), te.cast(place, "int32")

        # marks are numbers of the type of x, so that the lanes below are all as wide
        names = f"{name}_row", f"{name}_is_column"
        row, is_column = te.compute((*batch, count), scaled, name=names)
        parts = tuple(f"{name}_{part}" for part in ("own", "column", "is_row", "places"))
        own, column, is_row, moved = te.compute((*batch, count), swapped, name=parts)

        def element(*i: Expr) -> Expr:
            b, at, j = i[:-2], *i[-2:]
            other = x[(*b, te.clamp_index(own[(*b, at)], count), j)]
            kept = te.select(is_column[(*b, j)] > 0.0, zero, other)
            rest = kept - column[(*b, at)] * row[(*b, j)]
            return te.select(is_row[(*b, at)] > 0.0, row[(*b, j)], rest)

        return te.compute((*batch, count, count), element, name=f"{name}_left"), moved, pivot
