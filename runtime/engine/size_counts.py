"""How often an engine ran at which sizes: counted at each run, in bounded memory.

The sizes of a run are a tuple of numbers in the order of the interface's dims. A run puts them into
a queue, which takes no lock, and every 128th run adds up what is there. Of twice as many sizes as
are shown the less frequent half is forgotten; what they counted stays in the sums. A run of
`Engine.run` counts once, a bound context when it is bound.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ...tir.text.display import printable

Sizes = tuple[int, ...]
MOST = 128  # sizes that are remembered; for a while up to twice as many
TOGETHER = 128  # runs that are added up at once


@dataclass(frozen=True, slots=True)
class SizeUse:
    """The runs at one choice of the sizes. hits: those that a variant for these sizes served."""

    sizes: dict[str, int]
    runs: int
    hits: int = 0

    def __str__(self) -> str:
        at = ", ".join(f"{name} {size}" for name, size in self.sizes.items())
        return printable(f"{at}: {self.runs} runs" + (f", {self.hits} hits" if self.hits else ""))

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class EngineStats:
    """At which sizes an engine ran, since it was made or loaded in this process.

    sizes: the most frequent first, at most 128 of them; runs, hits: of all sizes, those that are
    forgotten among them. An engine whose sizes are numbers counts nothing. variants: how many there
    are; errors: what is wrong with those that could not be made while it ran. padded: the runs that
    a variant of a larger size served; waste: which share of the rows that it computed were added.
    """

    runs: int = 0
    hits: int = 0
    sizes: tuple[SizeUse, ...] = ()
    variants: int = 0
    errors: tuple[str, ...] = ()
    padded: int = 0
    waste: float = 0.0

    def __str__(self) -> str:
        head = f"{self.runs} runs, {self.hits} hits of {self.variants} variants"
        if self.padded:
            head += f", {self.padded} padded (of their rows {self.waste:.1%} were added)"
        failed = (f"  no variant {printable(error)}" for error in self.errors)
        return "\n".join([head, *(f"  {use}" for use in self.sizes), *failed])

    __repr__ = __str__


class SizeCounts:
    """Counts runs at sizes; any number of threads may count at once.

    seen: the sizes of each run that is not counted yet, hit: of each that a variant served; padded:
    the rows of each that a larger one served, and how many that has. Whoever appends to them calls
    `add_up` when there are TOGETHER. when_added_up: is called after that.
    """

    def __init__(self) -> None:
        self.seen: deque[Sizes] = deque()
        self.hit: deque[Sizes] = deque()
        self.padded: deque[tuple[int, int]] = deque()
        self._lock = threading.Lock()
        self._runs: Counter[Sizes] = Counter()
        self._hits: Counter[Sizes] = Counter()
        self._told: Counter[Sizes] = Counter()
        self._all = [0, 0]  # runs and hits of all sizes
        self._padded = [0, 0, 0]  # runs, their rows, and the rows that were computed
        self.when_added_up: Callable[[], object] | None = None
        _counters.add(self)

    def add_up(self) -> None:
        """Count what is in the queues, unless another thread is at it."""
        if self._lock.acquire(blocking=False):
            try:
                self._add_up()
            finally:
                self._lock.release()
            if self.when_added_up is not None:
                self.when_added_up()

    def most_frequent(self, count: int = MOST) -> list[tuple[Sizes, int, int]]:
        """The sizes that most runs had, with their runs and their hits, the most frequent first."""
        with self._lock:
            self._add_up()
            return [
                (sizes, runs, self._hits[sizes]) for sizes, runs in self._runs.most_common(count)
            ]

    def stats(self, names: Iterable[str]) -> EngineStats:
        """What was counted; names: of the sizes."""
        listed = list(names)
        uses = tuple(
            SizeUse(dict(zip(listed, sizes, strict=True)), runs, hits)
            for sizes, runs, hits in self.most_frequent()
        )
        padded, kept, computed = self._padded
        waste = 1 - kept / computed if computed else 0.0
        return EngineStats(self._all[0], self._all[1], uses, padded=padded, waste=waste)

    def not_told(self, names: Iterable[str]) -> list[tuple[dict[str, int], int]]:
        """The runs at each of the remembered sizes since this was called before."""
        listed, found = list(names), []
        for sizes, runs, _ in self.most_frequent(2 * MOST):
            before = self._told[sizes]
            more = runs - before if runs >= before else runs  # forgotten, and counted anew
            self._told[sizes] = runs
            if more:
                found.append((dict(zip(listed, sizes, strict=True)), more))
        self._told = Counter({sizes: self._told[sizes] for sizes in self._runs})
        return found

    def renew(self) -> None:
        """In a forked child nobody counts: a lock that a thread of the parent held is free."""
        self._lock = threading.Lock()

    def _add_up(self) -> None:
        """Count what is in the queues, and forget what is rare; by the one that has the lock."""
        pairs = ((self.seen, self._runs), (self.hit, self._hits))
        for number, (queue, counter) in enumerate(pairs):
            taken = [queue.popleft() for _ in range(len(queue))]
            counter.update(taken)
            self._all[number] += len(taken)
        for _ in range(len(self.padded)):
            rows = self.padded.popleft()
            self._padded = [n + m for n, m in zip(self._padded, (1, *rows), strict=True)]
        if len(self._runs) > 2 * MOST:
            self._runs = Counter(dict(self._runs.most_common(MOST)))
            self._hits = Counter({sizes: self._hits[sizes] for sizes in self._runs})


_counters: weakref.WeakSet[SizeCounts] = weakref.WeakSet()


def _renew_locks() -> None:
    for counts in _counters:
        counts.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)
