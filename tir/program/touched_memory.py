"""Which memory the steps of a program have touched: arrays, and bytes of the arena as intervals
that grow together, so that a question takes as long for thousands of steps as for a few.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Protocol


class MemoryPlace(Protocol):
    """A dense array of a program."""

    @property
    def space(self) -> str:
        """ "arena", or the list of arrays that it is one of."""
        ...

    @property
    def position(self) -> int:
        """Its first byte in the arena, or its number in the list."""
        ...

    @property
    def reach(self) -> int:
        """Bytes of the array; of all its rows where it is one of them."""
        ...


class TouchedMemory:
    """A set of places that grows."""

    def __init__(self) -> None:
        self._arrays: set[tuple[str, int]] = set()
        self._starts: list[int] = []  # of the intervals of the arena, none of which meet
        self._ends: list[int] = []

    def add(self, place: MemoryPlace) -> None:
        """Take in one more place."""
        if not place.reach:
            return
        if place.space != "arena":
            self._arrays.add((place.space, place.position))
            return
        self._add_interval(place.position, place.position + place.reach)

    def _add_interval(self, start: int, end: int) -> None:
        first, last = bisect_left(self._ends, start), bisect_right(self._starts, end)
        if first < last:
            start, end = min(start, self._starts[first]), max(end, self._ends[last - 1])
        self._starts[first:last] = [start]
        self._ends[first:last] = [end]

    def meets(self, place: MemoryPlace) -> bool:
        """Whether a place shares a byte with one of those."""
        if not place.reach:
            return False
        if place.space != "arena":
            return (place.space, place.position) in self._arrays
        after = bisect_right(self._ends, place.position)
        return after < len(self._starts) and self._starts[after] < place.position + place.reach

    def copy(self) -> TouchedMemory:
        """Another set of the same places."""
        made = TouchedMemory()
        made.update(self)
        return made

    def update(self, other: TouchedMemory) -> None:
        """Take in the places of another set."""
        self._arrays |= other._arrays
        for start, end in zip(other._starts, other._ends, strict=True):
            self._add_interval(start, end)
