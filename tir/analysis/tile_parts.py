"""Into how many smaller tiles code generation cuts one of which a call leaves a part."""

from __future__ import annotations

from collections.abc import Sequence

from ..dim import Dim

HALVES, QUARTERS = 2, 4


def tile_parts(dims: Sequence[Dim]) -> int:
    """The smaller tiles that one becomes; each is cut likewise, down to single rows.

    Halves leave fewer passes over what the rows share: five rows of eight are 4 + 1, and not
    2 + 2 + 1. Of several sizes that a call decides quarters do, whose code a proof takes half the
    time for.
    """
    return HALVES if len(dims) == 1 else QUARTERS
