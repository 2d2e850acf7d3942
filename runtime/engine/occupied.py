"""Memory of the caller's that a call may not write: arrays that constants were bound to.

Their values were copied, so a call that writes there computes what it should, and takes from the
caller what it was bound to: `kernel(a, b)` of a kernel to which b is bound already. Nothing is kept
alive for this: of memory that is gone, no call has to keep clear.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.array_utils import byte_bounds

from ..arrays import ArgumentValueError, Array


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an array lies, as long as the array lives that the memory belongs to."""

    name: str
    start: int
    end: int
    owner: weakref.ref[Array]


class Occupied:
    """The places of arrays, by the name of the constant that each was bound to."""

    def __init__(self, arrays: Iterable[Mapping[str, Array]] = ()) -> None:
        self._places = tuple(
            _Place(name, *byte_bounds(array), weakref.ref(_owner(array)))
            for named in arrays
            for name, array in named.items()
            if array.size
        )

    def check(self, call: str, names: Sequence[str], written: Sequence[object]) -> None:
        """Refuse arrays to be written that lie in one of the places. Raises: ArgumentValueError."""
        for name, array in zip(names, written, strict=True):
            if not isinstance(array, np.ndarray) or not array.size:
                continue
            start, end = byte_bounds(array)
            for place in self._places:
                if start < place.end and place.start < end and place.owner() is not None:
                    raise ArgumentValueError(
                        f"{call}: '{name}' is written and shares memory with the array that the "
                        f"constant '{place.name}' was bound to.",
                        code="argument-constant",
                        hints=(
                            "constants are bound once and not given to a call.",
                            f"{name}: an array of its own.",
                        ),
                    )


def _owner(array: Array) -> Array:
    """The array that the memory of a view belongs to."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
