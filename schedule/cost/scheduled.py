"""The passes of a function that is scheduled, from its nests."""

from __future__ import annotations

from collections.abc import Sequence

from ...tir.func import PrimFunc
from ...tir.target.target import CpuTarget, Target
from .grid import nest_kernels
from .nest import nest_passes
from .passes import Pass


def scheduled_passes(func: PrimFunc, target: Target) -> Sequence[Pass]:
    """The passes of a function that is scheduled for a target."""
    if target.has_grid:
        return nest_kernels(func)
    return nest_passes(func, CpuTarget.of(target))
