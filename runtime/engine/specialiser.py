"""Variants for the sizes that come most often, made while an engine runs.

A size gets a variant when it is among the `most` frequent ones and had LEAST runs; there are never
more than `most` of them. They are built one after the other in a thread of their own, which no run
waits for; a run that comes when a variant is there is served by it, so that its bits may be others
than those of a run before. A build that fails is told in `Engine.stats` and once as a warning, and
not tried again. A process that ends waits for the stage of a build that it is at.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Protocol

from ..log import log
from .parts import EngineParts, Variant
from .size_counts import SizeCounts, Sizes

LEAST = 256  # runs of a size before a variant is made for it
Build = Callable[[Mapping[str, int], Callable[[str], object]], EngineParts]


class Specialised(Protocol):
    """An engine that takes variants."""

    @property
    def name(self) -> str:
        """The model's name."""

    def add_variant(self, variant: Variant) -> None:
        """Let a variant serve the runs that begin from now on."""


class _Ended(Exception):
    """The process ends: nobody waits for this build."""


class Specialiser:
    """What watches the counts of one engine. errors: what is wrong with builds that failed."""

    def __init__(
        self,
        counts: SizeCounts,
        names: tuple[str, ...],
        most: int,
        build: Build,
        engine: Callable[[], Specialised | None],
    ) -> None:
        """names: of the sizes. build: makes the parts for some sizes, and calls its second argument
        before each stage. engine: None where it is gone.
        """
        self.errors: tuple[str, ...] = ()
        self._counts = counts
        self._names = names
        self._most = most
        self._build = build
        self._engine = engine
        self._tried: set[Sizes] = set()
        self._thread: threading.Thread | None = None
        self._looking = threading.Lock()
        counts.when_added_up = self._look

    def wait(self, seconds: float | None = None) -> None:
        """Until no build is under way, or so many seconds are over."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def _look(self) -> None:
        """Begin to build where a size has come often enough, and nothing is built now. Of threads
        that look at once one does.
        """
        if not self._looking.acquire(blocking=False):
            return
        try:
            thread = self._thread
            if (thread is None or not thread.is_alive()) and self._wanted():
                self._thread = threading.Thread(target=self._work, name="tilewright specialise")
                self._thread.start()
        finally:
            self._looking.release()

    def _wanted(self) -> list[Sizes]:
        """The sizes that have no variant yet and come often enough."""
        if len(self._tried) >= self._most:
            return []
        often = [one for one, runs, _ in self._counts.most_frequent(self._most) if runs >= LEAST]
        return [sizes for sizes in often if sizes not in self._tried]

    def _work(self) -> None:
        while wanted := self._wanted():
            self._tried.add(wanted[0])
            named = tuple(zip(self._names, wanted[0], strict=True))
            try:
                parts = self._build(dict(named), _stop_at_the_end)
                engine = self._engine()
                if engine is None:
                    return
                engine.add_variant(Variant(named, parts))
            except _Ended:
                return
            except Exception as error:  # of a build: whatever it is, the engine runs on without
                self._tell(named, error)

    def _tell(self, named: tuple[tuple[str, int], ...], error: Exception) -> None:
        at = ", ".join(f"{name} {size}" for name, size in named)
        self.errors = (*self.errors, f"at {at}: {error}")
        engine = self._engine()
        if len(self.errors) == 1 and engine is not None:
            log.warning("specialise: '%s' gets no variant at %s: %s", engine.name, at, error)


def _stop_at_the_end(stage: str) -> None:
    """Raises: _Ended where the main thread has come to its end."""
    if not threading.main_thread().is_alive():
        raise _Ended
