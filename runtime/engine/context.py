"""A Context: an engine bound to arrays, for calls without checks.

    ctx = engine.context(threads=2)
    ctx.bind({"input": x}, {"logits": y})
    ctx.run()                                       # reads x, writes y

Each context has an arena and workspaces of its own, so that contexts run at the same time; one
context serves one thread at a time, and refuses a second one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ...tir.dim import Dim
from ...tir.errors import TilewrightError
from ...tir.program.program import ProgramCheck
from ..arrays import Array
from ..model.interface import Interface

if TYPE_CHECKING:
    from ..machine.timing import CacheState, Timing
    from ..model.profile import Profile


class ContextError(TilewrightError, RuntimeError):
    """A context is run before arrays are bound to it, or while another thread runs it."""


class RunFrame(Protocol):
    """The memory of one run at a time."""

    def point(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Let the next runs use these arrays, which the caller keeps alive."""

    def run(self, threads: int) -> int:
        """Run; how many threads took part."""


@runtime_checkable
class SizedFrame(RunFrame, Protocol):
    """One of whose runs a result says how large its outputs are."""

    @property
    def sizes(self) -> Mapping[Dim, int]:
        """The sizes of the last run: what its inputs tell, and what it has computed."""


@runtime_checkable
class ProfiledFrame(RunFrame, Protocol):
    """One whose launches can be timed one by one."""

    def profile(self, threads: int, rounds: int) -> Profile:
        """Time each launch alone on the arrays pointed to, and the whole run."""


class ProgramCode(Protocol):
    """A model's code, ready to run."""

    @property
    def checks(self) -> tuple[ProgramCheck, ...]:
        """The checks of indices that a run makes, in order."""

    @property
    def interface(self) -> Interface:
        """What a run takes and gives."""

    def frame(self, threads: int) -> RunFrame:
        """Memory for runs on so many threads."""


class Context:
    """An engine's own memory for runs on `threads` threads, and the arrays bound to it."""

    def __init__(
        self,
        interface: Interface,
        frame: RunFrame,
        threads: int,
        check_apart: Callable[[Sequence[Array]], object] | None = None,
    ) -> None:
        """check_apart: refuses outputs that no run may write."""
        self.threads = threads
        self._check_apart = check_apart
        self._interface = interface
        self._frame = frame
        self._arrays: tuple[list[Array], list[Array]] | None = None
        self._taken = threading.Lock()

    def __repr__(self) -> str:
        bound = "no arrays bound" if self._arrays is None else "bound to arrays"
        return f"Context of {self._interface} on {self.threads} thread(s), {bound}"

    def bind(
        self, inputs: Mapping[str, object], outputs: Mapping[str, object] | None = None
    ) -> Context:
        """Check the arrays and let the next runs read and write them; this context.

        Outputs that are not given are made.
        Raises: ArgumentTypeError, ArgumentValueError; ContextError while another thread runs it.
        """
        arrays = self._interface.accept(inputs, outputs)
        if outputs and self._check_apart is not None:
            self._check_apart(arrays[1])
        if not self._taken.acquire(blocking=False):
            raise self._in_use()
        try:
            self._frame.point(*arrays)
            self._arrays = arrays
        finally:
            self._taken.release()
        return self

    def run(self) -> None:
        """Run on the bound arrays, which are not looked at again.

        Raises: ContextError where none are bound, and while another thread runs it;
        IndexRangeError, an IndexError, after a run in which an index that is data lay outside of
        its range.
        """
        if self._arrays is None:
            raise self._unbound()
        if not self._taken.acquire(blocking=False):
            raise self._in_use()
        try:
            self._frame.run(self.threads)
        finally:
            self._taken.release()

    __call__ = run

    def time(self, seconds: float = 0.5, *, cache: CacheState = "warm") -> Timing:
        """Time runs on the bound arrays for about `seconds`: on a GPU by the device's clock, copies
        from and to the host not counted.

        Raises: ContextError where none are bound.
        """
        from ..machine.timing import OwnClock, measure  # a run needs no clock

        if self._arrays is None:
            raise self._unbound()
        frame = self._frame
        return measure(frame if isinstance(frame, OwnClock) else self.run, seconds, cache=cache)

    @property
    def outputs(self) -> dict[str, Array]:
        """The bound arrays that a run writes, by name; of one whose size data decide, what the last
        run has written.

        Raises: ContextError where none are bound.
        """
        if self._arrays is None:
            raise self._unbound()
        return self._interface.named(written_by(self._frame, self._interface, self._arrays[1]))

    def _unbound(self) -> ContextError:
        names = ", ".join(f"{spec.name!r}: ..." for spec in self._interface.inputs)
        return ContextError(
            f"context: no arrays are bound to this context of '{self._interface.name}'.",
            code="context-unbound",
            hints=(f"context.bind({{{names}}})",),
        )

    def _in_use(self) -> ContextError:
        return ContextError(
            f"context: another thread runs this context of '{self._interface.name}', whose memory "
            "holds one run.",
            code="context-in-use",
            hints=("make one for each thread: engine.context().bind(...).",),
        )


def written_by(frame: RunFrame, interface: Interface, outputs: Sequence[Array]) -> Sequence[Array]:
    """What the last run in a frame has written of its outputs."""
    if not interface.data_decides:
        return outputs
    assert isinstance(frame, SizedFrame)
    return interface.written(outputs, frame.sizes)
