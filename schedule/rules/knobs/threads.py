"""Which of the loops around a block threads share out, if any."""

from __future__ import annotations

from collections.abc import Sequence

from ....tir.target.target import CpuTarget
from ...schedule import Schedule
from ...trace.references import LoopRef
from .knobs import choose

SERIAL_ELEMENTS = 4096  # below about 5 us of work, a barrier costs more than a second thread brings
UNSURE = 16  # times as many or as few elements, between which it is not plain what a barrier brings


def share_out(
    sch: Schedule,
    block: str,
    outer: Sequence[LoopRef],
    target: CpuTarget,
    elements: int,
    *,
    default: int | None = None,
    piece: str = "",
) -> None:
    """Run nested loops around a block in parallel, where its `elements` are worth a barrier: the
    first of them, joined with the next one where it is too short to share out.
    default: how many loops are shared out by default, where that is known. Where a call decides how
    many iterations the first one has, which may be one, and no others, it is joined in any case.
    piece: which loops these are, of several.
    """
    loops = [loop for loop in outer if sch.extent(loop) > 1] or list(outer[:1])
    if not loops:
        return
    nested = len(loops) > 1 and _are_nested(sch, loops)
    # a joined loop whose last iterations are cut takes long to prove
    joined = nested and not any(map(sch.tail, loops[:2]))
    if default is None:
        default = 0
        if elements >= SERIAL_ELEMENTS:
            default = 2 if nested and is_uneven(sch.extent(loops[0]), target) else 1
    if default and joined and sch.dim(loops[0]) is not None and not sch.is_open(loops[1]):
        default = 2
    choices = [default]
    if target.threads > 1 and sch.extent(loops[0]) > 1:
        many, few = elements >= UNSURE * SERIAL_ELEMENTS, UNSURE * elements < SERIAL_ELEMENTS
        choices = [*([] if many else [0]), *([] if few else range(1, 2 + joined))]
    shared = choose(sch, f"loops for threads{piece}", block, choices, default)
    if shared == 2:
        sch.parallel(sch.fuse(*loops[:2]))
    elif shared == 1:
        sch.parallel(loops[0])


def is_uneven(extent: int, target: CpuTarget) -> bool:
    """Whether a loop is too short to be shared out evenly."""
    return extent % target.threads != 0 and extent < 4 * target.threads


def _are_nested(sch: Schedule, loops: Sequence[LoopRef]) -> bool:
    """Whether the second loop stands directly inside of the first."""
    return sch.copy().attempt(lambda s: s.fuse(*loops[:2]))
