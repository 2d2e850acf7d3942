"""The first elements of rows in an order, found block by block: the first ones of all blocks are
ranked, and only as many blocks as elements are wanted go on.

Whatever the blocks are, the first k elements of a row are in the k blocks whose own first elements
come first: an element of another block has these k before it. So of n elements, k blocks of w go
on, k * w elements, among which smaller blocks are looked at, until ranks of all that are left cost
less. The size of each array is known; data decide nothing but what is in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from ...tir.dim import Dim
from ...tir.expr import Expr
from ...tir.number import integer_range
from ...tir.sizes import AnySize, axis_of
from ...tir.sizes import largest as most
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Shape

_ROUND = 16384  # comparisons that take as long as what a round costs beside its own
_BESIDE = 1 << 29  # how far the place of a NaN is moved, more than a row has elements
_BEHIND = 1 << 30  # the first place that is behind all, those of NaN too

Values = tuple[Expr, ...]
Read = Callable[..., Expr]


@cache
def rounds(size: int, count: int) -> tuple[int, ...]:
    """The sizes of the blocks in each round, the largest first, with the fewest comparisons."""
    return _cheapest(size, count)[1]


@cache
def _cheapest(size: int, count: int) -> tuple[int, tuple[int, ...]]:
    """The comparisons that find `count` of `size` elements, and the blocks of the rounds."""
    found: tuple[int, tuple[int, ...]] = (size * (size + count), ())
    block = 2
    while count and -(-size // block) > count:
        blocks = -(-size // block)
        own = _ROUND + size + blocks * (blocks + count) + 2 * count * block
        if count * block < size:
            rest, sizes = _cheapest(count * block, count)
            found = min(found, (own + rest, (block, *sizes)))
        block *= 2
    return found


def first_places(
    around: Shape, size: int, value: Read, count: AnySize, *, largest: bool, name: str
) -> Tensor:
    """The places of the first `count` elements of each row of `size`, int32, in order: the largest
    elements or the smallest ones, of equal ones that with the smaller place; a NaN counts as larger
    than every number.

    around: the shape of the rows, whose elements stand in the last axis. value: an element.
    """

    def keyed(*i: Expr) -> Values:
        """A NaN becomes infinite, with a place before, or behind, those of infinite numbers."""
        own, place = value(*i), te.cast(i[-1], "int32")
        if not own.dtype.is_float:
            return own, place
        moved = place - _BESIDE if largest else place + _BESIDE
        number = te.eq(own, own)
        return te.select(number, own, te.const(np.inf, own.dtype)), te.select(number, place, moved)

    values, keys = te.compute((*around, size), keyed, name=(f"{name}_value", f"{name}_key"))
    left = Contest(around, size, values, keys, largest)
    behind = _BEHIND
    for number, block in enumerate(rounds(size, most(count))):
        left = left.round(block, most(count), behind, f"{name}_{number}")
        behind += left.size
    chosen = left.chosen(axis_of(count), lambda *i: left.keys[i], name)

    def place(*i: Expr) -> Expr:
        key = chosen[i]
        moved = key < 0 if largest else te.all_of(key >= _BESIDE, key < _BEHIND)
        return te.select(moved, key + _BESIDE if largest else key - _BESIDE, key)

    return te.compute((*around, count), place, name=f"{name}_first")


@dataclass(frozen=True, slots=True, eq=False)
class Contest:
    """The elements of rows that are left, in no order, and the keys of their places.

    around: the shape of the rows, whose elements stand in the last axis. largest: whether large
    elements come first; of equal ones always that with the smaller key, and no two keys are equal.
    """

    around: Shape
    size: int
    values: Tensor
    keys: Tensor
    largest: bool

    def round(self, block: int, count: int, behind: int, name: str) -> Contest:
        """What is left of blocks of so many elements: `count` of them. Where a block has fewer,
        elements that come last, with keys from `behind` on, stand in for the others.
        """
        blocks = -(-self.size // block)
        heads = self._heads(block, blocks, name)
        chosen = heads.chosen(count, lambda *i: te.cast(i[-1], "int32"), f"{name}_block")

        def element(*i: Expr) -> Values:
            *outer, slot = i
            at = (slot % block) * blocks + te.cast(chosen[(*outer, slot // block)], "int64")
            inside = (*outer, te.clamp_index(at, self.size))
            value, place = self.values[inside], self.keys[inside]
            if blocks * block == self.size:
                return value, place
            there, other = at < self.size, te.cast(slot + behind, "int32")
            return te.select(there, value, self._last(value)), te.select(there, place, other)

        shape = (*self.around, count * block)
        values, keys = te.compute(shape, element, name=(f"{name}_left", f"{name}_key"))
        return Contest(self.around, count * block, values, keys, self.largest)

    def _heads(self, block: int, blocks: int, name: str) -> Contest:
        """The first element of each block. A block has every `blocks`-th element, so
        that the blocks lie side by side.
        """
        r = te.reduce_axis(block, name="r")
        first = te.comm_reducer(
            self._joined,
            lambda value, key: (self._last(te.const(0, value)), integer_range(key)[1]),
            name="first_of_block",
        )

        def head(*i: Expr) -> Expr:
            *outer, b = i
            at = (*outer, r * blocks + b)
            whole = block * blocks == self.size
            return first(
                (self.values[at], self.keys[at]), r, where=None if whole else at[-1] < self.size
            )

        names = f"{name}_head", f"{name}_head_key"
        values, keys = te.compute((*self.around, blocks), head, name=names)
        return Contest(self.around, blocks, values, keys, self.largest)

    def _joined(self, a: Values, b: Values) -> Values:
        taken = self._before(a, b)
        return te.select(taken, a[0], b[0]), te.select(taken, a[1], b[1])

    def chosen(self, count: int | Dim, what: Read, name: str) -> Tensor:
        """`what` of the first elements, in order: each rank is looked for among those of all."""
        other = te.reduce_axis(self.size, name="other")
        r = te.reduce_axis(self.size, name="r")

        def rank(*i: Expr) -> Expr:
            *outer, _ = i
            if self.size == 1:  # compilers warn of what is compared with itself
                return te.const(0, "int32")
            theirs = self.values[(*outer, other)], self.keys[(*outer, other)]
            before = self._before(theirs, (self.values[i], self.keys[i]))
            return te.sum(te.cast(before, "int32"), axis=other)

        ranks = te.compute((*self.around, self.size), rank, name=f"{name}_rank")

        def chosen(*i: Expr) -> Expr:
            *outer, k = i
            is_it = te.eq(ranks[(*outer, r)], te.cast(k, "int32"))
            own = te.select(is_it, what(*outer, r), te.const(0, "int32"))
            return te.sum(own, axis=r, dtype="int32")

        return te.compute((*self.around, count), chosen, name=f"{name}_chosen")

    def _before(self, a: Values, b: Values) -> Expr:
        """Whether an element, value and key, comes before another one."""
        first = a[0] > b[0] if self.largest else a[0] < b[0]
        return te.any_of(first, te.all_of(te.eq(a[0], b[0]), a[1] < b[1]))

    def _last(self, like: Expr) -> Expr:
        """The value that comes last; with a key behind all others it is behind all elements."""
        if like.dtype.is_float:
            return te.const(-np.inf if self.largest else np.inf, like.dtype)
        return te.const(integer_range(like.dtype)[0 if self.largest else 1], like.dtype)
