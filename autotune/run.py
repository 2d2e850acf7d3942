"""The loop of a search: batches go to a place until a budget is spent, then the finals."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from math import inf
from threading import Event
from time import perf_counter

from .measure.jobs import Reply
from .places.places import Place
from .task import Batch, LastRounds, Task

DEFAULT_TRIALS = 64  # of each function
INTERRUPTED = "it was interrupted"
FINALS_SHARE = 0.2  # of a budget in seconds that is kept for the finals
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
        now = perf_counter()
        self._deadline = inf if seconds is None else now + seconds
        self._until = inf if seconds is None else now + (1.0 - FINALS_SHARE) * seconds
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
            return self._with_finals(reason)
        except KeyboardInterrupt:
            return INTERRUPTED

    def _why_not(self) -> str | None:
        """Why no more is tried; None where more is."""
        if self._stop.is_set():
            return "it was stopped"
        if self._limit is not None and self._left() <= 0:
            return f"{self._limit} trials are done"
        if perf_counter() > self._until:
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

    def _with_finals(self, reason: str) -> str:
        """Time the best candidates of each function and its default in turns, that function first
        of which most may be saved; the reason, with what time was not enough for.
        """
        saving = [(task.may_save, number) for number, task in enumerate(self._tasks)]
        waiting = [self._tasks[number] for seconds, number in sorted(saving) if seconds > 0]
        open_: list[LastRounds] = []
        while ((waiting or open_) and not self._is_over) or self._flying:
            while (waiting or open_) and len(self._flying) < self._place.slots:
                if self._is_over:
                    break
                last = open_.pop(0) if open_ else waiting.pop().finals()
                if last is not None:
                    self._send(last)
            if self._flying:
                lasts = (part for part in self._wait() if isinstance(part, LastRounds))
                open_.extend(last for last in lasts if not last.finals.is_over)
        left = len(waiting) + len(open_)
        if not left or self._stop.is_set():
            return reason
        many = f"{left} functions" if left > 1 else "one function"
        return f"{reason}, too soon for the finals of {many}"

    @property
    def _is_over(self) -> bool:
        return self._stop.is_set() or perf_counter() > self._deadline
