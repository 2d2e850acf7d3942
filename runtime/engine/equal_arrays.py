"""Arrays of equal bits, each kept once."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..arrays import Array

_CORNER = 4  # elements along each axis by which most arrays differ already


class EqualArrays:
    """The first of each lot of arrays that have one type, one shape and the same bits."""

    def __init__(self, arrays: Iterable[Array] = ()) -> None:
        self._alike: dict[tuple[str, tuple[int, ...], bytes], list[Array]] = {}
        for array in arrays:
            self.first(array)

    def find(self, array: Array) -> Array | None:
        """The one that equals `array`; None where there is none."""
        return next((one for one in self._candidates(array) if _same_bits(one, array)), None)

    def first(self, array: Array) -> Array:
        """The one that equals `array`; `array` itself, from now on, where there is none."""
        found = self.find(array)
        if found is not None:
            return found
        self._candidates(array).append(array)
        return array

    def _candidates(self, array: Array) -> list[Array]:
        corner = array[(slice(_CORNER),) * array.ndim].tobytes()
        return self._alike.setdefault((array.dtype.name, array.shape, corner), [])


def repeats_one_value(array: Array) -> bool:
    """Whether an array is a view of one element."""
    return array.size > 1 and not any(array.strides)


def _same_bits(one: Array, other: Array) -> bool:
    """Whether two arrays of one type and shape hold the same bits."""
    whole = f"u{one.itemsize}"
    return one is other or np.array_equal(one.view(whole), other.view(whole))
