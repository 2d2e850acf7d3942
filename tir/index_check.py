"""IndexCheck: what the output of a function that is a check says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IndexCheck:
    """The values that a definition calls `what` must lie in 0 .. extent-1.

    The output holds the largest of them, read as uint64; 0 where there are none.
    """

    what: str
    extent: int

    def failure(self, largest: int) -> int | None:
        """A value outside of the range, from the content of the output; None where all lie in it.

        A negative one is larger, as uint64, than any that is not.
        """
        if largest < self.extent:
            return None
        return largest - (1 << 64) if largest >> 63 else largest
