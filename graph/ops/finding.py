"""Operators that find: TrueWords, which elements are true, as bits, CountTrue, how many these are,
FindTrue, where they stand, Coordinates, of such places, and RunStarts, where equal elements begin.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...tir.expr import Expr
from ...tir.sizes import AnySize, axis_of, closed, largest, product_of
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Array, Shape, TensorType
from .base import (
    Operator,
    OperatorRole,
    ReferenceWork,
    check_arity,
    listed,
    refuse,
    shape_of,
    tensor_type,
)
from .triangle import CumSum

_BITS = 32  # elements to a word
_PARTS = 4  # into which each step of a search divides what is left


@dataclass(frozen=True, slots=True)
class TrueWords(Operator):
    """Which elements along the last axis are true, or not 0, as bits of int32 words, the first one
    lowest. There are words for `most` elements, and at least one; the axis has no more. Of two
    inputs, which elements of the first one are greater than the second one, a number.
    """

    most: int

    role = OperatorRole.GENERAL

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 2)
        first, *other = types
        if not first.rank or any(one != TensorType(first.dtype, ()) for one in other):
            refuse(self, f"expected rows, and a number, got {listed(types)}", code="find-rank")
        if largest(first.shape[-1]) > self.most:
            problem = f"expected at most {self.most} elements, got {first}"
            refuse(self, problem, code="find-most")
        return (TensorType("int32", (*first.shape[:-1], self._words)),)

    @property
    def _words(self) -> int:
        return max(1, -(-self.most // _BITS))

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, *least = arrays
        flags = np.greater(x, *least) if least else x != 0
        end = self._words * _BITS - flags.shape[-1]
        bits = np.pad(flags, [(0, 0)] * (flags.ndim - 1) + [(0, end)])
        return (np.packbits(bits, axis=-1, bitorder="little").view("<i4"),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        x, *least = tensors
        *around, size = shape_of(x)
        zero, bit = te.const(0, "int32"), te.reduce_axis(_BITS, name="bit")

        def found(value: Expr) -> Expr:
            if least:
                return value > least[0][()]
            return value if value.dtype.is_bool else te.ne(value, 0)

        def element(*i: Expr) -> Expr:
            if size == 0:
                return te.sum(zero + te.cast(bit, "int32") * 0, axis=bit)
            at = i[-1] * _BITS + bit
            one = te.const(1, "int32") << te.cast(bit, "int32")
            own = te.select(found(x[(*i[:-1], at)]), one, zero)
            whole = size == self._words * _BITS
            return te.sum(own if whole else te.select(at < axis_of(size), own, zero), axis=bit)

        return (te.compute((*around, self._words), element, name=name),)


@dataclass(frozen=True, slots=True)
class CountTrue(Operator):
    """How many bits along the last axis of int32, of what TrueWords gives, are 1, as int64."""

    role = OperatorRole.GENERAL

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        _check_words(self, types)
        return (TensorType("int64", types[0].shape[:-1]),)

    def work(self, types: tuple[TensorType, ...]) -> ReferenceWork:
        return _bit_work(Operator.work(self, types), types)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.asarray(np.count_nonzero(_bits_of(arrays[0]), axis=-1), np.int64),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (words,) = tensors
        *around, many = shape_of(words)
        r = te.reduce_axis(many, name="r")
        ones = te.compute(shape_of(words), lambda *i: _ones(words[i]), name=f"{name}_ones")
        # a sum that is a row, if of one element, runs in vectors
        rows = around or [1]

        def total(*i: Expr) -> Expr:
            return te.sum(ones[(*i, r) if around else r], axis=r)

        totals = te.compute(rows, total, name=f"{name}_total")

        def element(*i: Expr) -> Expr:
            return te.cast(totals[i or 0], "int64")

        return (te.compute(around, element, name=name),)


@dataclass(frozen=True, slots=True)
class FindTrue(Operator):
    """Where the true elements of each row of `length` stand, in order, without the first `skip`:
    `count` of them; `length` where there are no more. The input: what TrueWords gives of the rows.

    The kernel counts the bits up to the end of each word and searches these counts for
    k + skip + 1, for each k apart; then the bits of the word that it finds, as "Select the bit
    position with the given count" of S. E. Anderson's "Bit Twiddling Hacks" does.
    """

    count: AnySize
    length: AnySize
    skip: int = 0

    role = OperatorRole.GENERAL

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        _check_words(self, types)
        return (TensorType("int64", (*types[0].shape[:-1], self.count)),)

    def work(self, types: tuple[TensorType, ...]) -> ReferenceWork:
        return _bit_work(Operator.work(self, types), types)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        bits, count = _bits_of(arrays[0]), closed(self.count)
        found = np.full((*bits.shape[:-1], count), closed(self.length))
        for row in np.ndindex(*bits.shape[:-1]):
            places = np.flatnonzero(bits[row])[self.skip : self.skip + count]
            found[row][: places.size] = places
        return (found,)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (words,) = tensors
        *around, open_many = shape_of(words)
        many, shape = closed(open_many), (*around, self.count)
        ones = te.compute(shape_of(words), lambda *i: _ones(words[i]), name=f"{name}_ones")
        (counts,) = CumSum(len(around)).express(ones, name=f"{name}_counts")
        found, before = self._word(counts, shape, many, name)

        def bits(*i: Expr) -> tuple[Expr, ...]:
            word = words[(*i[:-1], te.clamp_index(found[i], many))]
            return word, _sums(word)[8], self._number(i) - before[i]

        names = f"{name}_bits", f"{name}_eights", f"{name}_rank"
        word, eights, rank = te.compute(shape, bits, name=names)

        def byte(*i: Expr) -> tuple[Expr, Expr]:
            sums = {16: (eights[i] + (eights[i] >> 8)) & 0x1F, 8: eights[i]}
            return _halves(sums, te.const(0, "int32"), rank[i])

        place, left = te.compute(shape, byte, name=(f"{name}_byte", f"{name}_in_byte"))

        def pair(*i: Expr) -> tuple[Expr, Expr]:
            sums = _sums(word[i])
            return _halves({4: sums[4], 2: sums[2]}, place[i], left[i])

        second, rest = te.compute(shape, pair, name=(f"{name}_pair", f"{name}_in_pair"))

        def element(*i: Expr) -> Expr:
            bit, _ = _halves({1: word[i]}, second[i], rest[i])
            at = te.cast(found[i] * _BITS + bit, "int64")
            return te.select(found[i] < many, at, 0 * i[-1] + axis_of(self.length))

        return (te.compute(shape, element, name=name),)

    def _word(self, counts: Tensor, shape: Shape, many: int, name: str) -> tuple[Tensor, Tensor]:
        """In which word the element of each number is, and how many are before that word: a search
        in steps of which each leaves one of _PARTS parts.
        """
        strides, found = [1], None
        while strides[-1] * _PARTS <= many:
            strides.append(strides[-1] * _PARTS)
        for number, stride in enumerate(reversed(strides)):
            names = f"{name}_word{number}", f"{name}_before{number}"
            step = self._step(counts, found, many, stride)
            word, before = te.compute(shape, step, name=names)
            found = word, before
        assert found is not None
        return found

    def _step(
        self, counts: Tensor, found: tuple[Tensor, Tensor] | None, many: int, stride: int
    ) -> Callable[..., tuple[Expr, Expr]]:
        zero, one = te.const(0, "int32"), te.const(1, "int32")

        def step(*i: Expr) -> tuple[Expr, Expr]:
            word: Expr = zero if found is None else found[0][i]
            before: Expr = zero if found is None else found[1][i]
            steps: Expr = zero
            for part in range(1, _PARTS):
                at = word + (part * stride - 1)
                # every place lies within the counts where it counts, but an index needs bounds
                count = counts[(*i[:-1], te.clamp_index(at, many))]
                ahead = te.all_of(count <= self._number(i), at < many)
                passed = te.select(ahead, one, zero)
                steps, before = steps + passed, te.maximum(before, passed * count)
            return word + steps * stride, before

        return step

    def _number(self, indices: tuple[Expr, ...]) -> Expr:
        return te.cast(indices[-1] + self.skip, "int32")


def _halves(sums: dict[int, Expr], place: Expr, left: Expr) -> tuple[Expr, Expr]:
    """Where the bits begin, so many as the last of the widths, among which that one is before which
    `left` bits are 1 from `place` on; and how many are before it there. sums: how many bits of the
    word are 1 of each so many, in their place, from half of those that are looked at on.
    """
    zero, one = te.const(0, "int32"), te.const(1, "int32")
    for width, counts in sums.items():
        ones = (counts >> place) & (2 * width - 1)
        over = te.select(ones <= left, one, zero)
        place, left = place + over * width, left - over * ones
    return place, left


def _sums(word: Expr) -> dict[int, Expr]:
    """How many bits of an int32 are 1 of each so many, in their place."""
    found = {1: word, 2: word - ((word >> 1) & 0x55555555)}
    found[4] = (found[2] & 0x33333333) + ((found[2] >> 2) & 0x33333333)
    found[8] = (found[4] + (found[4] >> 4)) & 0x0F0F0F0F
    found[16] = (found[8] + (found[8] >> 8)) & 0x001F001F
    return found


def _ones(word: Expr) -> Expr:
    """How many bits of an int32 are 1."""
    sums = _sums(word)[16]
    return (sums + (sums >> 16)) & 0x3F


@dataclass(frozen=True, slots=True)
class Coordinates(Operator):
    """The indices in an array of `shape`, a row for each of its axes, of row-major places in it."""

    shape: Shape

    role = OperatorRole.GENERAL

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        if types[0].dtype != "int64" or types[0].rank != 1 or not self.shape:
            problem = f"expected a vector of int64 and axes, got {types[0]} of {list(self.shape)}"
            refuse(self, problem, code="coordinates-type")
        return (TensorType("int64", (len(self.shape), *types[0].shape)),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (places,) = arrays
        rows = []
        for axis, size in enumerate(self.shape):
            row = places // max(1, math.prod(map(closed, self.shape[axis + 1 :])))
            rows.append(row % max(1, closed(size)) if axis else row)
        return (np.stack(rows),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (places,) = tensors
        (result,) = self.infer((tensor_type(places),))

        def element(axis: Expr, k: Expr) -> Expr:
            found = self._row(places[k], 0)
            for number in range(1, len(self.shape)):
                found = te.select(te.eq(axis, number), self._row(places[k], number), found)
            return found

        return (te.compute(result.shape, element, name=name),)

    def _row(self, place: Expr, axis: int) -> Expr:
        row = place // axis_of(product_of(self.shape[axis + 1 :]))
        return row % axis_of(self.shape[axis]) if axis else row


@dataclass(frozen=True, slots=True)
class RunStarts(Operator):
    """Of a vector, whether each element differs from the one before it, or is the first. A NaN is
    like another one.
    """

    role = OperatorRole.GENERAL

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        if types[0].rank != 1:
            refuse(self, f"expected a vector, got {types[0]}", code="runs-rank")
        return (TensorType("bool", types[0].shape),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        same = (x[1:] == x[:-1]) | ((x[1:] != x[1:]) & (x[:-1] != x[:-1]))
        return (np.concatenate([np.ones(min(x.size, 1), bool), ~same]),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (x,) = tensors
        (size,) = shape_of(x)

        def element(i: Expr) -> Expr:
            if size == 0:
                return te.const(True, "bool")
            here, before = x[i], x[te.clamp_index(i - 1, closed(size))]
            other = te.ne(here, before)
            if here.dtype.is_float:
                numbers = te.any_of(te.eq(here, here), te.eq(before, before))
                other = te.all_of(other, numbers)
            return te.any_of(te.eq(i, 0), other)

        return (te.compute(size, element, name=name),)


def _check_words(operator: Operator, types: tuple[TensorType, ...]) -> None:
    """Refuse what TrueWords does not give."""
    check_arity(operator, types, 1, 1)
    if types[0].dtype != "int32" or not types[0].rank:
        refuse(operator, f"expected rows of int32, got {types[0]}", code="find-words")


def _bit_work(base: ReferenceWork, types: tuple[TensorType, ...]) -> ReferenceWork:
    """With an element for each bit of the words."""
    bits = _BITS * largest(types[0].elements)
    return ReferenceWork(base.held + bits, base.steps + bits)


def _bits_of(words: Array) -> Array:
    """The bits of rows of int32, the lowest one first."""
    rows = np.ascontiguousarray(words.astype("<i4"))
    return np.unpackbits(rows.view(np.uint8), axis=-1, bitorder="little")
