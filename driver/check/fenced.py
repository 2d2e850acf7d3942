"""Arrays whose surroundings and first contents give a kernel away that writes where it may not, or
whose results depend on what it may not read.

There are PATTERNS of what lies around and inside. In the first, floats are signalling NaN and
integers the greatest of their type; in the others, the largest floats and the ends of integers, the
bytes inside differ, too. NaN hides behind a maximum or a comparison, and no integer poisons a sum;
so a kernel runs on several patterns, and its results must have the same bits on all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...runtime.arrays import ALIGNMENT, Array, address
from ...tir.dtype import DType
from ...tir.dtype import dtype as as_dtype
from ...tir.number import integer_range

GUARD = 4096  # bytes on either side of an array
PATTERNS = 3
_BYTES = as_dtype("uint8")
_POISON = (0xFF, 0x7F, 0x80)  # all bits set: NaN in every float type; then large, then tiny floats
_SIGNALLING = {
    "float16": 0x7D5A,
    "bfloat16": 0x7FA5,
    "float32": 0x7FA5A5A5,
    "float64": 0x7FF5A5A5A5A5A5A5,
    "float8_e4m3fn": 0x7F,  # that type has one NaN
    "float8_e5m2": 0x7D,
    "float8_e4m3fnuz": 0x80,
    "float8_e5m2fnuz": 0x80,
    "float4_e2m1fn": 0x07,  # that type has none: the largest number
}


class Fenced:
    """A copy of an array with guard bytes on either side. The copy is aligned to its item, or to
    `alignment`.

    memory: the bytes of the copy with its guards.
    """

    def __init__(self, array: Array, pattern: int = 0, *, alignment: int = 1) -> None:
        bytes_ = array.nbytes + 2 * GUARD
        store = np.empty(bytes_ + alignment, np.uint8)
        first = -(address(store) + GUARD) % alignment
        self.memory = store[first : first + bytes_]
        middle = self.memory[GUARD : GUARD + array.nbytes]
        self.array: Array = middle.view(array.dtype).reshape(array.shape)
        self.array[...] = array
        self.set_fence(pattern)

    def set_fence(self, pattern: int) -> None:
        """Write the guards anew."""
        self._fence = fence(as_dtype(self.array.dtype), pattern)
        for end in self._ends():
            end[...] = self._fence

    def intact(self) -> bool:
        """Whether no guard byte has changed."""
        return all(np.array_equal(end, self._fence) for end in self._ends())

    def _ends(self) -> tuple[Array, Array]:
        return self.memory[:GUARD], self.memory[self.memory.size - GUARD :]


class HostFences:
    """How a device's code fences arrays; see `Code.fenced`."""

    guard = GUARD

    def around(self, array: Array) -> Fenced:
        """A fenced copy of an array."""
        return Fenced(array)

    def poisoned(self, dtype: DType, shape: Sequence[int]) -> Array:
        """An array of NaN, or of integers all of whose bits are set."""
        return poisoned(dtype, tuple(shape))


def fence(dtype: DType, pattern: int) -> Array:
    """The bytes of one side of a fence around elements of a type."""
    if dtype.is_float and pattern == 0:
        bits = np.asarray(_SIGNALLING[str(dtype)], f"u{dtype.bytes}")
        return np.full(GUARD // dtype.bytes, bits).view(np.uint8)
    if dtype.is_float:
        # here, as in dtype.py
        import ml_dtypes

        info = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
        end = float((info.max, info.min)[pattern - 1])
    else:
        low, high = integer_range(dtype)
        end = (high, low, high - high // 3)[pattern]
    return np.full(GUARD // dtype.bytes, end, dtype.numpy).view(np.uint8)


def poison(memory: Array, pattern: int = 0) -> None:
    """Set all bytes of an array without gaps; by default all their bits."""
    memory.reshape(-1).view(np.uint8)[:] = _POISON[pattern]


def poisoned(dtype: DType, shape: tuple[int, ...], pattern: int = 0) -> Array:
    """An array all of whose bytes are those of a pattern."""
    array = np.empty(shape, dtype.numpy)
    poison(array, pattern)
    return array


def fenced_scratch(size: int, pattern: int) -> Fenced:
    """Scratch memory between guards."""
    return Fenced(poisoned(_BYTES, (size,), pattern), pattern, alignment=ALIGNMENT)


def same_bits(one: Array, other: Array) -> bool:
    """Whether two arrays of one shape and width are the same, bit for bit."""
    whole = f"u{one.itemsize}"
    return np.array_equal(one.view(whole), other.view(whole))
