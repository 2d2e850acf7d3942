"""Operators that write where another tensor says: ScatterElements, ScatterND, CacheUpdate.

An index counts from the end where it is negative. One outside of -n .. n-1 has no meaning: a call
raises IndexError, after it has run with the nearest index that exists, which the reference takes.
Where several updates meet in one element, they count in their order: the last one stays, or each is
combined with what the ones before it left.

The kernels copy x and write the updates one after the other (te.scatter). On a GPU, and where a
call decides a size, they read instead of writing: each element of the result searches all updates
that may be its own, and adds up what it finds before it adds it to x. That is n * k comparisons for
n places and k updates; ScatterND compares places, not elements, and combines updates among
themselves where they are fewer than the places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from ...tir.expr import Expr
from ...tir.scatter import UFUNCS, Combining
from ...tir.sizes import at_most, axis_of, largest, product_of
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Array, Shape, TensorType
from .base import (
    Operator,
    OperatorRole,
    ReferenceWork,
    check_arity,
    check_number,
    check_same_dtype,
    highest,
    listed,
    lowest,
    normal_axis,
    refuse,
    shape_of,
)
from .gathering import index_from_front, places_from_front, where_any

_Reduce = Callable[[Expr, te.Axes], Expr]
_Pair = Callable[[Expr, Expr], Expr]
_REDUCE: dict[str, _Reduce] = {
    "add": lambda x, axes: te.sum(x, axis=axes, dtype=x.dtype),
    "mul": lambda x, axes: te.prod(x, axis=axes, dtype=x.dtype),
    "max": lambda x, axes: te.max(x, axis=axes),
    "min": lambda x, axes: te.min(x, axis=axes),
}
_PAIR: dict[str, _Pair] = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "max": te.maximum,
    "min": te.minimum,
}


@dataclass(frozen=True, slots=True)
class _Scatter(Operator):
    """x with updates, combined with what is there or (`none`) in its place."""

    combining: Combining = "none"

    role = OperatorRole.GENERAL
    checks_indices = True
    operand_names: ClassVar[tuple[str, ...]] = ("x", "indices", "updates")

    def _check(self, types: tuple[TensorType, ...]) -> None:
        check_arity(self, types, 3, 3)
        x, indices, updates = types
        (check_same_dtype if self.combining == "none" else check_number)(self, (x, updates))
        if indices.dtype not in ("int32", "int64"):
            refuse(self, f"expected int32 or int64 indices, got {indices}", code="scatter-indices")

    def work(self, types: tuple[TensorType, ...]) -> ReferenceWork:
        base = Operator.work(self, types)
        return ReferenceWork(base.held, base.steps + 4 * largest(types[1].elements))

    def _neutral(self, dtype: str) -> Expr:
        numbers = {"add": 0, "mul": 1, "max": lowest(dtype), "min": highest(dtype)}
        return te.const(numbers[self.combining], dtype)

    def _write(self, x: Array, at: Sequence[NDArray[np.int64]], updates: Array) -> Array:
        """A copy of x with updates, in their order."""
        result = np.array(x)
        with np.errstate(all="ignore"):
            if self.combining == "none":
                result[tuple(at)] = updates
            else:
                # NumPy's types know no tuple of places
                UFUNCS[self.combining].at(result, cast(int, tuple(at)), updates)
        return result


@dataclass(frozen=True, slots=True)
class ScatterElements(_Scatter):
    """x, where for each place i of `indices` updates[i] goes to the element i of x with indices[i]
    at `axis`, which is not negative.
    """

    axis: int = 0

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        self._check(types)
        x, indices, updates = types
        normal_axis(self, self.axis, x.rank)
        pairs = zip(x.shape, indices.shape, strict=False)
        large = [d for d, (has, wants) in enumerate(pairs) if d != self.axis and wants > has]
        if x.rank != indices.rank or large or indices.shape != updates.shape:
            problem = f"{listed(types[1:])} do not fit {x} on every axis but {self.axis}"
            refuse(self, problem, code="scatter-elements-shape")
        if x.shape[self.axis] == 0 and indices.elements != 0:
            refuse(self, f"{indices} has indices into no elements", code="scatter-empty")
        return (x,)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, indices, updates = arrays
        at: list[NDArray[np.int64]] = list(np.indices(indices.shape, sparse=True))
        at[self.axis] = places_from_front(indices, x.shape[self.axis])
        return (self._write(x, at, updates),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        x, indices, updates = tensors
        if not _is_closed(tensors):
            return self.search(*tensors, name=name)
        size = x.shape[self.axis]
        places = te.compute(
            shape_of(indices),
            lambda *i: te.cast(index_from_front(indices[i], size), "int32"),
            name=f"{name}_place",
        )
        how = self.combining
        return (te.scatter(x, updates, places, axis=self.axis, combining=how, name=name),)

    def search(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        """The result, of which each element searches the updates for its own."""
        x, indices, updates = tensors
        shape, given = shape_of(x), shape_of(indices)
        if indices.shape.count(0) or x.shape.count(0):
            return (te.compute(shape, lambda *i: x[i], name=name),)
        size = shape[self.axis]
        places = te.compute(
            given,
            lambda *i: te.cast(index_from_front(indices[i], size), "int32"),
            name=f"{name}_place",
        )
        r = te.reduce_axis(given[self.axis], name="r")

        def source(i: tuple[Expr, ...], along: Expr) -> tuple[Expr, ...]:
            """Where the updates of an element of x stand, as far as there are any."""
            same = (
                i[d] if shape[d] == g else te.minimum(i[d], axis_of(g) - 1)
                for d, g in enumerate(given)
            )
            return tuple(along if d == self.axis else at for d, at in enumerate(same))

        def is_own(i: tuple[Expr, ...]) -> Expr:
            own = te.eq(places[source(i, r)], te.cast(i[self.axis], "int32"))
            cut = [d for d, g in enumerate(given) if d != self.axis and g != shape[d]]
            return te.all_of(own, *(i[d] < axis_of(given[d]) for d in cut))

        if self.combining == "none":
            last = _last(shape, lambda *i: is_own(i), r, name)
            end = given[self.axis]

            def chosen(*i: Expr) -> Expr:
                update = updates[source(i, te.clamp_index(last[i], end))]
                return te.select(last[i] < 0, x[i], where_any(update, end))

            return (te.compute(shape, chosen, name=name),)
        neutral = self._neutral(str(x.dtype))

        def combined(*i: Expr) -> Expr:
            update = te.select(is_own(i), updates[source(i, r)], neutral)
            return _REDUCE[self.combining](update, (r,))

        made = te.compute(shape, combined, name=f"{name}_own")
        pair = _PAIR[self.combining]
        return (te.compute(shape, lambda *i: pair(x[i], made[i]), name=name),)


@dataclass(frozen=True, slots=True)
class ScatterND(_Scatter):
    """x of [*places, m], where for each row k of `indices`, which holds a position in the places of
    x, the row updates[k] goes there. A row has m elements.
    """

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        self._check(types)
        x, indices, updates = types
        fits = indices.rank == 2 and x.rank > 1 and indices.shape[1] == x.rank - 1
        if not fits or updates.shape != (indices.shape[0], x.shape[-1]):
            wanted = "x [*places, m], indices [k, d], updates [k, m]"
            refuse(self, f"expected {wanted}, got {listed(types)}", code="scatter-nd-shape")
        if 0 in x.shape[:-1] and indices.elements != 0:
            refuse(self, f"{indices} has indices into no elements", code="scatter-empty")
        return (x,)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, indices, updates = arrays
        at = list(np.moveaxis(places_from_front(indices, x.shape[:-1]), -1, 0))
        return (self._write(x, at, updates),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        x, indices, updates = tensors
        if not _is_closed(tensors):
            return self.search(*tensors, name=name)
        count, sizes = indices.shape[0], x.shape[:-1]

        def place(k: Expr) -> tuple[Expr, ...]:
            found = (index_from_front(indices[k, d], size) for d, size in enumerate(sizes))
            return tuple(te.cast(one, "int32") for one in found)

        names = tuple(f"{name}_place{d}" for d in range(len(sizes)))
        places = te.compute(count, place, name=names)
        return (te.scatter(x, updates, places, axis=0, combining=self.combining, name=name),)

    def search(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        """The result, of which each element searches the updates for its own."""
        x, indices, updates = tensors
        shape = shape_of(x)
        sizes, (count, _) = shape[:-1], shape_of(indices)
        if indices.shape.count(0) or x.shape.count(0):
            return (te.compute(shape, lambda *i: x[i], name=name),)

        def place(k: Expr) -> Expr:
            found = index_from_front(indices[k, 0], sizes[0])
            for d, size in enumerate(sizes[1:], 1):
                found = found * axis_of(size) + index_from_front(indices[k, d], size)
            return te.cast(found, "int32")

        places = te.compute(count, place, name=f"{name}_place")
        r = te.reduce_axis(count, name="r")

        def is_own(*i: Expr) -> Expr:
            return te.eq(places[r], te.cast(_linear(i, sizes), "int32"))

        fewer = at_most(count + 1, product_of(sizes)) is True
        if self.combining == "none" or fewer:
            last = _last(sizes, is_own, r, name)
            made = updates if self.combining == "none" else self._totals(places, updates, name)

            def chosen(*i: Expr) -> Expr:
                own = last[i[:-1]]
                update: Expr = made[te.clamp_index(own, count), i[-1]]
                if self.combining != "none":
                    update = _PAIR[self.combining](x[i], update)
                return te.select(own < 0, x[i], where_any(update, count))

            return (te.compute(shape, chosen, name=name),)
        neutral = self._neutral(str(x.dtype))

        def combined(*i: Expr) -> Expr:
            update = te.select(is_own(*i[:-1]), updates[r, i[-1]], neutral)
            return _REDUCE[self.combining](update, (r,))

        made = te.compute(shape, combined, name=f"{name}_own")
        pair = _PAIR[self.combining]
        return (te.compute(shape, lambda *i: pair(x[i], made[i]), name=name),)

    def _totals(self, places: Tensor, updates: Tensor, name: str) -> Tensor:
        """Each update, combined with those of its place that stand before it: where there are fewer
        updates than places, less work than to combine those of each place.
        """
        neutral = self._neutral(str(updates.dtype))
        r = te.reduce_axis(updates.extents[0], name="before")

        def total(k: Expr, j: Expr) -> Expr:
            counts = te.all_of(te.eq(places[r], places[k]), r <= k)
            return _REDUCE[self.combining](te.select(counts, updates[r, j], neutral), (r,))

        return te.compute(updates.extents, total, name=f"{name}_total")


def _is_closed(tensors: Sequence[Tensor]) -> bool:
    """Whether no call decides a size, and there are updates to write."""
    open_ones = any(dim is not None for tensor in tensors for dim in tensor.dims)
    return not open_ones and 0 not in tensors[0].shape and 0 not in tensors[1].shape


def _last(shape: Shape, is_own: Callable[..., Expr], r: te.ReduceAxis, name: str) -> Tensor:
    """For each place the number of the last update that is its own, -1 where there is none."""

    def element(*i: Expr) -> Expr:
        return te.max(te.select(is_own(*i), te.cast(r, "int32"), te.const(-1, "int32")), axis=r)

    return te.compute(shape, element, name=f"{name}_last")


def _linear(i: tuple[Expr, ...], sizes: Shape) -> Expr:
    """The number of a place in row-major order."""
    found = i[0]
    for index, size in zip(i[1:], sizes[1:], strict=True):
        found = found * axis_of(size) + index
    return found


@dataclass(frozen=True, slots=True)
class CacheUpdate(Operator):
    """The first input, [batch, ...], where along `axis` the second one stands, from the place on
    that the third one gives for each of the batch (0 where there is none).

    circular: what goes beyond the end goes on at the front. Otherwise a place from which it does
    would raise IndexError, after a run with the last place from which it does not.
    """

    axis: int
    circular: bool = False

    role = OperatorRole.GENERAL
    checks_indices = True
    operand_names = ("cache", "update", "places")

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 2, 3)
        check_same_dtype(self, types[:2])
        cache, update = types[:2]
        axis = normal_axis(self, self.axis, cache.rank)
        pairs = list(zip(cache.shape, update.shape, strict=False))
        same = all(a == b for d, (a, b) in enumerate(pairs) if d != axis)
        if not axis or cache.rank != update.rank or not same or pairs[axis][0] < pairs[axis][1]:
            problem = f"{update} does not fit {cache} along axis {axis}, behind the batch"
            refuse(self, problem, code="cache-update")
        wanted = TensorType("int64", cache.shape[:1])
        if types[2:] and types[2] != wanted:
            refuse(self, f"expected places {wanted}, got {types[2]}", code="cache-places")
        return (cache,)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        cache, update = arrays[:2]
        size, count = cache.shape[self.axis], update.shape[self.axis]
        places = arrays[2] if arrays[2:] else np.zeros(len(cache), np.int64)
        result = np.array(cache)
        for row, new, place in zip(result, update, cast(list[int], places.tolist()), strict=True):
            first = place if self.circular else min(max(place, 0), size - count)
            along = (first + np.arange(count)) % max(size, 1)
            row[(*(slice(None),) * (self.axis - 1), along)] = new
        return (result,)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        cache, update = tensors[:2]
        shape = shape_of(cache)
        size, count = shape[self.axis], shape_of(update)[self.axis]
        own_size, own_count = axis_of(size), axis_of(count)

        def element(*i: Expr) -> Expr:
            if count == 0:
                return cache[i]
            offset = i[self.axis]
            if tensors[2:]:
                place = tensors[2][i[0]]
                if self.circular:
                    offset = (offset - place % own_size) % own_size
                else:
                    offset = offset - te.checked(place, size - count + 1, what="write index")
            own = te.all_of(offset >= 0, offset < own_count)
            at = te.clamp_index(offset, count)
            new = update[(*i[: self.axis], at, *i[self.axis + 1 :])]
            return te.select(own, where_any(new, count), cache[i])

        return (te.compute(shape, element, name=name),)


@dataclass(frozen=True, slots=True)
class ReverseSequence(Operator):
    """The first input with the first elements along `time` backwards: for each element of `batch`
    as many as the second input says, of 0 to all.
    """

    time: int = 0
    batch: int = 1

    role = OperatorRole.MOVEMENT
    checks_indices = True
    rearranges = False
    operand_names = ("x", "lengths")

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 2, 2)
        x, lengths = types
        time, batch = (normal_axis(self, axis, x.rank) for axis in (self.time, self.batch))
        if time == batch or lengths != TensorType("int64", (x.shape[batch],)):
            problem = f"expected int64 lengths for axis {batch} of {x}, got {lengths}, axis {time}"
            refuse(self, problem, code="reverse-lengths")
        return (x,)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, lengths = arrays
        size = x.shape[self.time]
        steps = np.arange(size).reshape([-1 if d == self.time else 1 for d in range(x.ndim)])
        own = np.clip(lengths.astype(np.int64), 0, size)
        own = own.reshape([-1 if d == self.batch else 1 for d in range(x.ndim)])
        at = np.broadcast_to(np.where(steps < own, own - 1 - steps, steps), x.shape)
        return (np.take_along_axis(x, at, self.time),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        x, lengths = tensors
        shape = shape_of(x)
        size = shape[self.time]

        def element(*i: Expr) -> Expr:
            if size == 0:
                return te.const(0, x.dtype)
            step = i[self.time]
            own = te.checked(lengths[i[self.batch]], size + 1, what="length")
            at = te.clamp_index(te.select(step < own, own - 1 - step, step), size)
            return x[(*i[: self.time], at, *i[self.time + 1 :])]

        return (te.compute(shape, element, name=name),)
