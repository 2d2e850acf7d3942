"""Rule for any function on a GPU: what makes a row (a softmax, a normalisation, a sum along the
last axis) is computed by the threads of one block, or of one warp; long sums of few elements by the
warps of a block together (grid/shared_sums.py); everything else by a thread for each element.

A thread has some vectors of each row, as far apart as there are threads. It keeps what it makes of
them in registers, and what more than one step reads, so that a row comes from memory once; where
that is too much, rows of intermediates lie in shared memory. A reduction along the row is cut into
a part for each element of a vector, each thread, and each warp (grid/row_parts.py), in the same
order on every device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ....tir.analysis.threads import WARP
from ....tir.func import PrimFunc
from ....tir.target.target import Target
from ....tir.work.work import points_of
from ...cost.grid import KernelPass
from ...nest import is_reduction, targets_of
from ...schedule import Schedule
from ..knobs.knobs import choose
from ..long_sums import cut_axes
from ..rule import Rule
from ..shape.row_groups import row_axis, row_groups
from ..shape.structure import inline_chains
from .elementwise import schedule_points
from .kernels import row_kernels
from .row_reduction import row_length, schedule_row
from .shared_sums import has_shared_sums, schedule_shared_sums

MOST_THREADS = 256  # that join the parts of a long reduction
PARTS = (32768, 8192, 2048)  # of a long reduction: threads that keep a large GPU busy
MOST_TERMS = 1 << 17  # of one element, which 32 warps share at most
LONG = 1 << 16  # terms that take one block longer than another two kernels


@dataclass(frozen=True, slots=True)
class GridRowsRule(Rule):
    """Any function.

    in_order: a sum is one chain in the order of its definition, never in parts.
    """

    name: ClassVar[str] = "grid rows"
    keeps_order: ClassVar[bool] = True

    def matches(self, func: PrimFunc) -> bool:
        """Always."""
        return True

    def apply(self, sch: Schedule, target: Target) -> None:
        """Take the steps."""
        inline_chains(sch, repeated=False)
        for name in () if self.in_order else sch.blocks():
            _cut_long(sch, cut_axes(sch, name, MOST_TERMS))
        plain: list[str] = []
        for group in row_groups(sch.func):
            if group.rows and row_length(sch, group) >= WARP:
                schedule_row(sch, group, in_order=self.in_order)
            else:
                plain += (*group.members, group.anchor)
        done: set[str] = set()
        for name in plain:
            if not self.in_order and has_shared_sums(sch.func.block(name)):
                done |= schedule_shared_sums(sch, name, plain)
            elif name not in done:
                schedule_points(sch, name)

    def passes(self, func: PrimFunc, target: Target) -> Sequence[KernelPass]:
        """The kernels of its rows."""
        return row_kernels(func)


def _cut_long(sch: Schedule, name: str) -> None:
    """Cut a long reduction of few elements into parts, each a thread's of a whole grid, and these
    into those of one block; parts lie side by side, so that neighbours read neighbours.
    """
    block = sch.func.block(name)
    axis = row_axis(block) if is_reduction(block) else None
    if axis is None or axis.extent < 2 * PARTS[-1] or len(targets_of(block)) > 1:
        return
    rows = points_of(block) // axis.extent
    fitting = (n for n in PARTS if 2 * n <= axis.extent and n * rows <= PARTS[0])
    default = next(fitting, 1) if axis.extent >= LONG else 1
    parts = choose(sch, "parts", name, (1, *PARTS), default)
    for count in (parts, MOST_THREADS) if parts > 1 else ():
        _, part = sch.split(sch.loops(name)[-1], (None, count), tail="mask")
        sch.rfactor(name, part)
