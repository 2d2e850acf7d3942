"""A model's code whose sizes a run decides: each run is counted under the sizes that it has, and
served by the variant for them where there is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

from ...tir.dim import Dim
from ...tir.program.program import ProgramCheck
from ..arrays import Array
from .context import ProfiledFrame, ProgramCode, RunFrame, SizedFrame
from .size_counts import TOGETHER, SizeCounts, Sizes

if TYPE_CHECKING:
    from ..machine.timing import CacheState, OwnClock, Timing
    from ..model.profile import Profile


@runtime_checkable
class SharingFrame(RunFrame, Protocol):
    """One that may have its memory from another one."""

    def share(self, other: RunFrame) -> None:
        """Have the scratch memory of another frame, which never runs at the same time."""


class SizedProgram:
    """The code of an open program, and that of its variants.

    variants: by the sizes for which they are; another mapping may take the place of this one while
    frames run.
    """

    def __init__(
        self, program: ProgramCode, counts: SizeCounts, variants: Mapping[Sizes, ProgramCode]
    ) -> None:
        self.program = program
        self.counts = counts
        self.variants = variants
        self.interface = program.interface

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
        self._serving: ProgramCode | None = None  # whose frame runs now; None: the open program's
        self._frames: dict[ProgramCode, RunFrame] = {}

    def point(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Let the next runs use these arrays, which the caller keeps alive."""
        # each call of a function would take as long as the rest of the count
        sizes = self._sizes = tuple([inputs[number].shape[axis] for number, axis in self._told])
        seen = self._seen
        seen.append(sizes)
        variant = self._program.variants.get(sizes)
        if variant is not None:
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

    def _serve(self, variant: ProgramCode | None) -> None:
        """Let a variant run, or the open program, in the memory of the one before."""
        frame = self._open if variant is None else self._frames.get(variant)
        if frame is None:
            assert variant is not None
            frame = self._frames[variant] = variant.frame(self._threads)
        if isinstance(frame, SharingFrame):
            frame.share(self._now)
        self._now, self._serving = frame, variant


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
