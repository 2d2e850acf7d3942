"""Who wrote each byte of a memory last: intervals, however large the memory is."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterator


class ByteOwners:
    """Intervals of bytes that do not overlap, each with what wrote it last.

    owners = ByteOwners()
    owners.write(0, 64, "a")
    owners.write(32, 48, "b")
    list(owners.read(0, 64))     # [(0, 32, "a"), (32, 48, "b"), (48, 64, "a")]
    """

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._owners: list[Hashable] = []

    def write(self, start: int, end: int, owner: Hashable) -> None:
        """Bytes `start` to `end`, which is not among them, are now `owner`'s."""
        if start >= end:
            return
        first, last = bisect_right(self._ends, start), bisect_left(self._starts, end)
        kept: list[tuple[int, int, Hashable]] = []
        if first < last and self._starts[first] < start:
            kept.append((self._starts[first], start, self._owners[first]))
        kept.append((start, end, owner))
        if first < last and self._ends[last - 1] > end:
            kept.append((end, self._ends[last - 1], self._owners[last - 1]))
        self._starts[first:last] = [item[0] for item in kept]
        self._ends[first:last] = [item[1] for item in kept]
        self._owners[first:last] = [item[2] for item in kept]

    def read(self, start: int, end: int) -> Iterator[tuple[int, int, Hashable]]:
        """The parts of bytes `start` to `end`, in order, each with its owner; None: never written.

        Neighbours have different owners, or were written at different times.
        """
        if start >= end:
            return
        at = start
        for n in range(bisect_right(self._ends, start), len(self._starts)):
            if self._starts[n] >= end:
                break
            if self._starts[n] > at:
                yield at, self._starts[n], None
            at = min(end, self._ends[n])
            yield max(start, self._starts[n]), at, self._owners[n]
        if at < end:
            yield at, end, None

    def holds(self, start: int, end: int, owner: Hashable) -> bool:
        """Whether every byte from `start` to `end` is `owner`'s."""
        return all(found == owner for _, _, found in self.read(start, end))

    def copy(self) -> ByteOwners:
        """The same owners in another memory."""
        made = ByteOwners()
        made._starts, made._ends = self._starts.copy(), self._ends.copy()
        made._owners = self._owners.copy()
        return made

    def meet(
        self, other: ByteOwners, one_of: Callable[[Hashable, Hashable], Hashable] | None = None
    ) -> None:
        """Keep what both say. one_of: the owner of bytes of which the two say other ones, None for
        nobody.
        """
        kept: list[tuple[int, int, Hashable]] = []
        for start, end, mine in zip(self._starts, self._ends, self._owners, strict=True):
            for first, last, theirs in other.read(start, end):
                same = mine if mine == theirs else one_of(mine, theirs) if one_of else None
                if same is not None:
                    kept.append((first, last, same))
        self._starts = [item[0] for item in kept]
        self._ends = [item[1] for item in kept]
        self._owners = [item[2] for item in kept]
