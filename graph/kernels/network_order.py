"""TopK by a sorting network of the elements' codes; where far fewer are wanted than there are, of
the first codes of blocks, so that only blocks that hold what is wanted go on (ops/tournament.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cache

from ...tir.dtype import INT64
from ...tir.expr import Expr
from ...tir.sizes import axis_of, closed, closed_shape, is_closed, largest
from ...tir.te import te
from ...tir.te.te import Tensor
from ..ops.ranking import TopK
from ..types import Shape
from .codes import BEHIND, PLACE_BITS, code, marked, number_of, place_of, words
from .fused_kernel import FusedKernel, KernelStep
from .sorting_network import Around, padded, sorted_codes, steps_of, transpositions_of

_LONGEST = 1 << 20  # elements of a row
_FEWEST = (
    1 << 16
)  # comparisons: where ranks take less, a kernel takes a few microseconds either way
_TRANSPOSED = 8  # stages of a network that take as long as to transpose what it holds
_LOOKED_UP = 24  # as to look up one code, of stages of one code
_HEAD = 3  # as to find the first of a block, for each of its codes
_ROUND = 12288  # as what a round takes beside its own

Read = Callable[..., Expr]

_first_of_block = te.comm_reducer(te.min_any, lambda _: BEHIND, name="first_of_block")


def rounds(size: int, count: int) -> tuple[int, ...]:
    """How many blocks there are in each round, with the fewest stages of codes."""
    return _cheapest(size, count, 1 << _free_bits(size))[1]


@cache
def _cheapest(size: int, count: int, most: int) -> tuple[int, tuple[int, ...]]:
    """The stages of codes that find `count` of `size`, and the blocks, `most` of them at most, of
    the rounds.
    """
    found: tuple[int, tuple[int, ...]] = (_sorting(size), ())
    blocks = padded(1)
    while blocks < size and blocks <= most:
        left = count * -(-size // blocks)
        if count < blocks and left < size:
            rest, listed = _cheapest(left, count, most)
            own = _ROUND + _HEAD * size + _sorting(blocks) + _LOOKED_UP * left
            found = min(found, (own + rest, (blocks, *listed)))
        blocks *= 2
    return found


def _free_bits(size: int) -> int:
    """The bits below the place of a code of a row, in which the number of a block stands."""
    return PLACE_BITS - (size - 1).bit_length()


def _sorting(size: int) -> int:
    """The stages of codes that take as long as a network."""
    return padded(size) * (steps_of(size) + _TRANSPOSED * transpositions_of(size))


@dataclass(frozen=True, slots=True)
class NetworkTopK(TopK):
    """A TopK by a sorting network. Its shape rule and its NumPy meaning are those of the
    operator.
    """

    def find_places(
        self, around: Shape, size: int, element: Callable[..., Expr], name: str
    ) -> Tensor:
        shape = closed_shape(around)
        kind = element(*(te.const(0, INT64),) * (len(around) + 1)).dtype
        find = self._by_words if kind.bits == 64 else self._by_code
        return find(shape, size, element, name)

    def _by_code(self, around: Around, size: int, element: Read, name: str) -> Tensor:
        """Where one word orders the elements."""
        most, low, left = largest(self.count), _free_bits(size), size

        def coded(*i: Expr) -> Expr:
            (word,) = words(element(*i), largest=self.largest)
            return code(word, i[-1], low)

        codes: Read = coded
        for number, blocks in enumerate(rounds(size, most)):
            step = f"{name}_{number}"
            made = te.compute((*around, left), codes, name=f"{step}_code")
            codes, left = _round(made, around, most, blocks, low, step)
        chosen = sorted_codes(codes, around, left, most, name)
        return te.compute(
            (*around, axis_of(self.count)),
            lambda *i: place_of(chosen[i], low),
            name=f"{name}_first",
        )

    def _by_words(self, around: Around, size: int, element: Read, name: str) -> Tensor:
        """By the lower word first; what that makes equal keeps its order by the higher one."""

        def low(*i: Expr) -> Expr:
            return code(words(element(*i), largest=self.largest)[1], i[-1], 0)

        def place(*i: Expr) -> Expr:
            return place_of(lower[i], 0)

        def high(*i: Expr) -> Expr:
            at = (*i[:-1], te.clamp_index(places[i], size))
            return code(words(element(*at), largest=self.largest)[0], i[-1], 0)

        def found(*i: Expr) -> Expr:
            return places[(*i[:-1], te.clamp_index(place_of(higher[i], 0), size))]

        lower = sorted_codes(low, around, size, size, f"{name}_low")
        places = te.compute((*around, size), place, name=f"{name}_low_place")
        higher = sorted_codes(high, around, size, largest(self.count), f"{name}_high")
        return te.compute((*around, axis_of(self.count)), found, name=f"{name}_first")


def _round(
    codes: Tensor, around: Around, count: int, blocks: int, low: int, name: str
) -> tuple[Read, int]:
    """The codes of the `count` blocks whose first codes come first, and how many these are. A block
    has every `blocks`-th code.
    """
    size = codes.shape[-1]
    width = -(-size // blocks)
    whole = width * blocks == size
    r = te.reduce_axis(width, name="r")

    def head(*i: Expr) -> Expr:
        at = r * blocks + i[-1]
        return _first_of_block(codes[(*i[:-1], at)], r, where=None if whole else at < size)

    heads = te.compute((*around, blocks), head, name=f"{name}_head")
    chosen = sorted_codes(
        lambda *i: marked(heads[i], i[-1]), around, blocks, count, f"{name}_block"
    )

    def left(*i: Expr) -> Expr:
        *row, slot = i
        block = number_of(chosen[(*row, slot % count)], low)
        at = slot // count * blocks + te.cast(block, INT64)
        own = codes[(*row, te.clamp_index(at, size))]
        return own if whole else te.select(at < size, own, BEHIND)

    return left, width * count


def as_network(fused: FusedKernel) -> FusedKernel | None:
    """A fused kernel that is a TopK, by a sorting network; None where it is none, a run decides
    the shape of what it reads, a row has more elements than a code has places for, or all elements
    are few: a network is many blocks, which take long to compile.
    """
    first, *rest = fused.steps
    op = first.op
    if type(op) is not TopK:
        return None
    shape = fused.types[first.inputs[0]].shape
    if not is_closed(shape) or not largest(op.count) or 0 in shape:
        return None
    size, elements = closed(shape[op.axis]), math.prod(closed_shape(shape))
    if size > _LONGEST or elements * (size + largest(op.count)) < _FEWEST:
        return None
    values = {field.name: getattr(op, field.name) for field in fields(op)}
    return replace(fused, steps=(KernelStep(NetworkTopK(**values), first.inputs), *rest))
