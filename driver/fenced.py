"""Arrays whose surroundings and first contents give a kernel away that writes where it may not, or
reads what it did not write.
"""

from __future__ import annotations

import numpy as np

from ..runtime.arrays import Array
from ..tir.dtype import DType

GUARD = 256  # bytes on either side of an array
_FENCE = 0xA5
_POISON = 0xFF  # all bits set: NaN in every float type


class Fenced:
    """A copy of an array with guard bytes on either side. The copy is aligned to its item only.

    memory: the bytes of the copy with its guards.
    """

    def __init__(self, array: Array) -> None:
        self.memory = np.full(array.nbytes + 2 * GUARD, _FENCE, np.uint8)
        middle = self.memory[GUARD : GUARD + array.nbytes]
        self.array: Array = middle.view(array.dtype).reshape(array.shape)
        self.array[...] = array

    def intact(self) -> bool:
        """Whether no guard byte has changed."""
        ends = (self.memory[:GUARD], self.memory[self.memory.size - GUARD :])
        return all(bool((end == _FENCE).all()) for end in ends)


def poison(memory: Array) -> None:
    """Set all bits of an array without gaps."""
    memory.reshape(-1).view(np.uint8)[:] = _POISON


def poisoned(dtype: DType, shape: tuple[int, ...]) -> Array:
    """An array all of whose bits are set."""
    array = np.empty(shape, dtype.numpy)
    poison(array)
    return array


def same_bits(one: Array, other: Array) -> bool:
    """Whether two arrays of one shape and width are the same, NaN for NaN."""
    whole = f"u{one.itemsize}"
    return np.array_equal(one.view(whole), other.view(whole))
