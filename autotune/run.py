"""The loop of a search: batches go to a place until a budget is spent, then the finals."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from threading import Event
from time import perf_counter

from .jobs import Reply
from .places import Place
from .task import Batch, LastRounds, Task

DEFAULT_TRIALS = 64  # of each function
INTERRUPTED = "it was interrupted"
BATCH = 4  # candidates of a function that take turns: its data is made once for them


class Run:
    """A search for several functions at one place, until a budget is spent."""

    def __init__(
        self,
        tasks: Sequence[Task],
        place: Place,
        trials: int | None,
        seconds: float | None,
        stop: Event,
    ) -> None:
        """trials, seconds: the budget; 64 trials for each function where there is none. stop: set,
        by whoever wants, to end it.
        """
        self._tasks = tasks
        self._place = place
        self._limit = trials
        if trials is None and seconds is None:
            self._limit = DEFAULT_TRIALS * len(tasks)
        self._stop = stop
        self._seconds = seconds
        self._deadline = float("inf") if seconds is None else perf_counter() + seconds
        self._flying: dict[Future[Reply], Batch | LastRounds] = {}

    def searched(self) -> str:
        """Search all functions, that first which promises most; why the search ended."""
        try:
            while (reason := self._why_not()) is None or self._flying:
                while reason is None and len(self._flying) < self._place.slots:
                    if not self._started():
                        break
                    reason = self._why_not()
                self._wait()
            if not self._stop.is_set():
                self._finals()
            return reason
        except KeyboardInterrupt:
            return INTERRUPTED

    def _why_not(self) -> str | None:
        """Why no more is tried; None where more is."""
        if self._stop.is_set():
            return "it was stopped"
        if self._limit is not None and self._left() <= 0:
            return f"{self._limit} trials are done"
        if perf_counter() > self._deadline:
            return f"{self._seconds:g} seconds are over"
        if all(task.outlook.is_over for task in self._tasks):
            return str(max((task.outlook for task in self._tasks), key=lambda one: one.chance))
        return None

    def _left(self) -> int:
        assert self._limit is not None
        return self._limit - sum(task.tried for task in self._tasks)

    def _started(self) -> bool:
        """Send one more batch, of the function that promises most; False where none has one now."""
        ready = [task for task in self._tasks if not task.outlook.is_over]
        for task in sorted(ready, key=lambda task: -task.expected_gain):
            most = BATCH if self._limit is None else min(BATCH, self._left())
            batch = task.next_batch(most, self._place)
            if batch is not None:
                self._send(batch)
                return True
        return False

    def _send(self, part: Batch | LastRounds) -> None:
        self._flying[self._place.submit(part.job)] = part

    def _wait(self) -> list[Batch | LastRounds]:
        """Take in at least one reply, where one is to come; whose they are."""
        finished, _ = wait(self._flying, return_when=FIRST_COMPLETED)
        parts = []
        for future in finished:
            parts.append(self._flying.pop(future))
            parts[-1].take(future.result())
        return parts

    def _finals(self) -> None:
        """Time the best candidates of each function and its default in turns."""
        found = [last for task in self._tasks if (last := task.finals()) is not None]
        while (found and not self._stop.is_set()) or self._flying:
            while found and len(self._flying) < self._place.slots:
                self._send(found.pop(0))
            lasts = (part for part in self._wait() if isinstance(part, LastRounds))
            found.extend(last for last in lasts if not last.finals.is_over)
