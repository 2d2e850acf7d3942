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
from typing import Literal, TypeVar

from ..tir.expr import Expr
from ..tir.stmt import Tail
from . import library, primitives
from .errors import ScheduleError
from .index_map import IndexMap
from .loop_steps import LoopSteps
from .nest import loop_of, loops_around
from .trace.decisions import Question
from .trace.recorder import State
from .trace.references import LoopRef
from .trace.trace import Step, Trace

Choice = TypeVar("Choice")
Scope = Literal["register", "thread", "team", "global"]


class Schedule(LoopSteps):
    """The loop nest of a function on its way to being fast.

    func: the PrimFunc to schedule, which stays as it is.
    target: when given, a step that exceeds its limits is refused at once.
    decisions: who answers `sample_*`; by default the rule's own choice.
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

    # -- blocks -----------------------------------------------------------------------------------

    def compute_at(self, block: str, loop: LoopRef) -> tuple[LoopRef, ...]:
        """Compute, in each iteration of `loop`, the part of the block's tensor that it reads.
        Returns the new loops.
        """
        return self._loops(
            "compute_at",
            lambda f: primitives.compute_at(
                f, self._block(block, "compute_at"), self._loop(loop, "compute_at")
            ),
            block=block,
            loop=loop,
        )

    def reverse_compute_at(
        self, block: str, loop: LoopRef, at: Literal["each", "last"] = "each"
    ) -> tuple[LoopRef, ...]:
        """Run a consumer on what an iteration of `loop` completes. Returns the new loops.

        at: "each" after every iteration; "last" in the last one of the reduction loops at and above
        `loop`.
        """
        if at not in ("each", "last"):
            raise ScheduleError(
                f"reverse_compute_at: at is {at!r}; expected 'each' or 'last'.",
                code="reverse-compute-at",
            )
        return self._loops(
            "reverse_compute_at",
            lambda f: primitives.reverse_compute_at(
                f,
                self._block(block, "reverse_compute_at"),
                self._loop(loop, "reverse_compute_at"),
                at,
            ),
            block=block,
            loop=loop,
            at=at,
        )

    def rolling_buffer(self, block: str, loop: LoopRef) -> str:
        """Let each iteration of `loop` compute only what the iterations before it have not, of a
        block that compute_at moved there. Returns the new block, which makes the rest before the
        loop.
        """
        return self._block_made(
            "rolling_buffer",
            lambda f: primitives.rolling_buffer(
                f, self._block(block, "rolling_buffer"), self._loop(loop, "rolling_buffer")
            ),
            block=block,
            loop=loop,
        )

    def compute_inline(self, block: str) -> None:
        """Put the expression of a tensor in the place of each read of it."""
        self._do(
            "compute_inline",
            lambda f: primitives.compute_inline(f, self._block(block, "compute_inline")),
            block=block,
        )

    def reverse_compute_inline(self, block: str) -> None:
        """Let the producer store what its only consumer makes of each element."""
        self._do(
            "reverse_compute_inline",
            lambda f: primitives.reverse_compute_inline(
                f, self._block(block, "reverse_compute_inline")
            ),
            block=block,
        )

    def cache_read(
        self, block: str, buffer: str, name: str | None = None, *, everyone: bool = False
    ) -> str:
        """Let a block read a copy of a tensor, made by a new block at the root; with it, if
        `everyone` should, the blocks behind it that read the tensor. Returns the new block.
        """
        return self._block_made(
            "cache_read",
            lambda f: primitives.cache_read(
                f,
                self._block(block, "cache_read"),
                self._tensor(buffer, "cache_read"),
                name,
                everyone=everyone,
            ),
            block=block,
            buffer=buffer,
            name=name,
            everyone=everyone or None,
        )

    def cache_write(self, block: str, name: str | None = None) -> str:
        """Let a block write a new tensor that a new block copies to the old one. Returns the block
        that copies.
        """
        return self._block_made(
            "cache_write",
            lambda f: primitives.cache_write(f, self._block(block, "cache_write"), name),
            block=block,
            name=name,
        )

    def reindex(self, block: str, buffer: str, name: str | None = None) -> str:
        """Let a block read a tensor from a dense copy that its own iteration variables index, made
        by a new block at the root. Returns the new block.
        """
        return self._block_made(
            "reindex",
            lambda f: primitives.reindex(
                f, self._block(block, "reindex"), self._tensor(buffer, "reindex"), name
            ),
            block=block,
            buffer=buffer,
            name=name,
        )

    def join_axes(self, block: str, groups: Sequence[Sequence[int]]) -> tuple[LoopRef, ...]:
        """Let a block count several of its iteration variables as one, the last of a group fastest;
        an intermediate tensor that it stores at them takes the same form. Returns the new loops.

        groups: the numbers of the variables, each once, in the order that the block then has.
        """
        listed = tuple(tuple(group) for group in groups)
        return self._loops(
            "join_axes",
            lambda f: primitives.join_axes(f, self._block(block, "join_axes"), listed),
            block=block,
            groups=listed,
        )

    def split_axis(self, block: str, axis: int, factor: int) -> tuple[LoopRef, ...]:
        """Let a block count one of its iteration variables as two digits, the second one to
        `factor`; tensors as for join_axes. Returns the new loops.
        """
        return self._loops(
            "split_axis",
            lambda f: primitives.split_axis(f, self._block(block, "split_axis"), axis, factor),
            block=block,
            axis=axis,
            factor=factor,
        )

    def set_scope(self, buffer: str, scope: Scope) -> None:
        """Keep an intermediate tensor in registers ("register"), memory of the thread ("thread"),
        memory that the threads of a block share ("team") or memory that all share ("global").
        """
        _check_scope("set_scope", scope, (*SCOPES, "team", "global"))
        self._do(
            "set_scope",
            lambda f: primitives.set_scope(f, self._tensor(buffer, "set_scope"), scope),
            buffer=buffer,
            scope=scope,
        )

    def storage_align(self, buffer: str, axis: int, factor: int, offset: int = 0) -> None:
        """Let the rows along `axis` of an intermediate tensor, or of a staged copy, lie apart in
        memory by the fewest elements that leave `offset` when divided by `factor`.
        """
        self._do(
            "storage_align",
            lambda f: primitives.storage_align(
                f, self._storage(buffer, "storage_align"), axis, factor, offset
            ),
            buffer=buffer,
            axis=axis,
            factor=factor,
            offset=offset,
        )

    def swizzle(self, buffer: str) -> None:
        """Let the same piece of neighbouring rows of a tensor in scope "team" lie in other banks of
        shared memory, without room between the rows.
        """
        self._do(
            "swizzle",
            lambda f: primitives.swizzle(f, self._tensor(buffer, "swizzle")),
            buffer=buffer,
        )

    def stage(self, block: str, buffer: str, loop: LoopRef, scope: Scope) -> tuple[LoopRef, ...]:
        """Keep what a block touches of a tensor below `loop` in registers ("register") or memory of
        the thread ("thread").

        Returns the loops of the copy of a tensor that is only read; none for one that is written.
        """
        _check_scope("stage", scope, SCOPES)
        return self._loops(
            "stage",
            lambda f: primitives.stage(
                f,
                self._block(block, "stage"),
                self._tensor(buffer, "stage"),
                self._loop(loop, "stage"),
                scope,
            ),
            block=block,
            buffer=buffer,
            loop=loop,
            scope=scope,
        )

    def transform_layout(
        self, buffer: str, index_map: str | Callable[..., Sequence[Expr | int]]
    ) -> tuple[LoopRef, ...]:
        """Store an intermediate tensor in another order. Returns the new loops of the block that
        writes it.

        index_map: a function of the old indices that returns the new ones, or its text.
        """
        parsed = IndexMap.parse(index_map) if isinstance(index_map, str) else IndexMap.of(index_map)
        return self._loops(
            "transform_layout",
            lambda f: primitives.transform_layout(
                f, self._tensor(buffer, "transform_layout"), parsed
            ),
            buffer=buffer,
            index_map=str(parsed),
        )

    def pad(self, buffer: str, multiples: Sequence[int]) -> tuple[LoopRef, ...]:
        """Give an intermediate tensor room up to a multiple of `multiples[d]` along each axis, set
        to 0. Returns the new loops of the block that writes it.
        """
        return self._loops(
            "pad",
            lambda f: primitives.pad(f, self._tensor(buffer, "pad"), tuple(multiples)),
            buffer=buffer,
            multiples=tuple(multiples),
        )

    def narrow(self, buffer: str) -> None:
        """Store a tensor that only moves widened elements in the type that they come from."""
        self._do(
            "narrow",
            lambda f: primitives.narrow(f, self._tensor(buffer, "narrow")),
            buffer=buffer,
        )

    def pad_axes(self, block: str, multiples: Sequence[int]) -> tuple[LoopRef, ...]:
        """Let a block run up to a multiple of `multiples[d]` along each of its axes, over tensors
        that `pad` gave the room. Returns its loops.
        """
        return self._loops(
            "pad_axes",
            lambda f: primitives.pad_axes(f, self._block(block, "pad_axes"), tuple(multiples)),
            block=block,
            multiples=tuple(multiples),
        )

    def decompose_padding(self, block: str, loop: LoopRef) -> tuple[str, ...]:
        """Fill the border of a padded tensor right before `loop`; `block` goes on over the
        interior, in its loops. Returns the blocks of the border.
        """
        made = self._do(
            "decompose_padding",
            lambda f: primitives.decompose_padding(
                f, self._block(block, "decompose_padding"), self._loop(loop, "decompose_padding")
            ),
            block=block,
            loop=loop,
        )
        return made.blocks

    def decompose_reduction(self, block: str, loop: LoopRef) -> str:
        """Initialise a reduction right before `loop`, in a block of its own. Returns that block."""
        return self._block_made(
            "decompose_reduction",
            lambda f: primitives.decompose_reduction(
                f,
                self._block(block, "decompose_reduction"),
                self._loop(loop, "decompose_reduction"),
            ),
            block=block,
            loop=loop,
        )

    def rfactor(self, block: str, loop: LoopRef) -> str:
        """Leave one partial result per iteration of a reduction loop; `block` then reduces those.

        Returns the block of the partial results, which takes over the old nest.
        """
        return self._block_made(
            "rfactor",
            lambda f: primitives.rfactor(
                f, self._block(block, "rfactor"), self._loop(loop, "rfactor")
            ),
            block=block,
            loop=loop,
        )

    def prefetch(
        self,
        buffer: str,
        at: LoopRef,
        *,
        spread: Sequence[LoopRef],
        distance: int = 1,
        rw: Literal["read", "write"] = "read",
        level: int = 1,
    ) -> None:
        """In iteration n of `at`, ask for what iteration n + distance touches, shared out over the
        loops `spread`.
        """
        if rw not in ("read", "write") or level not in (1, 2, 3) or distance < 0:
            raise ScheduleError(
                f"prefetch: rw={rw!r}, level={level!r}, distance={distance!r}; expected 'read' or "
                "'write', cache level 1, 2 or 3, and a distance of 0 or more.",
                code="prefetch-how",
            )
        self._do(
            "prefetch",
            lambda f: primitives.prefetch(
                f,
                self._tensor(buffer, "prefetch"),
                self._loop(at, "prefetch"),
                distance,
                [self._loop(x, "prefetch") for x in spread],
                write=rw == "write",
                level=level,
            ),
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
        if not 0 <= default < len(candidates):
            raise ScheduleError(
                f"sample_categorical: the default is number {default} of {len(candidates)} "
                "candidates.",
                code="sample-default",
            )
        state, listed = self._states[-1], tuple(candidates)
        question = Question(len(state.trace.steps), name, listed, default)
        chosen = listed[self._decisions.choose(question)]
        asked = {"candidates": listed, "default": default} | ({"name": name} if name else {})
        step = Step("sample_categorical", tuple(asked.items()), chosen)
        self._states.append(State(state.func, state.references, Trace((*state.trace.steps, step))))
        return chosen

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


def _check_scope(primitive: str, scope: str, known: Sequence[str]) -> None:
    """The scope is one that the primitive knows. Raises: ScheduleError."""
    if scope not in known:
        raise ScheduleError(
            f"{primitive}: scope is {scope!r}; expected one of {', '.join(map(repr, known))}.",
            code="stage-scope",
        )


def _factorisations(extent: int, parts: int) -> list[tuple[int, ...]]:
    """All tuples of `parts` positive factors whose product is `extent`."""
    if parts == 1:
        return [(extent,)]
    divisors = [d for d in range(1, extent + 1) if extent % d == 0]
    return [(d, *rest) for d in divisors for rest in _factorisations(extent // d, parts - 1)]


SCOPES = ("register", "thread")
