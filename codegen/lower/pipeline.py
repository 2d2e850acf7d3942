"""The second half of lowering: from a nest of blocks to what the C back end writes, read from top
to bottom.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ...tir.errors import TilewrightError
from ...tir.func import PrimFunc
from ...tir.target import Target
from ...tir.verify.verify import Stage, verify
from .common_loads import CommonLoads
from .copy_at_once import CopyAtOnce
from .erase_blocks import EraseBlocks
from .fold_masks import FoldMasks
from .join_threads import JoinThreads
from .legalise import Legalise
from .math import ExpandMath
from .merge_threads import MergeThreads
from .own_storage import OwnStorage
from .registers import Registers
from .saturate_casts import SaturateCasts
from .storage_casts import StorageCasts
from .tensorize import Tensorize
from .unroll import Unroll
from .vectorize import Vectorize
from .wide_accesses import WideAccesses

Pass = Callable[[PrimFunc], PrimFunc]
Watch = Callable[[str, PrimFunc, float], None]


def lowering_passes(target: Target) -> tuple[Pass, ...]:
    """The passes from stage NEST to stage LOWERED for a target."""
    return (
        # first: reads what blocks combine, and the barriers of the nest
        *((JoinThreads(), CopyAtOnce()) if target.gpu is not None else ()),
        EraseBlocks(),  # then: all others see loops, conditions and stores alone
        Tensorize(target),  # then: reads the loops and the casts as they were defined
        SaturateCasts(),  # before the expansions, whose own casts never leave the range
        StorageCasts(target),  # what is left of them then is integer arithmetic
        # on scalars, before copies exist, so that every variant of a loop computes the same bits
        ExpandMath(target),
        Legalise(
            target
        ),  # what the target has no instruction for; before the vectoriser asks what it has
        # before unrolling: one body is rewritten, not its copies
        WideAccesses() if target.gpu is not None else Vectorize(target),
        OwnStorage(),  # before unrolling, for the same reason
        Unroll(target),  # makes the indices of register tiles constants
        MergeThreads(),  # of the copies, before what is common to them is found
        FoldMasks(),  # in the copies some masks are on, or off, in every lane
        Registers(target),  # wants constant indices, and no store left that is masked for nothing
        CommonLoads(),  # last: sees the straight-line code that unrolling made
    )


def lower(
    func: PrimFunc, target: Target, *, checked: bool = True, watch: Watch | None = None
) -> PrimFunc:
    """Lower a function from stage NEST to stage LOWERED.

    checked: verify the function against its stage before and after. watch: called after each pass
    with its name, the function and the seconds that the pass took.
    Raises: TargetError and others of the passes, each with the name of its pass in front.
    """
    return run_passes(func, lowering_passes(target), checked=checked, watch=watch)


def run_passes(
    func: PrimFunc, passes: Sequence[Pass], *, checked: bool = True, watch: Watch | None = None
) -> PrimFunc:
    """Run passes in order, as `lower` says."""
    if checked:
        verify(func, Stage.NEST)
    for step in passes:
        name = type(step).__name__
        began = time.perf_counter()
        try:
            func = step(func)
        except TilewrightError as error:
            error.message = f"{name}: {error.message}"
            raise
        if watch is not None:
            watch(name, func, time.perf_counter() - began)
    if checked:
        verify(func, Stage.LOWERED)
    return func
