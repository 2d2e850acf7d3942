"""Operators of a non-maximum suppression by order: CandidateScores, which a TopK sorts, and
KeptBoxes, which of the sorted boxes overlap none that is kept before them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from ...tir.expr import Expr
from ...tir.sizes import closed
from ...tir.suppression import suppressed
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Array, Floats, TensorType
from .base import Operator, OperatorRole, check_arity, listed, refuse, shape_of
from .elementwise import Elementwise, Takes
from .overlap import EDGES, SIDES, edges_from, edges_of, finite, finite_score


class CandidateScores(Elementwise):
    """A score as a finite number, or -inf where it is not above the second input, if there is one.
    Infinite scores count as the last finite numbers of float32, a NaN as the greatest one.
    """

    arity: ClassVar[tuple[int, int | None]] = (1, 2)
    takes: ClassVar[Takes] = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        scores, *least = (cast(Floats, array) for array in arrays)
        found = finite(scores)
        if not least:
            return (found,)
        return (np.where(scores > least[0], found, -np.inf).astype(scores.dtype),)

    def element(self, *elements: Expr) -> Expr:
        score, *least = elements
        found = finite_score(score)
        none = te.const(-np.inf, score.dtype)
        return te.select(score > least[0], found, none) if least else found


@dataclass(frozen=True, slots=True)
class KeptBoxes(Operator):
    """The numbers of the boxes of each class that have no more than a share of what they cover in
    common with any that is kept before them, in their order: `most` at most.

    Inputs: boxes, float32 of (batch, n, 4); the scores, float32 of (batch, classes, m), from the
    best one on, -inf for no candidate; the numbers of the boxes that have them, int64; the share,
    float32 without axes.
    Outputs: numbers, int32 of (batch, classes, most), -1 behind the last one, and how many they
    are, int64 of (batch, classes).

    centers: a box is given by its centre, width and height; else by two opposite corners, y first.
    """

    most: int
    centers: bool = False

    role = OperatorRole.GENERAL
    output_count = 2

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 4, 4)
        boxes, scores, numbers, share = types
        fitting = boxes.rank == scores.rank == 3 and boxes.dtype == scores.dtype == "float32"
        fitting = fitting and (boxes.shape[0], boxes.shape[2]) == (scores.shape[0], SIDES)
        fitting = fitting and numbers == TensorType("int64", scores.shape)
        if not fitting or share != TensorType("float32", ()) or self.most < 1:
            refuse(self, f"{listed(types)} are no sorted boxes and a share", code="kept-types")
        rows = scores.shape[:2]
        return TensorType("int32", (*rows, self.most)), TensorType("int64", rows)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        boxes, scores, numbers, share = arrays
        batch, classes, many = scores.shape
        at = np.clip(numbers, 0, max(0, boxes.shape[1] - 1)).astype(np.int64)
        own = cast(Floats, boxes)[np.arange(batch)[:, np.newaxis, np.newaxis], at]
        *edges, area = edges_of(np.moveaxis(own, -1, 0), centers=self.centers)
        real = np.where(area > 0, area, np.nan).astype(area.dtype)
        flat = [edge.reshape(batch * classes, many) for edge in (*edges, real)]
        counts = np.sum(np.greater(scores, -np.inf), axis=2).reshape(-1)
        places, found = suppressed([*flat, counts, share], self.most)
        its = np.take_along_axis(
            at.reshape(batch * classes, many), np.clip(places, 0, None).astype(np.int64), 1
        )
        kept = np.where(np.greater_equal(places, 0), its, -1).astype(np.int32)
        shape = (batch, classes)
        return kept.reshape(*shape, self.most), found.astype(np.int64).reshape(shape)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        boxes, scores, numbers, share = tensors
        batch, classes, many = map(closed, shape_of(scores))
        count, kind = closed(shape_of(boxes)[1]), str(boxes.dtype)
        rows, r = batch * classes, te.reduce_axis(many, name="r")
        one, none = te.const(1, "int32"), te.const(0, "int32")
        lowest = te.const(-np.inf, kind)

        def some(row: Expr) -> Expr:
            is_some = scores[row // classes, row % classes, r] > lowest
            return te.sum(te.select(is_some, one, none), axis=r)

        def number(row: Expr, k: Expr) -> Expr:
            return numbers[row // classes, row % classes, k]

        def sides(row: Expr, k: Expr) -> tuple[Expr, ...]:
            at = te.clamp_index(number(row, k), count)
            own = [boxes[row // classes, at, side] for side in range(SIDES)]
            *edges, area = edges_from(own, centers=self.centers)
            real = te.select(area > te.const(0, kind), area, te.const(np.nan, kind))
            return *edges, real

        counts = te.compute((rows,), some, name=f"{name}_count")
        made = te.compute((rows, many), sides, name=tuple(f"{name}_{part}" for part in EDGES))
        left, top, right, bottom, area = made
        places, found = te.suppress(
            (left, top, right, bottom, area),
            counts,
            share,
            most=self.most,
            name=(f"{name}_place", f"{name}_found"),
        )

        def kept(b: Expr, c: Expr, k: Expr) -> Expr:
            row = b * classes + c
            its = te.clamp_index(number(row, te.clamp_index(places[row, k], many)), count)
            return te.select(places[row, k] >= none, te.cast(its, "int32"), te.const(-1, "int32"))

        shape = (batch, classes)
        return (
            te.compute((*shape, self.most), kept, name=name),
            te.compute(
                shape, lambda b, c: te.cast(found[b * classes + c], "int64"), name=f"{name}_number"
            ),
        )
