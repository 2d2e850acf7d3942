"""A model's code whose sizes a run decides: each run is counted under the sizes that it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...tir.program.program import ProgramCheck
from ..arrays import Array
from .context import ProfiledFrame, ProgramCode, RunFrame
from .size_counts import TOGETHER, SizeCounts

if TYPE_CHECKING:
    from ..model.profile import Profile


class SizedProgram:
    """The code of an open program."""

    def __init__(self, program: ProgramCode, counts: SizeCounts) -> None:
        self.program = program
        self.counts = counts
        self.interface = program.interface

    @property
    def checks(self) -> tuple[ProgramCheck, ...]:
        """The checks of indices that a run makes, in order."""
        return self.program.checks

    def frame(self, threads: int) -> RunFrame:
        """Memory for runs on so many threads."""
        frame = self.program.frame(threads)
        if isinstance(frame, ProfiledFrame):
            return _ProfiledSizedFrame(self, frame)
        return SizedFrame(self, frame)


class SizedFrame:
    """The memory of one run at a time."""

    def __init__(self, program: SizedProgram, frame: RunFrame) -> None:
        self._counts = program.counts
        self._seen = program.counts.seen
        self._told = program.interface.told
        self._frame = frame

    def point(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Let the next runs use these arrays, which the caller keeps alive."""
        # each call of a function would take as long as the rest of the count
        seen = self._seen
        seen.append(tuple([inputs[number].shape[axis] for number, axis in self._told]))
        if len(seen) >= TOGETHER:
            self._counts.add_up()
        self._frame.point(inputs, outputs)

    def run(self, threads: int) -> int:
        """Run; how many threads took part."""
        return self._frame.run(threads)


class _ProfiledSizedFrame(SizedFrame):
    """One whose launches can be timed one by one."""

    def profile(self, threads: int, rounds: int) -> Profile:
        """Time each launch alone on the arrays pointed to, and the whole run."""
        assert isinstance(self._frame, ProfiledFrame)
        return self._frame.profile(threads, rounds)
