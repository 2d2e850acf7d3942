"""Schedule: a thin recorder. It resolves references, lets a primitive check and rewrite, and
appends a step to the trace.

    def fast(sch):
        i, j, k = sch.loops("C")
        i, ii = sch.split(i, (None, 8), tail="partition")
        sch.parallel(i)

    sch = tw.Schedule(matmul).apply(fast)

A refused step leaves the schedule as it was; `apply` takes all the steps of a function or none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ..tir.dim import Dim
from ..tir.expr import Expr
from ..tir.stmt import Tail
from . import library
from .index_map import IndexMap
from .nest import dim_of_loop, loop_of, loops_around, open_loops
from .primitives.blocks.axes import JOIN_AXES, SPLIT_AXIS
from .primitives.blocks.compute_at import COMPUTE_AT
from .primitives.blocks.inline import COMPUTE_INLINE, REVERSE_COMPUTE_INLINE
from .primitives.blocks.pad_axes import PAD_AXES
from .primitives.blocks.padding import DECOMPOSE_PADDING
from .primitives.blocks.reduction import DECOMPOSE_REDUCTION
from .primitives.blocks.reverse_compute_at import REVERSE_COMPUTE_AT, At
from .primitives.blocks.rfactor import RFACTOR
from .primitives.loops.annotate import ANNOTATE
from .primitives.loops.bind import BIND
from .primitives.loops.fission import FISSION
from .primitives.loops.kinds import PARALLEL, UNROLL, VECTORIZE
from .primitives.loops.loops import ADD_UNIT_LOOP, FUSE, REORDER, SPLIT, TailName
from .primitives.loops.merge import MERGE
from .primitives.loops.partition import LOOP_PARTITION
from .primitives.loops.tensorize import BLOCKIZE, TENSORIZE
from .primitives.sample import SAMPLE_CATEGORICAL
from .primitives.storage.align import STORAGE_ALIGN
from .primitives.storage.cache import CACHE_READ, CACHE_WRITE, REINDEX
from .primitives.storage.layout import PAD, TRANSFORM_LAYOUT
from .primitives.storage.narrow import NARROW
from .primitives.storage.prefetch import PREFETCH, ReadWrite
from .primitives.storage.rolling import ROLLING_BUFFER
from .primitives.storage.scope import SET_SCOPE, Scope
from .primitives.storage.stage import STAGE
from .primitives.storage.swizzle import SWIZZLE
from .recorder import Recorder
from .trace.habits import check_cache_name, check_factors
from .trace.references import LoopRef

Choice = TypeVar("Choice")


class Schedule(Recorder):
    """The loop nest of a function on its way to being fast.

    func: the PrimFunc to schedule, which stays as it is.
    target: when given, a step that exceeds its limits is refused at once.
    decisions: who answers `sample_*`; by default the rule's own choice.
    origin: who made it: "hand", "rule", or a log: "tuned" here, "similar" elsewhere.
    log_state: of a log's schedule: "confirmed", "candidate", "undecided" or "default"; else empty.
    """

    # -- references -------------------------------------------------------------------------------

    def loops(self, block: str) -> tuple[LoopRef, ...]:
        """The handles of the loops around a block, outermost first."""
        state = self._states[-1]
        state.references.block_key(state.func, block, "loops")
        around = loops_around(state.func, state.func.block(block))
        return tuple(state.references.handle(loop.var) for loop in around)

    def blocks(self) -> tuple[str, ...]:
        """The names of the blocks, in the order of the text."""
        return tuple(block.name for block in self.func.blocks)

    def extent(self, loop: LoopRef) -> int:
        """The number of iterations of a loop."""
        state = self._states[-1]
        return loop_of(state.func, state.references.loop(state.func, loop, "extent")).extent

    def tail(self, loop: LoopRef) -> Tail | None:
        """How the incomplete last iteration of a loop is cut; None where all are whole."""
        state = self._states[-1]
        return loop_of(state.func, state.references.loop(state.func, loop, "tail")).tail

    def is_open(self, loop: LoopRef) -> bool:
        """Whether a call decides how many of its iterations there are."""
        state = self._states[-1]
        var = state.references.loop(state.func, loop, "is_open")
        return var in open_loops(state.func.body)

    def dim(self, loop: LoopRef) -> Dim | None:
        """The dim below which a loop counts, a point in each iteration; None for other loops."""
        state = self._states[-1]
        return dim_of_loop(state.func.body, state.references.loop(state.func, loop, "dim"))

    # -- loops ------------------------------------------------------------------------------------

    def split(
        self,
        loop: LoopRef,
        factors: Sequence[int | None] = (),
        tail: TailName = "guard",
        *,
        factor: None = None,
        nparts: None = None,
    ) -> tuple[LoopRef, ...]:
        """Split a loop into nested loops of the extents `factors`, of which one may be None
        (inferred).

        tail: how an incomplete last iteration is cut: "guard" an if around the body, "partition" a
        variant with the remainder as its extent, "mask" a variant with the main extents and masked
        lanes. factor, nparts: as other systems call one of two factors; answered with ours.
        """
        check_factors(loop, factors, factor, nparts)
        return self._take(SPLIT, loop=loop, factors=tuple(factors), tail=tail)

    def fuse(self, *loops: LoopRef) -> LoopRef:
        """Join directly nested loops into one."""
        return self._take(FUSE, loops=loops)

    def reorder(self, *loops: LoopRef) -> None:
        """Put loops of one chain into the given order, outermost first."""
        self._take(REORDER, loops=loops)

    def parallel(self, loop: LoopRef) -> None:
        """Run the iterations of a loop on the threads of the team."""
        self._take(PARALLEL, loop=loop)

    def bind(self, loop: LoopRef, axis: str) -> None:
        """Run each iteration of a loop as the block or the thread of a grid: "blockIdx.x",
        "threadIdx.y", ...
        """
        self._take(BIND, loop=loop, axis=axis)

    def vectorize(self, loop: LoopRef) -> None:
        """Run the iterations of an innermost loop as the lanes of vectors."""
        self._take(VECTORIZE, loop=loop)

    def unroll(self, loop: LoopRef) -> None:
        """Replace a loop by copies of its body."""
        self._take(UNROLL, loop=loop)

    def annotate(self, loop: LoopRef, key: str, value: int) -> None:
        """Put a hint on a loop. "unroll_hint": copies of its body that the C compiler should make;
        "stream", with the value 1: what is stored below goes past the caches; other keys are
        refused.
        """
        self._take(ANNOTATE, loop=loop, key=key, value=value)

    def blockize(self, loop: LoopRef) -> None:
        """Make one unit of a loop with all that is below it: no later step changes its inside."""
        self._take(BLOCKIZE, loop=loop)

    def tensorize(self, loop: LoopRef, intrinsic: str) -> None:
        """Let an instruction compute a loop of lanes and the reduction loop directly inside of it.

        "vpdpbusd" and others: a few products of narrow types, added to a lane of a vector, as
        tir/instructions/tensor_intrinsics.py defines them; a strict build refuses those that round
        in their own way.
        "mma_m16n8k16_f16" and others: products of 16 x 8 elements by the 32 threads of a warp, as
        tir/instructions/warp_products.py shows their nests; `loop` is that of the halves.
        """
        self._take(TENSORIZE, loop=loop, intrinsic=intrinsic)

    def loop_partition(self, loop: LoopRef, points: Sequence[int]) -> tuple[LoopRef, ...]:
        """Cut a loop at the iterations `points` into loops that follow each other. Returns them.

        The blocks of the first keep their names; those of the others are called C_part1, ...: the
        parts of a block may be scheduled apart.
        """
        return self._take(LOOP_PARTITION, loop=loop, points=tuple(points))

    def merge(self, first: LoopRef, second: LoopRef) -> LoopRef:
        """Join two loops that follow each other, of equal extent, into one. Returns it."""
        return self._take(MERGE, loops=(first, second))

    def fission(self, loop: LoopRef, block: str) -> tuple[LoopRef, ...]:
        """Cut a loop in two behind a block: what stands behind it runs in a loop of its own, after
        all iterations of the first. Loops in between are cut, too. Returns the two loops.
        """
        return self._take(FISSION, loop=loop, block=block)

    def add_unit_loop(self, block: str) -> LoopRef:
        """Put a loop of one iteration right around a block. Returns it."""
        return self._take(ADD_UNIT_LOOP, block=block)

    # -- blocks -----------------------------------------------------------------------------------

    def compute_at(self, block: str, loop: LoopRef) -> tuple[LoopRef, ...]:
        """Compute, in each iteration of `loop`, the part of the block's tensor that it reads.
        Returns the new loops.
        """
        return self._take(COMPUTE_AT, block=block, loop=loop)

    def reverse_compute_at(self, block: str, loop: LoopRef, at: At = "each") -> tuple[LoopRef, ...]:
        """Run a consumer on what an iteration of `loop` completes. Returns the new loops.

        at: "each" after every iteration; "last" in the last one of the reduction loops at and above
        `loop`.
        """
        return self._take(REVERSE_COMPUTE_AT, block=block, loop=loop, at=at)

    def rolling_buffer(self, block: str, loop: LoopRef) -> str:
        """Let each iteration of `loop` compute only what the iterations before it have not, of a
        block that compute_at moved there. Returns the new block, which makes the rest before the
        loop.
        """
        return self._take(ROLLING_BUFFER, block=block, loop=loop)

    def compute_inline(self, block: str) -> None:
        """Put the expression of a tensor in the place of each read of it."""
        self._take(COMPUTE_INLINE, block=block)

    def reverse_compute_inline(self, block: str) -> None:
        """Let the producer store what its only consumer makes of each element."""
        self._take(REVERSE_COMPUTE_INLINE, block=block)

    def cache_read(
        self, block: str, buffer: str, name: str | None = None, *, everyone: bool = False
    ) -> str:
        """Let a block read a copy of a tensor, made by a new block at the root; with it, if
        `everyone` should, the blocks behind it that read the tensor. Returns the new block.
        """
        check_cache_name("cache_read", name)
        return self._take(CACHE_READ, block=block, buffer=buffer, name=name, everyone=everyone)

    def cache_write(self, block: str, name: str | None = None) -> str:
        """Let a block write a new tensor that a new block copies to the old one. Returns the block
        that copies.
        """
        check_cache_name("cache_write", name)
        return self._take(CACHE_WRITE, block=block, name=name)

    def reindex(self, block: str, buffer: str, name: str | None = None) -> str:
        """Let a block read a tensor from a dense copy that its own iteration variables index, made
        by a new block at the root. Returns the new block.
        """
        return self._take(REINDEX, block=block, buffer=buffer, name=name)

    def join_axes(self, block: str, groups: Sequence[Sequence[int]]) -> tuple[LoopRef, ...]:
        """Let a block count several of its iteration variables as one, the last of a group fastest;
        an intermediate tensor that it stores at them takes the same form. Returns the new loops.

        groups: the numbers of the variables, each once, in the order that the block then has.
        """
        return self._take(JOIN_AXES, block=block, groups=tuple(map(tuple, groups)))

    def split_axis(self, block: str, axis: int, factor: int) -> tuple[LoopRef, ...]:
        """Let a block count one of its iteration variables as two digits, the second one to
        `factor`; tensors as for join_axes. Returns the new loops.
        """
        return self._take(SPLIT_AXIS, block=block, axis=axis, factor=factor)

    def set_scope(self, buffer: str, scope: Scope) -> None:
        """Keep an intermediate tensor in registers ("register"), memory of the thread ("thread"),
        memory that the threads of a block share ("shared") or memory that all share ("global").
        """
        self._take(SET_SCOPE, buffer=buffer, scope=scope)

    def storage_align(self, buffer: str, axis: int, factor: int, offset: int = 0) -> None:
        """Let the rows along `axis` of an intermediate tensor, or of a staged copy, lie apart in
        memory by the fewest elements that leave `offset` when divided by `factor`.
        """
        self._take(STORAGE_ALIGN, buffer=buffer, axis=axis, factor=factor, offset=offset)

    def swizzle(self, buffer: str) -> None:
        """Let the same piece of neighbouring rows of a tensor in scope "shared" lie in other banks
        of shared memory, without room between the rows.
        """
        self._take(SWIZZLE, buffer=buffer)

    def stage(self, block: str, buffer: str, loop: LoopRef, scope: Scope) -> tuple[LoopRef, ...]:
        """Keep what a block touches of a tensor below `loop` in registers ("register") or memory of
        the thread ("thread").

        Returns the loops of the copy of a tensor that is only read; none for one that is written.
        """
        return self._take(STAGE, block=block, buffer=buffer, loop=loop, scope=scope)

    def transform_layout(
        self, buffer: str, index_map: str | Callable[..., Sequence[Expr | int]]
    ) -> tuple[LoopRef, ...]:
        """Store an intermediate tensor in another order. Returns the new loops of the block that
        writes it.

        index_map: a function of the old indices that returns the new ones, or its text.
        """
        text = str(IndexMap.read(index_map))
        return self._take(TRANSFORM_LAYOUT, buffer=buffer, index_map=text)

    def pad(self, buffer: str, multiples: Sequence[int]) -> tuple[LoopRef, ...]:
        """Give an intermediate tensor room up to a multiple of `multiples[d]` along each axis, set
        to 0. Returns the new loops of the block that writes it.
        """
        return self._take(PAD, buffer=buffer, multiples=tuple(multiples))

    def narrow(self, buffer: str) -> None:
        """Store a tensor that only moves widened elements in the type that they come from."""
        self._take(NARROW, buffer=buffer)

    def pad_axes(self, block: str, multiples: Sequence[int]) -> tuple[LoopRef, ...]:
        """Let a block run up to a multiple of `multiples[d]` along each of its axes, over tensors
        that `pad` gave the room. Returns its loops.
        """
        return self._take(PAD_AXES, block=block, multiples=tuple(multiples))

    def decompose_padding(self, block: str, loop: LoopRef) -> tuple[str, ...]:
        """Fill the border of a padded tensor right before `loop`; `block` goes on over the
        interior, in its loops. Returns the blocks of the border.
        """
        return self._take(DECOMPOSE_PADDING, block=block, loop=loop)

    def decompose_reduction(self, block: str, loop: LoopRef) -> str:
        """Initialise a reduction right before `loop`, in a block of its own. Returns that block."""
        return self._take(DECOMPOSE_REDUCTION, block=block, loop=loop)

    def rfactor(self, block: str, loop: LoopRef) -> str:
        """Leave one partial result per iteration of a reduction loop; `block` then reduces those.

        Returns the block of the partial results, which takes over the old nest.
        """
        return self._take(RFACTOR, block=block, loop=loop)

    def prefetch(
        self,
        buffer: str,
        at: LoopRef,
        *,
        spread: Sequence[LoopRef],
        distance: int = 1,
        rw: ReadWrite = "read",
        level: int = 1,
    ) -> None:
        """In iteration n of `at`, ask for what iteration n + distance touches, shared out over the
        loops `spread`.
        """
        self._take(
            PREFETCH,
            buffer=buffer,
            at=at,
            spread=tuple(spread),
            distance=distance,
            rw=rw,
            level=level,
        )

    def pack(self, buffer: str, width: int, name: str | None = None) -> str:
        """Read a tensor from zero-padded panels of `width` along its last axis. Returns the new
        block (library.pack).
        """
        made: list[str] = []
        self.apply(lambda sch: made.append(library.pack(sch, buffer, width, name)))
        return made[0]

    # -- decisions --------------------------------------------------------------------------------

    def sample_categorical(
        self, candidates: Sequence[Choice], default: int = 0, *, name: str = ""
    ) -> Choice:
        """One of `candidates` (JSON values); `default` is the index that the rule itself would
        take. name: what is asked, for people and for what learns from many schedules.
        """
        listed = tuple(candidates)
        asked = {"candidates": listed, "default": default, "name": name}
        return listed[self._ask(SAMPLE_CATEGORICAL, asked)]

    def sample_perfect_tile(
        self,
        loop: LoopRef,
        parts: int,
        max_innermost: int,
        default: Sequence[int],
        *,
        name: str = "",
    ) -> tuple[int, ...]:
        """Factors of a loop's extent, `parts` of them, whose product is the extent; the last at
        most `max_innermost`. name: what is asked; by default the factors of this loop.
        """
        extent = self.extent(loop)
        candidates = [f for f in _factorisations(extent, parts) if f[-1] <= max_innermost] or [
            (extent, *(1,) * (parts - 1))
        ]
        wanted = tuple(default)
        if wanted not in candidates:
            candidates.append(wanted)
        asked = name or f"factors of {loop.name}"
        return self.sample_categorical(candidates, candidates.index(wanted), name=asked)


def _factorisations(extent: int, parts: int) -> list[tuple[int, ...]]:
    """All tuples of `parts` positive factors whose product is `extent`."""
    if parts == 1:
        return [(extent,)]
    divisors = [d for d in range(1, extent + 1) if extent % d == 0]
    return [(d, *rest) for d in divisors for rest in _factorisations(extent // d, parts - 1)]
