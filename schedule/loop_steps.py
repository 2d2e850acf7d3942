"""The steps of a schedule that change loops: what they are, and how their iterations are run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ..tir.stmt import Tail
from . import primitives
from .errors import ScheduleError
from .trace.recorder import Recorder
from .trace.references import LoopRef

TailName = Literal["guard", "partition", "mask"]
TAILS = ("guard", "partition", "mask")


class LoopSteps(Recorder):
    """A recorder with the primitives of loops."""

    def split(
        self, loop: LoopRef, factors: Sequence[int | None], tail: TailName = "guard"
    ) -> tuple[LoopRef, ...]:
        """Split a loop into nested loops of the extents `factors`, of which one may be None
        (inferred).

        tail: how an incomplete last iteration is cut: "guard" an if around the body, "partition" a
        variant with the remainder as its extent, "mask" a variant with the main extents and masked
        lanes.
        """
        if tail not in TAILS:
            raise ScheduleError(
                f"split: tail is {tail!r}; expected one of {', '.join(map(repr, TAILS))}.",
                code="split-tail",
            )
        return self._loops(
            "split",
            lambda f: primitives.split(f, self._loop(loop, "split"), tuple(factors), Tail(tail)),
            loop=loop,
            factors=tuple(factors),
            tail=tail,
        )

    def fuse(self, *loops: LoopRef) -> LoopRef:
        """Join directly nested loops into one."""
        return self._loops(
            "fuse",
            lambda f: primitives.fuse(f, [self._loop(x, "fuse") for x in loops]),
            loops=loops,
        )[0]

    def reorder(self, *loops: LoopRef) -> None:
        """Put loops of one chain into the given order, outermost first."""
        self._do(
            "reorder",
            lambda f: primitives.reorder(f, [self._loop(x, "reorder") for x in loops]),
            loops=loops,
        )

    def parallel(self, loop: LoopRef) -> None:
        """Run the iterations of a loop on the threads of the team."""
        self._do(
            "parallel", lambda f: primitives.parallel(f, self._loop(loop, "parallel")), loop=loop
        )

    def bind(self, loop: LoopRef, axis: str) -> None:
        """Run each iteration of a loop as the block or the thread of a grid: "blockIdx.x",
        "threadIdx.y", ...
        """
        self._do(
            "bind",
            lambda f: primitives.bind(f, self._loop(loop, "bind"), axis, self.target),
            loop=loop,
            axis=axis,
        )

    def vectorize(self, loop: LoopRef) -> None:
        """Run the iterations of an innermost loop as the lanes of vectors."""
        self._do(
            "vectorize", lambda f: primitives.vectorize(f, self._loop(loop, "vectorize")), loop=loop
        )

    def unroll(self, loop: LoopRef) -> None:
        """Replace a loop by copies of its body."""
        self._do("unroll", lambda f: primitives.unroll(f, self._loop(loop, "unroll")), loop=loop)

    def annotate(self, loop: LoopRef, key: str, value: int) -> None:
        """Put a hint on a loop. "unroll_hint": copies of its body that the C compiler should make;
        "stream", with the value 1: what is stored below goes past the caches; other keys are
        refused.
        """
        self._do(
            "annotate",
            lambda f: primitives.annotate(f, self._loop(loop, "annotate"), key, value),
            loop=loop,
            key=key,
            value=value,
        )

    def blockize(self, loop: LoopRef) -> None:
        """Make one unit of a loop with all that is below it: no later step changes its inside."""
        self._do(
            "blockize", lambda f: primitives.blockize(f, self._loop(loop, "blockize")), loop=loop
        )

    def tensorize(self, loop: LoopRef, intrinsic: str) -> None:
        """Let an instruction compute a loop of lanes and the reduction loop directly inside of it.

        "vpdpbusd": 4 products of an unsigned and a signed byte, added to an int32 (AVX512-VNNI).
        "vdpbf16ps": 2 products of bfloat16, the second one first, added to a float32 (AVX512-BF16);
        it takes subnormal numbers as zero. A strict build refuses it.
        "mma_m16n8k16_f16" and others: products of 16 x 8 elements by the 32 threads of a warp, as
        tir/instructions/warp_products.py shows their nests; `loop` is that of the halves.
        """
        self._do(
            "tensorize",
            lambda f: primitives.tensorize(
                f, self._loop(loop, "tensorize"), intrinsic, self.target
            ),
            loop=loop,
            intrinsic=intrinsic,
        )

    def loop_partition(self, loop: LoopRef, points: Sequence[int]) -> tuple[LoopRef, ...]:
        """Cut a loop at the iterations `points` into loops that follow each other. Returns them.

        The blocks of the first keep their names; those of the others are called C_part1, ...: the
        parts of a block may be scheduled apart.
        """
        return self._loops(
            "loop_partition",
            lambda f: primitives.loop_partition(
                f, self._loop(loop, "loop_partition"), tuple(points)
            ),
            loop=loop,
            points=tuple(points),
        )

    def merge(self, first: LoopRef, second: LoopRef) -> LoopRef:
        """Join two loops that follow each other, of equal extent, into one. Returns it."""
        return self._loops(
            "merge",
            lambda f: primitives.merge(f, self._loop(first, "merge"), self._loop(second, "merge")),
            loops=(first, second),
        )[0]

    def add_unit_loop(self, block: str) -> LoopRef:
        """Put a loop of one iteration right around a block. Returns it."""
        return self._loops(
            "add_unit_loop",
            lambda f: primitives.add_unit_loop(f, self._block(block, "add_unit_loop")),
            block=block,
        )[0]
