"""The first half of lowering: from a schedule to the nest that the proof reads, from top to
bottom.
"""

from __future__ import annotations

from ...tir.func import PrimFunc
from ...tir.target import Target
from .contract import Contract
from .copy_ahead import CopyAhead
from .drop_unread import DropUnread
from .fit_dims import FitDims
from .fold_storage import FoldStorage
from .guard_dims import GuardDims
from .hoist_guards import HoistGuards
from .partition import Partition
from .place_barriers import PlaceBarriers
from .place_init import PlaceInit
from .place_team_barriers import PlaceTeamBarriers


def contraction(func: PrimFunc, target: Target, *, strict: bool = False) -> PrimFunc:
    """The function with its fused multiply-adds decided; strict builds and targets without one keep
    it as it is.
    """
    return Contract()(func) if target.has_fma and not strict else func


def lower_to_nest(func: PrimFunc) -> PrimFunc:
    """From stage SCHEDULED, contracted, to stage NEST."""
    for step in (
        PlaceInit(),  # first: a cut loop copies the initialisation along with its reduction
        GuardDims(),  # before loops are cut: a point that does not exist is a condition like others
        Partition(),  # makes every variant; what follows sees boxes without undecided tails
        DropUnread(),  # sees the loops as they are cut: a piece may hold nothing but its copies
        FitDims(),  # sees the loops as they are cut; outermost, so that nothing runs in vain
        HoistGuards(),  # sees the loops as they are cut; what follows sees a tile's own storage
        FoldStorage(),  # the box of each variant is its own
        CopyAhead(),  # late: storage is what one slice needs
        PlaceBarriers(),  # late: shared storage adds dependences
        PlaceTeamBarriers(),  # likewise, for the threads of a grid
    ):
        func = step(func)
    return func
