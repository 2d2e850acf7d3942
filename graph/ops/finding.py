"""Operators that find: TrueWords, which elements are true, as bits, CountTrue, how many these are,
FindTrue, where they stand, Coordinates, of such places, and RunStarts, where equal elements begin.
"""

from __future__ import annotations

import math
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
    refuse,
    shape_of,
    tensor_type,
)
from .triangle import CumSum

_BITS = 32  # elements to a word
_PARTS = 4  # into which each step of a search divides what is left


@dataclass(frozen=True, slots=True)
class TrueWords(Operator):
    """Which elements of a vector are true, or not 0, as bits of int32 words, the first one lowest.
    There are words for `most` elements, and at least one; the vector has no more.
    """

    most: int

    role = OperatorRole.GENERAL

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        if types[0].rank != 1:
            refuse(self, f"expected a vector, got {types[0]}", code="find-rank")
        if largest(types[0].shape[0]) > self.most:
            problem = f"expected at most {self.most} elements, got {types[0]}"
            refuse(self, problem, code="find-most")
        return (TensorType("int32", (self._words,)),)

    @property
    def _words(self) -> int:
        return max(1, -(-self.most // _BITS))

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        flags = arrays[0] != 0
        bits = np.pad(flags, (0, self._words * _BITS - flags.size))
        return (np.packbits(bits, bitorder="little").view("<i4"),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (flags,) = tensors
        (size,) = shape_of(flags)
        zero, bit = te.const(0, "int32"), te.reduce_axis(_BITS, name="bit")

        def element(word: Expr) -> Expr:
            if size == 0:
                return te.sum(zero + te.cast(bit, "int32") * 0, axis=bit)
            at = word * _BITS + bit
            on = flags[at] if flags.dtype.is_bool else te.ne(flags[at], 0)
            own = te.select(on, te.const(1, "int32") << te.cast(bit, "int32"), zero)
            inside = (
                own if size == self._words * _BITS else te.select(at < axis_of(size), own, zero)
            )
            return te.sum(inside, axis=bit)

        return (te.compute(self._words, element, name=name),)


@dataclass(frozen=True, slots=True)
class CountTrue(Operator):
    """How many bits of a vector of int32, what TrueWords gives, are 1, as int64."""

    role = OperatorRole.GENERAL

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        _check_words(self, types)
        return (TensorType("int64", ()),)

    def work(self, types: tuple[TensorType, ...]) -> ReferenceWork:
        return _bit_work(Operator.work(self, types), types)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.asarray(np.count_nonzero(_bits_of(arrays[0])), np.int64),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (words,) = tensors
        r = te.reduce_axis(shape_of(words)[0], name="r")
        ones = te.compute(shape_of(words), lambda word: _ones(words[word]), name=f"{name}_ones")
        # a sum that is a row, of one element, runs in vectors
        total = te.compute(1, lambda _: te.sum(ones[r], axis=r), name=f"{name}_total")
        return (te.compute((), lambda: te.cast(total[0], "int64"), name=name),)


@dataclass(frozen=True, slots=True)
class FindTrue(Operator):
    """Where the true elements of a vector of `length` stand, in order, without the first `skip`:
    `count` of them; `length` where there are no more. The input: what TrueWords gives of it.

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
        return (TensorType("int64", (self.count,)),)

    def work(self, types: tuple[TensorType, ...]) -> ReferenceWork:
        return _bit_work(Operator.work(self, types), types)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        count, length = closed(self.count), closed(self.length)
        found = np.flatnonzero(_bits_of(arrays[0]))[self.skip : self.skip + count]
        return (np.pad(found, (0, count - found.size), constant_values=length),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (words,), count = tensors, axis_of(self.count)
        (many,) = shape_of(words)
        ones = te.compute(many, lambda word: _ones(words[word]), name=f"{name}_ones")
        (counts,) = CumSum(0).express(ones, name=f"{name}_counts")
        found, before = self._word(counts, closed(many), name)

        def bits(k: Expr) -> tuple[Expr, ...]:
            word = words[te.clamp_index(found[k], closed(many))]
            return word, _sums(word)[8], self._number(k) - before[k]

        names = f"{name}_bits", f"{name}_eights", f"{name}_rank"
        word, eights, rank = te.compute(count, bits, name=names)

        def byte(k: Expr) -> tuple[Expr, Expr]:
            sums = {16: (eights[k] + (eights[k] >> 8)) & 0x1F, 8: eights[k]}
            return _halves(sums, te.const(0, "int32"), rank[k])

        place, left = te.compute(count, byte, name=(f"{name}_byte", f"{name}_in_byte"))

        def pair(k: Expr) -> tuple[Expr, Expr]:
            sums = _sums(word[k])
            return _halves({4: sums[4], 2: sums[2]}, place[k], left[k])

        second, rest = te.compute(count, pair, name=(f"{name}_pair", f"{name}_in_pair"))

        def element(k: Expr) -> Expr:
            bit, _ = _halves({1: word[k]}, second[k], rest[k])
            at = te.cast(found[k] * _BITS + bit, "int64")
            return te.select(found[k] < closed(many), at, 0 * k + axis_of(self.length))

        return (te.compute(count, element, name=name),)

    def _word(self, counts: Tensor, words: int, name: str) -> tuple[Tensor, Tensor]:
        """In which word the element of each number is, and how many are before that word: a search
        in steps of which each leaves one of _PARTS parts.
        """
        strides, found = [1], None
        while strides[-1] * _PARTS <= words:
            strides.append(strides[-1] * _PARTS)
        for number, stride in enumerate(reversed(strides)):
            names = f"{name}_word{number}", f"{name}_before{number}"
            found = self._step(counts, found, words, stride, names)
        assert found is not None
        return found

    def _step(
        self,
        counts: Tensor,
        found: tuple[Tensor, Tensor] | None,
        words: int,
        stride: int,
        names: tuple[str, str],
    ) -> tuple[Tensor, Tensor]:
        zero = te.const(0, "int32")

        def step(k: Expr) -> tuple[Expr, Expr]:
            word: Expr = zero if found is None else found[0][k]
            before: Expr = zero if found is None else found[1][k]
            steps: Expr = zero
            for part in range(1, _PARTS):
                at = word + (part * stride - 1)
                # every place lies within the counts where it counts, but an index needs bounds
                count = counts[te.clamp_index(at, words)]
                ahead = te.all_of(count <= self._number(k), at < words)
                one = te.select(ahead, te.const(1, "int32"), zero)
                steps, before = steps + one, te.maximum(before, one * count)
            return word + steps * stride, before

        made = te.compute(axis_of(self.count), step, name=names)
        return made[0], made[1]

    def _number(self, k: Expr) -> Expr:
        return te.cast(k + self.skip, "int32")


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
    if types[0].dtype != "int32" or types[0].rank != 1:
        refuse(operator, f"expected a vector of int32, got {types[0]}", code="find-words")


def _bit_work(base: ReferenceWork, types: tuple[TensorType, ...]) -> ReferenceWork:
    """With an element for each bit of the words."""
    bits = _BITS * largest(types[0].elements)
    return ReferenceWork(base.held + bits, base.steps + bits)


def _bits_of(words: Array) -> Array:
    """The bits of a vector of int32, the lowest one first."""
    return np.unpackbits(words.astype("<i4").view(np.uint8), bitorder="little")
