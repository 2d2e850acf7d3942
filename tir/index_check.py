"""IndexCheck: what the output of a function that is a check says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IndexCheck:
    """The values that a definition calls `what` must lie in 0 .. extent-1.

    The output holds the largest of them, read as uint64; 0 where there are none. Where a call
    decides the extent, which then is the name of that size, it holds the largest of those that lie
    outside; of an axis without elements that is -1, whatever they are.
    """

    what: str
    extent: int | str

    @property
    def fails_from(self) -> int:
        """The least content of the output that says that a value lies outside."""
        return self.extent if isinstance(self.extent, int) else 1

    def failure(self, largest: int) -> int | None:
        """A value outside of the range, from the content of the output; None where all lie in it.

        A negative one is larger, as uint64, than any that is not.
        """
        if largest < self.fails_from:
            return None
        return largest - (1 << 64) if largest >> 63 else largest

    @property
    def most(self) -> str:
        """The largest value that lies inside, in words."""
        if isinstance(self.extent, int):
            return str(self.extent - 1)
        return f"{self.extent} - 1"
