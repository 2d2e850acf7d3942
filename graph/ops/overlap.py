"""Operators of a non-maximum suppression by turns: BoxCandidates, what there is to choose from,
OverlapStep, which chooses the best of each class and drops what overlaps it, ChosenCounts, how many
were chosen, and ChosenBoxes, which these are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ...tir.expr import Expr
from ...tir.sizes import AnySize, axis_of, closed
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Array, Floats, TensorType
from .base import Operator, OperatorRole, check_arity, listed, refuse, shape_of

Ints = NDArray[np.int64] | NDArray[np.int32]

EDGES = ("left", "top", "right", "bottom", "area")
SIDES = 4
_GREATEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True)
class BoxCandidates(Operator):
    """What there is to choose from in each class.

    Inputs: boxes of (batch, n, 4), scores of (batch, classes, n) of their type, and the numbers of
    the candidates, int32 of (batch, classes, m), n where there is none.
    Outputs, all of (batch, classes, m) but the last two: the scores, finite ones, or -inf where
    there is no candidate; where the boxes begin and end on both axes, x, y, x, y, and their areas;
    the best score of each class, and whether there is any candidate. Infinite scores count as the
    last finite numbers of float32, a NaN as the greatest one.

    centers: a box is given by its centre, width and height; else by two opposite corners, y first.
    """

    centers: bool = False

    role = OperatorRole.GENERAL
    output_count = 8

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 3, 3)
        boxes, scores, numbers = types
        fitting = boxes.rank == scores.rank == numbers.rank == 3 and boxes.is_float
        fitting = fitting and boxes.shape == (scores.shape[0], scores.shape[2], SIDES)
        fitting = fitting and numbers.shape[:2] == scores.shape[:2]
        if not fitting or (scores.dtype, numbers.dtype) != (boxes.dtype, "int32"):
            problem = f"{listed(types)} are no boxes, scores and numbers of some"
            refuse(self, problem, code="boxes-shape")
        each = TensorType(boxes.dtype, numbers.shape)
        best, any_left = TensorType(boxes.dtype, numbers.shape[:2]), TensorType("bool", ())
        return (each, *[each] * len(EDGES), best, any_left)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        boxes, scores = (cast(Floats, array) for array in arrays[:2])
        numbers, count, kind = cast(Ints, arrays[2]), scores.shape[2], scores.dtype
        at = np.clip(numbers, 0, max(0, count - 1))
        own = cast(Floats, np.take_along_axis(scores, cast(NDArray[np.int64], at), 2))
        left = np.where(numbers < count, finite(own), -np.inf).astype(kind)
        batch = np.arange(len(boxes))[:, np.newaxis, np.newaxis]
        edges = edges_of(np.moveaxis(boxes[batch, at], -1, 0), centers=self.centers)
        best = np.max(left, axis=2, initial=-np.inf)
        return (left, *edges, best.astype(kind), np.asarray(np.any(best > -np.inf)))

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        boxes, scores, numbers = tensors
        shape, count, kind = shape_of(numbers), closed(shape_of(scores)[2]), str(scores.dtype)

        def element(b: Expr, c: Expr, i: Expr) -> tuple[Expr, ...]:
            at = te.clamp_index(numbers[b, c, i], count)
            score = finite_score(scores[b, c, at])
            left = te.select(numbers[b, c, i] < count, score, te.const(-np.inf, kind))
            sides = [boxes[b, at, side] for side in range(SIDES)]
            return left, *edges_from(sides, centers=self.centers)

        names = tuple(f"{name}_{part}" for part in ("score", *EDGES))
        made = te.compute(shape, element, name=names)
        return (*made, *_best(made[0], name))


@dataclass(frozen=True, slots=True)
class OverlapStep(Operator):
    """Choose the best candidate that is left in each class, of equal ones that with the smallest
    number, and drop it, and all that have more in common with it than a share of what both cover
    together.

    Inputs: the scores of those that are left; the numbers of those that were chosen in each turn,
    int32 of (batch, classes, turns), or -1; the best scores that are left; the number of the
    iteration, one int64; the numbers of the candidates; their boxes, as BoxCandidates gives all of
    these; all boxes; the share.
    Outputs: the first three for the next turn, and whether there is one.

    centers: as of BoxCandidates.
    """

    centers: bool = False

    role = OperatorRole.GENERAL
    output_count = 4

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 12, 12)
        left, chosen, best, iteration, numbers, *edges, boxes, share = types
        kind, shape = left.dtype, left.shape
        whole, number = TensorType(kind, shape), TensorType("int32", shape)
        fitting = left.is_float and left.rank == 3 and boxes.dtype == kind and boxes.rank == 3
        fitting = fitting and (boxes.shape[0], boxes.shape[2]) == (shape[0], SIDES)
        fitting = fitting and (chosen.dtype, chosen.shape[:-1]) == ("int32", shape[:2])
        wanted = [TensorType(kind, shape[:2]), TensorType("int64", ()), number]
        wanted += [whole] * len(EDGES)
        if not fitting or [best, iteration, numbers, *edges] != wanted:
            refuse(self, f"{listed(types)} are no candidates", code="overlap-types")
        if share != TensorType(kind, ()):
            refuse(self, f"expected a share of {kind}, got {share}", code="overlap-share")
        return left, chosen, best, TensorType("bool", ())

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        _, earlier, _, iteration, numbers, *rest = arrays
        *edges, boxes, share = (cast(Floats, array) for array in rest)
        left, best = cast(Floats, arrays[0]), cast(Floats, arrays[2])[..., np.newaxis]
        count = boxes.shape[1]
        first = np.where(left == best, numbers, count)
        box = np.min(first, axis=2, initial=count, keepdims=True)
        goes_on = best > -np.inf
        batch = np.arange(len(boxes))[:, np.newaxis, np.newaxis]
        sides = np.moveaxis(boxes[batch, np.clip(box, 0, max(0, count - 1))], -1, 0)
        x0, y0, x1, y1, area = edges_of(sides, centers=self.centers)
        width = np.maximum(np.minimum(edges[2], x1) - np.maximum(edges[0], x0), 0)
        height = np.maximum(np.minimum(edges[3], y1) - np.maximum(edges[1], y0), 0)
        common = width * height
        union = edges[4] + area - common
        real = (common > 0) & (edges[4] > 0) & (area > 0) & (union > 0)
        chosen = goes_on & (numbers == box)
        dropped = chosen | (goes_on & real & (common / union > share))
        later = np.where(dropped, -np.inf, left).astype(left.dtype)
        now = np.arange(earlier.shape[2]) == cast(Ints, iteration)
        listed_now = np.where(now & goes_on, box, earlier).astype(np.int32)
        found = np.max(later, axis=2, initial=-np.inf).astype(left.dtype)
        return later, listed_now, found, np.asarray(np.any(found > -np.inf))

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        left, earlier, best, iteration, numbers, *edges, boxes, share = tensors
        kind, shape = str(left.dtype), shape_of(left)
        zero, none = te.const(0, kind), te.const(-np.inf, kind)
        chosen, its = self._chosen(left, best, numbers, boxes, name)

        def overlap(b: Expr, c: Expr, i: Expr) -> tuple[Expr, Expr]:
            low = [te.maximum(edges[axis][b, c, i], its[axis][b, c]) for axis in (0, 1)]
            high = [te.minimum(edges[axis][b, c, i], its[axis][b, c]) for axis in (2, 3)]
            width, height = (te.maximum(high[n] - low[n], zero) for n in (0, 1))
            return width * height, edges[4][b, c, i] + its[4][b, c]

        # apart, so that the lanes below are those of 32 bits
        now = te.compute((), lambda: te.cast(iteration[()], "int32"), name=f"{name}_now")
        common, both = te.compute(shape, overlap, name=(f"{name}_common", f"{name}_both"))

        def element(b: Expr, c: Expr, i: Expr) -> Expr:
            shared, own, area = common[b, c, i], edges[4][b, c, i], its[4][b, c]
            union = both[b, c, i] - shared
            real = (shared > zero, own > zero, area > zero, union > zero)
            is_chosen = te.eq(numbers[b, c, i], chosen[b, c])
            covered = te.all_of(*real, shared / union > share[()], best[b, c] > none)
            return te.select(te.any_of(is_chosen, covered), none, left[b, c, i])

        def entry(b: Expr, c: Expr, k: Expr) -> Expr:
            is_now = te.all_of(te.eq(te.cast(k, "int32"), now[()]), best[b, c] > none)
            return te.select(is_now, chosen[b, c], earlier[b, c, k])

        later = te.compute(shape, element, name=f"{name}_left")
        listed_now = te.compute(shape_of(earlier), entry, name=f"{name}_chosen")
        return (later, listed_now, *_best(later, name))

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
            sides = [boxes[b, at, side] for side in range(SIDES)]
            any_left = best[b, c] > te.const(-np.inf, kind)
            number = te.select(any_left, found[b, c], te.const(-1, "int32"))
            return number, *edges_from(sides, centers=self.centers)

        names = tuple(f"{name}_its_{part}" for part in ("number", *EDGES))
        number, *its = te.compute(rows, chosen, name=names)
        return number, tuple(its)


@dataclass(frozen=True, slots=True)
class ChosenCounts(Operator):
    """How many boxes were chosen in each class, as int64, of the numbers that OverlapStep gives."""

    role = OperatorRole.GENERAL

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        if types[0].rank != 3 or types[0].dtype != "int32":
            problem = f"expected numbers, int32 of three axes, got {types[0]}"
            refuse(self, problem, code="chosen-numbers")
        return (TensorType("int64", types[0].shape[:2]),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.sum(np.greater_equal(arrays[0], 0), axis=2, dtype=np.int64),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (chosen,) = tensors
        *rows, many = shape_of(chosen)
        r = te.reduce_axis(axis_of(many), name="r")
        one, none = te.const(1, "int32"), te.const(0, "int32")

        def some(b: Expr, c: Expr) -> Expr:
            return te.sum(te.select(chosen[b, c, r] >= none, one, none), axis=r)

        found = te.compute(rows, some, name=f"{name}_some")
        return (te.compute(rows, lambda b, c: te.cast(found[b, c], "int64"), name=name),)


@dataclass(frozen=True, slots=True)
class ChosenBoxes(Operator):
    """The batch, class and number of the `count` boxes that were chosen, in a row each: class after
    class, in each one those that were chosen first.

    Inputs: the numbers of those that were chosen in each class, int32 of (batch, classes, most),
    and how many they are, int64 of (batch, classes).
    """

    count: AnySize

    role = OperatorRole.GENERAL

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 2, 2)
        chosen, counts = types
        fitting = chosen.rank == 3 and chosen.dtype == "int32"
        if not fitting or counts != TensorType("int64", chosen.shape[:2]):
            refuse(self, f"{listed(types)} are no chosen boxes", code="chosen-types")
        return (TensorType("int64", (self.count, 3)),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        chosen, counts = (cast(Ints, array) for array in arrays)
        batch, classes, many = chosen.shape
        ends = np.cumsum(counts.reshape(-1))
        at = np.arange(closed(self.count))
        passed = np.less_equal(ends, at[:, np.newaxis]).sum(axis=1)
        row = np.minimum(passed, batch * classes - 1)
        begin = np.where(passed > 0, ends[passed - 1], 0)
        own = chosen.reshape(batch * classes, many)
        box = np.maximum(own[row, np.clip(at - begin, 0, many - 1)], 0)
        return (np.stack([row // classes, row % classes, box], axis=1).astype(np.int64),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        chosen, counts = tensors
        batch, classes, many = map(closed, shape_of(chosen))
        rows = batch * classes
        count = axis_of(self.count)
        ends = te.compute(rows, _upto(counts, rows, classes), name=f"{name}_ends")
        q = te.reduce_axis(rows, name="q")

        def passed(k: Expr) -> Expr:
            return te.sum(te.select(ends[q] <= k, te.const(1, "int64"), 0), axis=q)

        row = te.compute(count, passed, name=f"{name}_row")

        def place(k: Expr) -> tuple[Expr, Expr]:
            before = ends[te.clamp_index(row[k] - 1, rows)]
            begin = te.select(row[k] > 0, before, te.const(0, "int64"))
            return te.minimum(row[k], te.const(rows - 1, "int64")), k - begin

        last, its = te.compute(count, place, name=(f"{name}_last", f"{name}_place"))

        def element(k: Expr, part: Expr) -> Expr:
            at = te.clamp_index(last[k], rows)
            b, c = at // classes, at % classes
            found = te.cast(chosen[b, c, te.clamp_index(its[k], many)], "int64")
            number = te.maximum(found, te.const(0, "int64"))
            own = te.select(te.eq(part, 0), last[k] // classes, last[k] % classes)
            return te.select(te.eq(part, 2), number, own)

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


def finite_score(score: Expr) -> Expr:
    """A score as a finite number: the last ones of float32 for infinite scores, the greatest one
    for NaN.
    """
    most = te.const(_GREATEST, score.dtype)
    number = te.select(te.eq(score, score), score, most)
    return te.minimum(te.maximum(number, -most), most)


def finite(scores: Floats) -> Floats:
    """The same of arrays."""
    found = np.clip(np.where(np.isnan(scores), _GREATEST, scores), -_GREATEST, _GREATEST)
    return cast(Floats, found.astype(scores.dtype))


def edges_from(sides: Sequence[Expr], *, centers: bool) -> tuple[Expr, ...]:
    """Where a box begins and ends on both axes, and its area, of the four numbers that it has."""
    a, b, c, d = sides
    if centers:
        two = te.const(2, str(a.dtype))
        edges = (a - c / two, b - d / two, a + c / two, b + d / two)
    else:
        edges = (te.minimum(b, d), te.minimum(a, c), te.maximum(b, d), te.maximum(a, c))
    x0, y0, x1, y1 = edges
    return *edges, (x1 - x0) * (y1 - y0)


def edges_of(sides: Floats, *, centers: bool) -> tuple[Floats, ...]:
    """The same of arrays, whose first axis is that of the four numbers."""
    a, b, c, d = sides
    if centers:
        edges = (a - c / 2, b - d / 2, a + c / 2, b + d / 2)
    else:
        edges = (np.minimum(b, d), np.minimum(a, c), np.maximum(b, d), np.maximum(a, c))
    x0, y0, x1, y1 = edges
    area = (x1 - x0) * (y1 - y0)
    return tuple(part.astype(sides.dtype) for part in (*edges, area))
