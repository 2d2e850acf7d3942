"""The values that loop variables take."""

from __future__ import annotations

from ..stmt import For, ForKind
from .linear import Interval


class LaneRange(tuple[int | None, int | None]):
    """The range of a vectorised loop, or of one that an instruction computes. A condition that
    leaves one lane does not name it: accesses stay vectors, as they are in the other copies of a
    block.
    """


def iterations(loop: For) -> Interval:
    """The values of a loop's variable."""
    values = (0, loop.extent - 1)
    lanes = loop.kind in (ForKind.VECTORIZED, ForKind.TENSORIZED)
    return LaneRange(values) if lanes else values
