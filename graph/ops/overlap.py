"""Operators of a non-maximum suppression: BoxEdges, and OverlapStep, what a better box leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from ...tir.expr import Expr
from ...tir.sizes import closed
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Array, Floats, TensorType
from .base import Operator, OperatorRole, check_arity, check_float, refuse, shape_of

_EDGES = 5


@dataclass(frozen=True, slots=True)
class BoxEdges(Operator):
    """Of boxes in the last axis: where each begins and ends on both axes, and its area: x, y, x, y,
    area.

    centers: a box is given by its centre, width and height; else by two opposite corners, y first.
    """

    centers: bool = False

    role = OperatorRole.GENERAL

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        check_float(self, types)
        if not types[0].rank or types[0].shape[-1] != 4:
            refuse(self, f"expected four numbers of each box, got {types[0]}", code="boxes-shape")
        return (TensorType(types[0].dtype, (*types[0].shape[:-1], _EDGES)),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        a, b, c, d = np.moveaxis(cast(Floats, arrays[0]), -1, 0)
        if self.centers:
            edges = [a - c / 2, b - d / 2, a + c / 2, b + d / 2]
        else:
            edges = [np.minimum(b, d), np.minimum(a, c), np.maximum(b, d), np.maximum(a, c)]
        area = (edges[2] - edges[0]) * (edges[3] - edges[1])
        return (np.stack([*edges, area], axis=-1).astype(arrays[0].dtype),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (boxes,) = tensors
        shape = shape_of(boxes)

        def edge(*i: Expr) -> Expr:
            """The first four."""
            a, b, c, d = (boxes[(*i[:-1], n)] for n in range(4))
            if self.centers:
                two = te.const(2, boxes.dtype)
                edges = (a - c / two, b - d / two, a + c / two, b + d / two)
            else:
                edges = (te.minimum(b, d), te.minimum(a, c), te.maximum(b, d), te.maximum(a, c))
            found = edges[3]
            for number in range(3):
                found = te.select(te.eq(i[-1], number), edges[number], found)
            return found

        edges = te.compute(shape, edge, name=f"{name}_edge")

        def element(*i: Expr) -> Expr:
            x0, y0, x1, y1 = (edges[(*i[:-1], n)] for n in range(4))
            at = edges[(*i[:-1], te.clamp_index(i[-1], 4))]
            return te.select(i[-1] < 4, at, (x1 - x0) * (y1 - y0))

        return (te.compute((*shape[:-1], _EDGES), element, name=name),)


@dataclass(frozen=True, slots=True)
class OverlapStep(Operator):
    """Which boxes of each list are dropped once that at one place of the list has been looked at:
    those that were, and, unless it was dropped itself, each one behind it with which it has more in
    common than a share of what both cover together.

    Inputs: dropped, bool of (batch, classes, n); the place, one int64 of 0 to n-1; what BoxEdges
    gives, of (batch, classes, 5, n); the share, one number of their type.
    """

    role = OperatorRole.GENERAL

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 4, 4)
        dropped, place, boxes, share = types
        fitting = dropped.rank == 3 and boxes.shape == (
            *dropped.shape[:2],
            _EDGES,
            dropped.shape[2],
        )
        kinds = (dropped.dtype, place, share)
        wanted = ("bool", TensorType("int64", ()), TensorType(boxes.dtype, ()))
        if not fitting or kinds != wanted or not boxes.is_float:
            problem = f"{boxes} of {dropped} at {place} above {share} is no list of boxes"
            refuse(self, problem, code="overlap-types")
        return (dropped,)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        dropped, number, boxes, share = arrays
        size = dropped.shape[2]
        if not dropped.size:
            return (dropped,)
        place = int(np.clip(number.item(), 0, size - 1))
        edges = np.moveaxis(cast(Floats, boxes), 2, 0)
        best = edges[..., place : place + 1]
        low, high = np.maximum(edges[:2], best[:2]), np.minimum(edges[2:4], best[2:4])
        width, height = np.maximum(high - low, 0)
        common = width * height
        union = edges[4] + best[4] - common
        real = (common > 0) & (edges[4] > 0) & (best[4] > 0) & (union > 0)
        covered = real & (common / union > cast(Floats, share)) & (np.arange(size) > place)
        kept = np.logical_not(dropped[..., place : place + 1])
        return (np.logical_or(dropped, covered & kept),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        dropped, number, boxes, share = tensors
        shape = shape_of(dropped)
        if 0 in dropped.shape:
            return (te.compute(shape, lambda b, c, i: dropped[b, c, i], name=name),)
        size, zero = closed(shape[2]), te.const(0, boxes.dtype)

        def place() -> Expr:
            return te.clamp_index(number[()], size)

        def side(axis: int) -> Tensor:
            def element(b: Expr, c: Expr, i: Expr) -> Expr:
                low = te.maximum(boxes[b, c, axis, i], boxes[b, c, axis, place()])
                high = te.minimum(boxes[b, c, axis + 2, i], boxes[b, c, axis + 2, place()])
                return te.maximum(high - low, zero)

            return te.compute(shape, element, name=f"{name}_{'xy'[axis]}")

        width, height = side(0), side(1)
        common = te.compute(
            shape, lambda b, c, i: width[b, c, i] * height[b, c, i], name=f"{name}_common"
        )

        def element(b: Expr, c: Expr, i: Expr) -> Expr:
            both, own, best = common[b, c, i], boxes[b, c, 4, i], boxes[b, c, 4, place()]
            union = own + best - both
            real = (both > zero, own > zero, best > zero, union > zero)
            covered = te.all_of(*real, both / union > share[()], i > place())
            kept = te.logical_not(dropped[b, c, place()])
            return te.any_of(dropped[b, c, i], te.all_of(covered, kept))

        return (te.compute(shape, element, name=name),)
