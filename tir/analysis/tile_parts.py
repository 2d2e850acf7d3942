"""What code generation makes of a tile of which a call leaves a part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..dim import Dim


@dataclass(frozen=True, slots=True)
class TileParts:
    """Into how many smaller tiles one is cut; each is cut likewise, down to single rows.

    rows: of a tile up to which it is not cut: what is left of it runs at once, in a tile of as many
    rows as are left. The bodies for all their numbers have half as many rows as the square of it.
    """

    count: int
    rows: int = 0


QUARTERS = TileParts(4)
AT_ONCE = TileParts(2, rows=9)


def tile_parts(dims: Sequence[Dim]) -> TileParts:
    """The parts of a tile of a function with these dims.

    Each tile is one more pass over what the rows share: quarters make 3 + 3 + 1 + 1 of eight rows
    that are left of nine. At once there is one, and a proof asks less than of tiles within tiles;
    but where a call decides several sizes, quarters have the code that is proved sooner.
    """
    return AT_ONCE if len(dims) == 1 else QUARTERS
