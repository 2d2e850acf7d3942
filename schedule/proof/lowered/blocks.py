"""What counting shows of the blocks of a grid: that each keeps to cells of its own.

It answers where shares.py does not, for small grids: a guard that holds in one block alone takes
the block's number out of the indices behind it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from ....tir.stmt import BLOCK_AXES
from ..forms.affine import Affine, variable
from ..forms.nest import Access
from ..grid_races import Threads
from ..races import AT_ONCE
from .cells import AccessedCells, CellTable, may_meet

MOST_RUNS = 1 << 20  # of all accesses to a buffer


@dataclass(slots=True)
class _Blocks:
    """The blocks of a grid in the place of the threads of a block."""

    extents: dict[tuple[int, str], int] = field(default_factory=dict)

    def threads(self, access: Access) -> Threads:
        """Which block an access is of."""
        loops = {loop.axis: loop for loop in access.statement.loops}
        return tuple(variable(loops[x].var) if x in loops else Affine() for x in BLOCK_AXES)


def blocks_keep_apart(accesses: Sequence[Access]) -> bool:
    """Whether different blocks touch different cells of a buffer, or only read; False where that is
    not counted.
    """
    if any(access.fresh for access in accesses):
        return False
    loops = [loop for access in accesses for loop in access.statement.loops]
    if any(loop.kind in AT_ONCE and not loop.axis for loop in loops):
        return False
    runs = sum(math.prod(x.extent for x in access.statement.loops) for access in accesses)
    if runs > MOST_RUNS:
        return False
    blocks = _Blocks()
    for access in accesses:
        for loop in access.statement.loops:
            key = access.statement.root, loop.axis
            blocks.extents[key] = max(blocks.extents.get(key, 1), loop.extent)
    table = CellTable(blocks, BLOCK_AXES)
    for root in {access.statement.root for access in accesses}:
        mine = [access for access in accesses if access.statement.root == root]
        known = [(access, table.of(access, 0)) for access in mine]
        touched = [cells for _, cells in known if cells is not None]
        stores = [cells for access, cells in known if cells is not None and access.write]
        if len(touched) < len(known) or not _apart(stores, touched):
            return False
    return True


def _apart(stores: list[AccessedCells], touched: list[AccessedCells]) -> bool:
    alike = {(cells.parts, cells.base, cells.ranges) for cells in touched}
    return not stores or (len(alike) == 1 and may_meet(stores, touched) is False)
