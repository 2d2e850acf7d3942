"""The passes of lowering, from top to bottom: to the nest that the proof reads, then to what a back
end writes, for a CPU or for a GPU.
"""

from __future__ import annotations

from ...tir.target.target import Target
from ...tir.verify.verify import Stage
from .arithmetic.contract import Contract
from .arithmetic.integer_quotients import IntegerQuotients
from .arithmetic.legalise import Legalise
from .arithmetic.masked_floats import MaskedFloats
from .arithmetic.saturate_casts import SaturateCasts
from .arithmetic.storage_casts import StorageCasts
from .loops.drop_unread import DropUnread
from .loops.erase_blocks import EraseBlocks
from .loops.expand_scatters import ExpandScatters
from .loops.expand_suppressions import ExpandSuppressions
from .loops.fit_dims import FitDims
from .loops.guard_dims import GuardDims
from .loops.hoist_choices import HoistChoices
from .loops.hoist_guards import HoistGuards
from .loops.partition import Partition
from .loops.place_init import PlaceInit
from .loops.unroll import Unroll
from .math import ExpandMath, ExpandQuotients
from .run_passes import Pipeline
from .storage.carried_loads import CarriedLoads
from .storage.common_loads import CommonLoads
from .storage.fold_storage import FoldStorage
from .storage.own_storage import OwnStorage
from .storage.registers import Registers
from .threads.copy_ahead import CopyAhead
from .threads.copy_at_once import CopyAtOnce
from .threads.join_threads import JoinThreads
from .threads.merge_threads import MergeThreads
from .threads.place_barriers import PlaceBarriers
from .threads.place_team_barriers import PlaceTeamBarriers
from .vector.fold_masks import FoldMasks
from .vector.row_pairs import RowPairs
from .vector.shuffled_loads import ShuffledLoads
from .vector.tensorize import Tensorize
from .vector.transpose_tiles import TransposeTiles
from .vector.vectorize import Vectorize
from .vector.wide_accesses import WideAccesses

CONTRACTION = Pipeline(Stage.SCHEDULED, Stage.CONTRACTED, (Contract(),))

NEST = Pipeline(
    Stage.CONTRACTED,
    Stage.NEST,
    (
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
    ),
)


def cpu(target: Target) -> Pipeline:
    """The passes from stage NEST to stage LOWERED for a CPU."""
    passes = (
        EraseBlocks(),  # first: all others see loops, conditions and stores alone
        ExpandScatters(target),  # then: what it makes is lowered like any other loop
        ExpandSuppressions(target),  # likewise
        HoistChoices(),  # before the vectoriser, and behind the proof, for which copies are work
        Tensorize(target),  # then: reads the loops and the casts as they were defined
        ExpandQuotients(target),  # before SaturateCasts, which clamps what is rounded
        SaturateCasts(),  # before the expansions, whose own casts never leave the range
        StorageCasts(target),  # what is left of them then is integer arithmetic
        # on scalars, before copies exist, so that every variant of a loop computes the same bits
        ExpandMath(target),
        IntegerQuotients(target),  # likewise; before floor is made of what there is
        # what the target has no instruction for; before the vectoriser asks what it has
        Legalise(target),
        TransposeTiles(target),  # before the vectoriser, which gathers what they read
        Vectorize(target),  # before unrolling: one body is rewritten, not its copies
        OwnStorage(),  # before unrolling, for the same reason
        Unroll(target),  # makes the indices of register tiles constants
        MergeThreads(),  # of the copies, before what is common to them is found
        FoldMasks(),  # in the copies some masks are on, or off, in every lane
        Registers(target),  # wants constant indices, and no store left that is masked for nothing
        ShuffledLoads(target),  # once constants say where lanes read; before loads are shared
        RowPairs(),  # of registers; before loads are shared, of which it makes others
        CarriedLoads(),  # of what is not in registers; before loads are named
        CommonLoads(),  # last: sees the straight-line code that unrolling made
    )
    return Pipeline(Stage.NEST, Stage.LOWERED, passes)


def gpu(target: Target) -> Pipeline:
    """The passes from stage NEST to stage LOWERED for a GPU. Those that a CPU has too stand where
    they stand there, for the same reasons.
    """
    passes = (
        JoinThreads(),  # first: reads what blocks combine
        CopyAtOnce(),  # reads the barriers of the nest
        EraseBlocks(),
        HoistChoices(),
        Tensorize(target),
        ExpandQuotients(target),
        SaturateCasts(),
        MaskedFloats(),  # of casts as they are defined; a CPU converts as fast as it adds
        StorageCasts(target),
        ExpandMath(target),
        Legalise(target),
        WideAccesses(),  # in place of the vectoriser: only memory has vectors
        OwnStorage(),
        Unroll(target),
        MergeThreads(),
        FoldMasks(),
        Registers(target),
        CommonLoads(),
    )
    return Pipeline(Stage.NEST, Stage.LOWERED, passes)


def lowering(target: Target) -> Pipeline:
    """The passes from stage NEST to stage LOWERED for a target."""
    return gpu(target) if target.has_grid else cpu(target)
