"""Det: determinants of small matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

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
    refuse,
    shape_of,
)

MOST_ROWS = 16


@dataclass(frozen=True, slots=True)
class Det(Operator):
    """The determinant of each matrix of a stack, of at most 16 rows.

    The kernel is Gaussian elimination with partial pivoting: a step for each column, in which the
    row whose element there is the largest goes, and the others lose their element there.
    """

    role = OperatorRole.GENERAL

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        check_float(self, types)
        (x,) = types
        if x.rank < 2 or x.shape[-1] != x.shape[-2] or closed(x.shape[-1]) > MOST_ROWS:
            refuse(self, f"expected matrices of n x n, n <= {MOST_ROWS}, got {x}", code="det-shape")
        return (TensorType(x.dtype, x.shape[:-2]),)

    def work(self, types: tuple[TensorType, ...]) -> ReferenceWork:
        base = Operator.work(self, types)
        return ReferenceWork(2 * base.held, base.steps + MOST_ROWS * largest(types[0].elements))

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        """The steps of the kernel: a product of pivots may overflow where the logarithm of a
        determinant, with which NumPy computes it, does not.
        """
        x = cast(Floats, arrays[0])
        left = x.astype(np.float32) if x.dtype == np.float16 else x
        total = np.ones(x.shape[:-2], left.dtype)
        rows = np.arange(x.shape[-1])
        with np.errstate(all="ignore"):
            for size in range(len(rows), 0, -1):
                place = np.argmax(np.abs(left[..., 0]), axis=-1)[..., None]
                order = np.where(rows[:size] == place, 0, rows[:size])
                order[..., 0] = place[..., 0]
                swapped = np.take_along_axis(left, order[..., None], -2)
                pivot, signs = swapped[..., 0, 0], np.where(place[..., 0] == 0, 1, -1)
                total = np.multiply(total, np.multiply(pivot, signs.astype(left.dtype)))
                divisor = np.where(pivot == 0, 1, pivot).astype(left.dtype)[..., None, None]
                lost = np.divide(swapped[..., 1:, :1], divisor) * swapped[..., :1, 1:]
                left = np.subtract(swapped[..., 1:, 1:], lost)
        return (total.astype(x.dtype),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (x,) = tensors
        batch, rows = shape_of(x)[:-2], closed(shape_of(x)[-1])
        if not rows:
            return (te.compute(batch, lambda *b: te.const(1, x.dtype), name=name),)
        left, total = x, None
        for size in range(rows, 0, -1):
            last = size == 1
            place = _pivot(left, f"{name}_{size}")
            total = _multiplied(total, left, place, name if last else f"{name}_{size}_det")
            if not last:
                left = _eliminated(left, place, f"{name}_{size}_left")
        assert total is not None
        return (total,)


def _pivot(x: Tensor, name: str) -> Tensor:
    """Where in the first column of each matrix the element of largest magnitude stands."""
    *batch, size, _ = shape_of(x)
    r = te.reduce_axis(size, name="r")
    names = f"{name}_best", f"{name}_pivot"
    _, place = te.compute(
        tuple(batch), lambda *b: te.argmax(te.abs(x[(*b, r, 0)]), axis=r), name=names
    )
    return place


def _multiplied(total: Tensor | None, x: Tensor, place: Tensor, name: str) -> Tensor:
    """The product of the pivots so far with one more, which a swap of rows negates."""
    *batch, size, _ = shape_of(x)

    def element(*b: Expr) -> Expr:
        pivot = x[(*b, te.clamp_index(place[b], closed(size)), 0)]
        signed = te.select(te.eq(place[b], 0), pivot, -pivot)
        return signed if total is None else total[b] * signed

    return te.compute(tuple(batch), element, name=name)


def _eliminated(x: Tensor, place: Tensor, name: str) -> Tensor:
    """The other rows, without their first element; row 0 stands where the pivot's row stood. A
    pivot of 0 means that there is nothing to take away.
    """
    *batch, size, _ = shape_of(x)
    rest = closed(size) - 1

    def element(*i: Expr) -> Expr:
        b, (row, column) = i[:-2], i[-2:]
        first = te.clamp_index(place[b], rest + 1)
        own = te.clamp_index(te.select(te.eq(first, row + 1), 0, row + 1), rest + 1)
        pivot = x[(*b, first, 0)]
        divisor = te.select(te.eq(pivot, 0.0), te.const(1, pivot.dtype), pivot)
        return x[(*b, own, column + 1)] - x[(*b, own, 0)] / divisor * x[(*b, first, column + 1)]

    return te.compute((*batch, rest, rest), element, name=name)
