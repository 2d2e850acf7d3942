"""Operators of a non-maximum suppression: BoxCandidates, what there is to choose from, OverlapStep,
which chooses the best of each class and drops what overlaps it, BoxTurns, how many were chosen, and
ChosenBoxes, which these are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ...tir.expr import Expr
from ...tir.sizes import AnySize, axis_of, closed, product_of
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Array, Floats, TensorType
from .base import Operator, OperatorRole, check_arity, listed, refuse, shape_of

Ints = NDArray[np.int64] | NDArray[np.int32]

_EDGES = ("left", "top", "right", "bottom", "area")
_SIDES = 4


@dataclass(frozen=True, slots=True)
class BoxCandidates(Operator):
    """What there is to choose from in each class.

    Inputs: boxes of (batch, n, 4), scores of (batch, classes, n) of their type, and the numbers of
    the candidates, int32 of (batch, classes, m), n where there is none.
    Outputs, all of (batch, classes, m) but the last two: the scores, finite ones, or -inf where
    there is no candidate; in which turn each one was chosen, int32: in none, 0; where the boxes
    begin and end on both axes, x, y, x, y, and their areas; the best score of each class, and
    whether there is any candidate. Infinite scores count as the last finite numbers, a NaN as the
    greatest one.

    centers: a box is given by its centre, width and height; else by two opposite corners, y first.
    """

    centers: bool = False

    role = OperatorRole.GENERAL
    output_count = 9

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 3, 3)
        boxes, scores, numbers = types
        fitting = boxes.rank == scores.rank == numbers.rank == 3 and boxes.is_float
        fitting = fitting and boxes.shape == (scores.shape[0], scores.shape[2], _SIDES)
        fitting = fitting and numbers.shape[:2] == scores.shape[:2]
        if not fitting or (scores.dtype, numbers.dtype) != (boxes.dtype, "int32"):
            problem = f"{listed(types)} are no boxes, scores and numbers of some"
            refuse(self, problem, code="boxes-shape")
        each = TensorType(boxes.dtype, numbers.shape)
        best, any_left = TensorType(boxes.dtype, numbers.shape[:2]), TensorType("bool", ())
        return (each, numbers, *[each] * len(_EDGES), best, any_left)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        boxes, scores = (cast(Floats, array) for array in arrays[:2])
        numbers, count, kind = cast(Ints, arrays[2]), scores.shape[2], scores.dtype
        at, most = np.clip(numbers, 0, max(0, count - 1)), np.finfo(kind).max
        own = cast(Floats, np.take_along_axis(scores, cast(NDArray[np.int64], at), 2))
        found = np.clip(np.where(np.isnan(own), most, own), -most, most)
        left = np.where(numbers < count, found, -np.inf).astype(kind)
        batch = np.arange(len(boxes))[:, np.newaxis, np.newaxis]
        edges = _edges_of(np.moveaxis(boxes[batch, at], -1, 0), centers=self.centers)
        best = np.max(left, axis=2, initial=-np.inf)
        turns = np.zeros(numbers.shape, np.int32)
        return (left, turns, *edges, best.astype(kind), np.asarray(np.any(best > -np.inf)))

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        boxes, scores, numbers = tensors
        shape, count, kind = shape_of(numbers), closed(shape_of(scores)[2]), str(scores.dtype)
        most = te.const(float(np.finfo(kind).max), kind)

        def element(b: Expr, c: Expr, i: Expr) -> tuple[Expr, ...]:
            at = te.clamp_index(numbers[b, c, i], count)
            score = scores[b, c, at]
            number = te.select(te.eq(score, score), score, most)
            bounded = te.minimum(te.maximum(number, -most), most)
            left = te.select(numbers[b, c, i] < count, bounded, te.const(-np.inf, kind))
            sides = [boxes[b, at, side] for side in range(_SIDES)]
            return left, te.const(0, "int32"), *_edges(sides, centers=self.centers)

        names = tuple(f"{name}_{part}" for part in ("score", "turn", *_EDGES))
        made = te.compute(shape, element, name=names)
        return (*made, *_best(made[0], name))


@dataclass(frozen=True, slots=True)
class OverlapStep(Operator):
    """Choose the best candidate that is left in each class, of equal ones that with the smallest
    number, and drop it, and all that have more in common with it than a share of what both cover
    together.

    Inputs: the scores of those that are left; in which turn each one was chosen, from 1 on, or 0,
    int32; the best scores that are left; the number of the iteration, one int64; the numbers of the
    candidates; their boxes, as BoxCandidates gives all of these; all boxes; the share.
    Outputs: the first three for the next turn, and whether there is one.

    centers: as of BoxCandidates.
    """

    centers: bool = False

    role = OperatorRole.GENERAL
    output_count = 4

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 12, 12)
        left, turns, best, iteration, numbers, *edges, boxes, share = types
        kind, shape = left.dtype, left.shape
        whole, number = TensorType(kind, shape), TensorType("int32", shape)
        fitting = left.is_float and left.rank == 3 and boxes.dtype == kind and boxes.rank == 3
        fitting = fitting and (boxes.shape[0], boxes.shape[2]) == (shape[0], _SIDES)
        wanted = [number, TensorType(kind, shape[:2]), TensorType("int64", ()), number]
        wanted += [whole] * len(_EDGES)
        if not fitting or [turns, best, iteration, numbers, *edges] != wanted:
            refuse(self, f"{listed(types)} are no candidates", code="overlap-types")
        if share != TensorType(kind, ()):
            refuse(self, f"expected a share of {kind}, got {share}", code="overlap-share")
        return left, turns, best, TensorType("bool", ())

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        _, turns, _, iteration, numbers, *rest = arrays
        *edges, boxes, share = (cast(Floats, array) for array in rest)
        left, best = cast(Floats, arrays[0]), cast(Floats, arrays[2])[..., np.newaxis]
        count = boxes.shape[1]
        first = np.where(left == best, numbers, count)
        box = np.min(first, axis=2, initial=count, keepdims=True)
        goes_on = best > -np.inf
        batch = np.arange(len(boxes))[:, np.newaxis, np.newaxis]
        sides = np.moveaxis(boxes[batch, np.clip(box, 0, max(0, count - 1))], -1, 0)
        x0, y0, x1, y1, area = _edges_of(sides, centers=self.centers)
        width = np.maximum(np.minimum(edges[2], x1) - np.maximum(edges[0], x0), 0)
        height = np.maximum(np.minimum(edges[3], y1) - np.maximum(edges[1], y0), 0)
        common = width * height
        union = edges[4] + area - common
        real = (common > 0) & (edges[4] > 0) & (area > 0) & (union > 0)
        chosen = goes_on & (numbers == box)
        dropped = chosen | (goes_on & real & (common / union > share))
        later = np.where(dropped, -np.inf, left).astype(left.dtype)
        turn = np.where(chosen, cast(Ints, iteration) + 1, turns).astype(np.int32)
        found = np.max(later, axis=2, initial=-np.inf).astype(left.dtype)
        return later, turn, found, np.asarray(np.any(found > -np.inf))

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        left, turns, best, iteration, numbers, *edges, boxes, share = tensors
        kind, shape = str(left.dtype), shape_of(left)
        zero, none = te.const(0, kind), te.const(-np.inf, kind)
        chosen, its = self._chosen(left, best, numbers, boxes, name)

        def overlap(b: Expr, c: Expr, i: Expr) -> tuple[Expr, Expr]:
            low = [te.maximum(edges[axis][b, c, i], its[axis][b, c]) for axis in (0, 1)]
            high = [te.minimum(edges[axis][b, c, i], its[axis][b, c]) for axis in (2, 3)]
            width, height = (te.maximum(high[n] - low[n], zero) for n in (0, 1))
            return width * height, edges[4][b, c, i] + its[4][b, c]

        # apart, so that the lanes below are those of 32 bits
        now = te.compute((), lambda: te.cast(iteration[()] + 1, "int32"), name=f"{name}_now")
        common, both = te.compute(shape, overlap, name=(f"{name}_common", f"{name}_both"))

        def element(b: Expr, c: Expr, i: Expr) -> tuple[Expr, Expr]:
            shared, own, area = common[b, c, i], edges[4][b, c, i], its[4][b, c]
            union = both[b, c, i] - shared
            real = (shared > zero, own > zero, area > zero, union > zero)
            is_chosen = te.eq(numbers[b, c, i], chosen[b, c])
            covered = te.all_of(*real, shared / union > share[()], best[b, c] > none)
            return (
                te.select(te.any_of(is_chosen, covered), none, left[b, c, i]),
                te.select(is_chosen, now[()], turns[b, c, i]),
            )

        later, turn = te.compute(shape, element, name=(f"{name}_left", f"{name}_turn"))
        return (later, turn, *_best(later, name))

    def _chosen(
        self, left: Tensor, best: Tensor, numbers: Tensor, boxes: Tensor, name: str
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The numbers of the boxes that are chosen, -1 where none is, and their edges."""
        rows, count = shape_of(best), closed(shape_of(boxes)[1])
        r, kind = te.reduce_axis(axis_of(shape_of(left)[2]), name="r"), str(left.dtype)

        def first(b: Expr, c: Expr) -> Expr:
            is_best = te.eq(left[b, c, r], best[b, c])
            return te.min(te.select(is_best, numbers[b, c, r], te.const(count, "int32")), axis=r)

        found = te.compute(rows, first, name=f"{name}_first")

        def chosen(b: Expr, c: Expr) -> tuple[Expr, ...]:
            at = te.clamp_index(found[b, c], count)
            sides = [boxes[b, at, side] for side in range(_SIDES)]
            any_left = best[b, c] > te.const(-np.inf, kind)
            number = te.select(any_left, found[b, c], te.const(-1, "int32"))
            return number, *_edges(sides, centers=self.centers)

        names = tuple(f"{name}_its_{part}" for part in ("number", *_EDGES))
        number, *its = te.compute(rows, chosen, name=names)
        return number, tuple(its)


@dataclass(frozen=True, slots=True)
class BoxTurns(Operator):
    """How many were chosen in each class, as int64, of the turns that OverlapStep gives."""

    role = OperatorRole.GENERAL

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        if types[0].rank != 3 or types[0].dtype != "int32":
            refuse(self, f"expected turns, int32 of three axes, got {types[0]}", code="turns-type")
        return (TensorType("int64", types[0].shape[:2]),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.max(arrays[0], axis=2, initial=0).astype(np.int64),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (turns,) = tensors
        *rows, many = shape_of(turns)
        r = te.reduce_axis(axis_of(many), name="r")
        last = te.compute(rows, lambda b, c: te.max(turns[b, c, r], axis=r), name=f"{name}_last")

        def element(b: Expr, c: Expr) -> Expr:
            return te.cast(te.maximum(last[b, c], te.const(0, "int32")), "int64")

        return (te.compute(rows, element, name=name),)


@dataclass(frozen=True, slots=True)
class ChosenBoxes(Operator):
    """The batch, class and number of the `count` boxes that were chosen, in a row each: class after
    class, in each one those of the first turns first.

    Inputs: the turns, int32 of (batch, classes, m), the numbers of the candidates, like them, and
    what BoxTurns gives.
    """

    count: AnySize

    role = OperatorRole.GENERAL

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 3, 3)
        turns, numbers, counts = types
        fitting = turns.rank == 3 and turns.dtype == "int32" and numbers == turns
        if not fitting or counts != TensorType("int64", turns.shape[:2]):
            refuse(self, f"{listed(types)} are no turns of boxes", code="chosen-types")
        return (TensorType("int64", (self.count, 3)),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        turns, numbers, counts = (cast(Ints, array) for array in arrays)
        batch, classes, many = turns.shape
        ends = np.cumsum(counts.reshape(-1))
        at = np.arange(closed(self.count))
        passed = np.less_equal(ends, at[:, np.newaxis]).sum(axis=1)
        row = np.minimum(passed, batch * classes - 1)
        begin = np.where(passed > 0, ends[passed - 1], 0)
        turn = (at - begin + 1).astype(np.int32)[:, np.newaxis]
        own = numbers.reshape(batch * classes, many)[row]
        is_it = turns.reshape(batch * classes, many)[row] == turn
        box = np.max(np.where(is_it, own, 0), axis=1, initial=0)
        return (np.stack([row // classes, row % classes, box], axis=1).astype(np.int64),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        turns, numbers, counts = tensors
        batch, classes, many = shape_of(turns)
        classes, rows = closed(classes), closed(product_of((batch, classes)))
        count = axis_of(self.count)
        ends = te.compute(rows, _upto(counts, rows, classes), name=f"{name}_ends")
        q, r = te.reduce_axis(rows, name="q"), te.reduce_axis(axis_of(many), name="r")

        def passed(k: Expr) -> Expr:
            return te.sum(te.select(ends[q] <= k, te.const(1, "int64"), 0), axis=q)

        row = te.compute(count, passed, name=f"{name}_row")

        def turn(k: Expr) -> tuple[Expr, Expr]:
            before = ends[te.clamp_index(row[k] - 1, rows)]
            begin = te.select(row[k] > 0, before, te.const(0, "int64"))
            last = te.minimum(row[k], te.const(rows - 1, "int64"))
            return last, te.cast(k - begin + 1, "int32")

        last, its = te.compute(count, turn, name=(f"{name}_last", f"{name}_turn"))

        def box(k: Expr) -> Expr:
            at = te.clamp_index(last[k], rows)
            b, c = at // classes, at % classes
            is_it = te.eq(turns[b, c, r], its[k])
            return te.max(te.select(is_it, numbers[b, c, r], te.const(0, "int32")), axis=r)

        found = te.compute(count, box, name=f"{name}_box")

        def element(k: Expr, part: Expr) -> Expr:
            number = te.cast(te.maximum(found[k], te.const(0, "int32")), "int64")
            at = te.select(te.eq(part, 0), last[k] // classes, last[k] % classes)
            return te.select(te.eq(part, 2), number, at)

        return (te.compute((count, 3), element, name=name),)


def _upto(counts: Tensor, rows: int, classes: int) -> Callable[[Expr], Expr]:
    """How many are in a row and those before it."""
    q = te.reduce_axis(rows, name="q")

    def end(row: Expr) -> Expr:
        own = counts[q // classes, q % classes]
        return te.sum(te.select(q <= row, own, te.const(0, "int64")), axis=q)

    return end


def _best(left: Tensor, name: str) -> tuple[Tensor, Tensor]:
    """The best score of each class that is left, and whether there is one."""
    *rows, many = shape_of(left)
    none = te.const(-np.inf, str(left.dtype))
    r, *every = (te.reduce_axis(axis_of(n), name=f"r{n}") for n in (many, *rows))
    best = te.compute(rows, lambda b, c: te.max(left[b, c, r], axis=r), name=f"{name}_best")
    top = te.compute((), lambda: te.max(best[tuple(every)], axis=every), name=f"{name}_top")
    return best, te.compute((), lambda: top[()] > none, name=name)


def _edges(sides: Sequence[Expr], *, centers: bool) -> tuple[Expr, ...]:
    """Where a box begins and ends on both axes, and its area, of the four numbers that it has."""
    a, b, c, d = sides
    if centers:
        two = te.const(2, str(a.dtype))
        edges = (a - c / two, b - d / two, a + c / two, b + d / two)
    else:
        edges = (te.minimum(b, d), te.minimum(a, c), te.maximum(b, d), te.maximum(a, c))
    x0, y0, x1, y1 = edges
    return *edges, (x1 - x0) * (y1 - y0)


def _edges_of(sides: Floats, *, centers: bool) -> tuple[Floats, ...]:
    """The same of arrays, whose first axis is that of the four numbers."""
    a, b, c, d = sides
    if centers:
        edges = (a - c / 2, b - d / 2, a + c / 2, b + d / 2)
    else:
        edges = (np.minimum(b, d), np.minimum(a, c), np.maximum(b, d), np.maximum(a, c))
    x0, y0, x1, y1 = edges
    area = (x1 - x0) * (y1 - y0)
    return tuple(part.astype(sides.dtype) for part in (*edges, area))
