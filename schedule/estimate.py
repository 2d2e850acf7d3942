"""The analytical time of a function or a schedule: seconds from the Target alone, nothing measured,
so plans are reproducible.

A function runs as passes over memory, one after the other with a barrier between; the rule that
schedules it says which (Rule.passes). A pass takes as long as the slower of
- its arithmetic, shared out over the threads when it is long enough;
- its traffic: each tensor once, at the bandwidth of the smallest cache level that holds the pass;
  constants come from memory.
On a GPU each pass is a kernel (cost/grid.py). The figures are for choosing between alternatives,
not for prediction.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..tir.func import PrimFunc
from ..tir.target.target import Target
from .cost.scheduled import scheduled_passes
from .rules.default import rule_for
from .schedule import Schedule

LAUNCH_SECONDS = 3e-7  # to enter a kernel of a CPU and leave it


def estimate(
    what: PrimFunc | Schedule,
    target: Target,
    *,
    strict: bool = False,
    allow: Sequence[str] = (),
) -> float:
    """Seconds that a function takes with the schedule of its rule, or that a schedule takes, on
    `target`. strict: the rule is that of a strict build. allow: the tensor intrinsics with a
    liberty that it may use.

    Raises: ScheduleError where the function calls a C function.
    """
    if isinstance(what, Schedule):
        passes = scheduled_passes(what.func, target)
    else:
        passes = rule_for(what, target, strict=strict, allow=allow).passes(what, target)
    seconds = sum(item.seconds(target) for item in passes)
    return seconds if target.has_grid else LAUNCH_SECONDS + seconds
