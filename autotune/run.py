"""The loop of a search: measure batches until the budget is spent, then confirm the best."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from math import inf
from threading import Event
from time import perf_counter

from .measure.jobs import Reply
from .options import TuneOptions
from .places.places import Place
from .task import Batch, ConfirmationRound, Task

INTERRUPTED = "it was interrupted"
CONFIRMATION_SHARE = 0.2  # of a budget in seconds that is reserved for confirmation rounds
BATCH = 4  # candidates of a function in one job, which share its data


class Run:
    """One search for several functions at one place."""

    def __init__(
        self, tasks: Sequence[Task], place: Place, options: TuneOptions, stop: Event
    ) -> None:
        """options: for the budget. stop: ends the search once it is set."""
        self._tasks = tasks
        self._place = place
        self._limit = options.trial_limit(len(tasks))
        self._stop = stop
        self._seconds = options.seconds
        now, budget = perf_counter(), inf if options.seconds is None else options.seconds
        self._deadline = now + budget
        self._search_deadline = now + (1.0 - CONFIRMATION_SHARE) * budget
        self._in_flight: dict[Future[Reply], Batch | ConfirmationRound] = {}

    def search(self) -> str:
        """Search all functions, most promising first. Returns why the search ended."""
        try:
            while (reason := self._stop_reason()) is None or self._in_flight:
                while reason is None and len(self._in_flight) < self._place.slots:
                    if not self._submit_batch():
                        break
                    reason = self._stop_reason()
                self._wait()
            return self._confirm(reason)
        except KeyboardInterrupt:
            return INTERRUPTED

    def _stop_reason(self) -> str | None:
        """Why no further candidate is tried; None while the search goes on."""
        if self._stop.is_set():
            return "it was stopped"
        if self._limit is not None and self._trials_left() <= 0:
            return f"{self._limit} trials are done"
        if perf_counter() > self._search_deadline:
            return f"{self._seconds:g} seconds are over"
        improvements = [task.expected_improvement for task in self._tasks]
        if all(improvement.is_negligible for improvement in improvements):
            return str(max(improvements, key=lambda improvement: improvement.chance))
        return None

    def _trials_left(self) -> int:
        assert self._limit is not None
        return self._limit - sum(task.tried for task in self._tasks)

    def _submit_batch(self) -> bool:
        """Submit a batch of the most promising function; False where none has a new candidate."""
        open_ = [task for task in self._tasks if not task.expected_improvement.is_negligible]
        for task in sorted(open_, key=lambda task: -task.expected_saving):
            most = BATCH if self._limit is None else min(BATCH, self._trials_left())
            batch = task.next_batch(most, self._place)
            if batch is not None:
                self._submit(batch)
                return True
        return False

    def _submit(self, part: Batch | ConfirmationRound) -> None:
        self._in_flight[self._place.submit(part.job)] = part

    def _wait(self) -> list[Batch | ConfirmationRound]:
        """Wait for replies; return the batches that they finish. Empty where none is in flight."""
        finished, _ = wait(self._in_flight, return_when=FIRST_COMPLETED)
        parts = []
        for future in finished:
            parts.append(self._in_flight.pop(future))
            parts[-1].take(future.result())
        return parts

    def _confirm(self, reason: str) -> str:
        """Measure the best candidates of each function against its default, in the order of the
        potential savings. Returns the reason, with the functions that there was no time for.
        """
        savings = [(task.potential_saving, number) for number, task in enumerate(self._tasks)]
        waiting = [self._tasks[number] for seconds, number in sorted(savings) if seconds > 0]
        open_: list[ConfirmationRound] = []
        while ((waiting or open_) and not self._must_end) or self._in_flight:
            while (waiting or open_) and len(self._in_flight) < self._place.slots:
                if self._must_end:
                    break
                part = open_.pop(0) if open_ else waiting.pop().confirmation()
                if part is not None:
                    self._submit(part)
            if self._in_flight:
                parts = (part for part in self._wait() if isinstance(part, ConfirmationRound))
                open_.extend(part for part in parts if not part.state.is_over)
        left = len(waiting) + len(open_)
        if not left or self._stop.is_set():
            return reason
        functions = f"{left} functions" if left > 1 else "one function"
        return f"{reason}, no time left to re-measure {functions}"

    @property
    def _must_end(self) -> bool:
        return self._stop.is_set() or perf_counter() > self._deadline
