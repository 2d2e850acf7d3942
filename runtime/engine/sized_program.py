"""A model's code whose sizes a run decides: each run is counted under the sizes that it has, and
served by the variant for them where there is one, else by the smallest that they may be padded to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

import numpy as np

from ...tir.dim import Dim
from ...tir.program.program import ProgramCheck
from ..arrays import Array, empty_aligned
from .context import ProfiledFrame, ProgramCode, RunFrame, SizedFrame
from .padded_program import PaddedFrame, PaddedProgram, PaddedRows
from .parts import Padding
from .size_counts import TOGETHER, SizeCounts, Sizes

if TYPE_CHECKING:
    from ..machine.timing import CacheState, OwnClock, Timing
    from ..model.profile import Profile

Served = ProgramCode | PaddedProgram  # what runs of some sizes are served by


@runtime_checkable
class SharingFrame(RunFrame, Protocol):
    """One that may have its memory from another one."""

    def share(self, other: RunFrame) -> None:
        """Have the scratch memory of another frame, which never runs at the same time."""


class SizedProgram:
    """The code of an open program, and that of its variants.

    variants: by the sizes that they serve; another mapping may take the place of this one while
    frames run.
    """

    def __init__(self, program: ProgramCode, counts: SizeCounts) -> None:
        self.program = program
        self.counts = counts
        self.variants: Mapping[Sizes, ProgramCode | PaddedProgram] = {}
        self.interface = program.interface
        self.padding_bytes = 0  # of the largest that pads

    def serve(self, sizes: Sizes, code: ProgramCode) -> None:
        """Let the code of a variant serve these sizes."""
        self.variants = {**self.variants, sizes: code}

    def serve_padded(
        self, sizes: Sizes, padding: Padding, code: ProgramCode, rows: PaddedRows
    ) -> None:
        """Let it serve fewer rows, too, as far as no smaller variant does."""
        padded = PaddedProgram(code, rows, self.counts)
        axis = [dim.name for dim in self.interface.dims].index(padding.dim)
        made = dict(self.variants)
        for size in range(padding.least, rows.count):
            key = (*sizes[:axis], size, *sizes[axis + 1 :])
            there = made.get(key)
            if there is None or (
                isinstance(there, PaddedProgram) and there.rows.count > rows.count
            ):
                made[key] = padded
        self.padding_bytes = max(self.padding_bytes, rows.bytes)
        self.variants = made

    @property
    def checks(self) -> tuple[ProgramCheck, ...]:
        """The checks of indices that a run makes, in order."""
        return self.program.checks

    def frame(self, threads: int) -> RunFrame:
        """Memory for runs on so many threads."""
        from ..machine.timing import OwnClock  # a run needs no clock

        frame = self.program.frame(threads)
        if isinstance(frame, ProfiledFrame) and isinstance(frame, OwnClock):
            return _TimedVariantFrame(self, frame, threads)
        if isinstance(frame, ProfiledFrame):
            return _ProfiledVariantFrame(self, frame, threads)
        return VariantFrame(self, frame, threads)


class VariantFrame:
    """The memory of one run at a time."""

    def __init__(self, program: SizedProgram, frame: RunFrame, threads: int) -> None:
        self._program = program
        self._counts = program.counts
        self._seen = program.counts.seen
        self._told = program.interface.told
        self._threads = threads
        self._sizes: Sizes = ()
        self._open = self._now = frame
        self._serving: Served | None = None  # whose frame runs now; None: the open program's
        self._frames: dict[Served, RunFrame] = {}
        self._room: Array | None = None  # for the arrays of one that pads

    def point(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Let the next runs use these arrays, which the caller keeps alive."""
        # each call of a function would take as long as the rest of the count
        sizes = self._sizes = tuple([inputs[number].shape[axis] for number, axis in self._told])
        seen = self._seen
        seen.append(sizes)
        variant = self._program.variants.get(sizes)
        if variant is not None and not isinstance(variant, PaddedProgram):
            self._counts.hit.append(sizes)
        if variant is not self._serving:
            self._serve(variant)
        if len(seen) >= TOGETHER:
            self._counts.add_up()
        self._now.point(inputs, outputs)

    def run(self, threads: int) -> int:
        """Run; how many threads took part."""
        return self._now.run(threads)

    @property
    def sizes(self) -> Mapping[Dim, int]:
        """The sizes of the last run: what its inputs tell, and what it has computed. A variant has
        dims of its own, of the same names, for the latter.
        """
        assert isinstance(self._now, SizedFrame)
        computed = {dim.name: size for dim, size in self._now.sizes.items()}
        interface = self._program.interface
        told = dict(zip(interface.dims, self._sizes, strict=True))
        return {**told, **{dim: computed[dim.name] for dim in interface.computed}}

    def _serve(self, variant: Served | None) -> None:
        """Let a variant run, or the open program, in the memory of the one before."""
        frame = self._open if variant is None else self._frames.get(variant)
        if frame is None:
            assert variant is not None
            frame = self._frames[variant] = self._frame_of(variant)
        own = _memory_of(frame)
        if isinstance(own, SharingFrame):
            own.share(_memory_of(self._now))
        self._now, self._serving = frame, variant

    def _frame_of(self, variant: Served) -> RunFrame:
        if not isinstance(variant, PaddedProgram):
            return variant.frame(self._threads)
        if self._room is None:
            self._room = empty_aligned((self._program.padding_bytes,), np.dtype(np.uint8))
        return variant.frame_in(self._room, self._threads)


def _memory_of(frame: RunFrame) -> RunFrame:
    """The frame that has the scratch memory."""
    return frame.inner if isinstance(frame, PaddedFrame) else frame


class _ProfiledVariantFrame(VariantFrame):
    """One whose launches can be timed one by one."""

    def profile(self, threads: int, rounds: int) -> Profile:
        """Time each launch alone on the arrays pointed to, and the whole run."""
        assert isinstance(self._now, ProfiledFrame)
        return self._now.profile(threads, rounds)


class _TimedVariantFrame(_ProfiledVariantFrame):
    """One that is timed by a clock of its own, too."""

    def measure(self, seconds: float, cache: CacheState) -> Timing:
        """Time runs on the arrays pointed to by that clock."""
        return cast("OwnClock", self._now).measure(seconds, cache)
