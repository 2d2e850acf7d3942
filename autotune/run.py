"""The loop of a search: measure batches until the budget is spent, and confirm the best candidates
of each function as soon as its search has settled.
"""

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
OVERTIME = 0.05  # of a budget in seconds, in which what is being measured may end
BATCH = 4  # candidates of a function in one job, which share its data


class Run:
    """One search for several functions at one place."""

    def __init__(
        self,
        tasks: Sequence[Task],
        place: Place,
        options: TuneOptions,
        stop: Event,
        began: float | None = None,
    ) -> None:
        """options: for the budget, which is spent from `began` on, by default from now. stop: ends
        the search once it is set.
        """
        self._tasks = tasks
        self._place = place
        self._limit = options.trial_limit(len(tasks))
        self._stop = stop
        self._seconds = options.seconds
        now = perf_counter() if began is None else began
        budget = inf if options.seconds is None else options.seconds
        self._deadline = now + budget
        self._search_deadline = now + (1.0 - CONFIRMATION_SHARE) * budget
        self._last = now + (1.0 + OVERTIME) * budget
        self._in_flight: dict[Future[Reply], Batch | ConfirmationRound] = {}
        self._open: list[ConfirmationRound] = []
        self._left_over = {task for task in tasks if task.finalists}  # by an earlier search
        self._confirmed: dict[Task, int] = {}  # the number of its trials at its last round

    def search(self) -> str:
        """Confirm what an earlier search left, then search all functions, most promising first.
        Returns why the search ended.
        """
        try:
            while True:
                reason = self._stop_reason()
                while len(self._in_flight) < self._place.slots:
                    part = self._next_round(reason) or (None if reason else self._next_batch())
                    if part is None:
                        break
                    self._in_flight[self._place.submit(part.job)] = part
                    reason = reason or self._stop_reason()
                if (reason and not self._in_flight) or not self._wait():
                    return reason or self._budget_text
        except KeyboardInterrupt:
            return INTERRUPTED

    def _stop_reason(self) -> str | None:
        """Why no further candidate is tried; None while the search goes on."""
        if self._stop.is_set():
            return "it was stopped"
        if self._limit is not None and self._trials_left() <= 0:
            return (
                f"{self._limit} trials are done" if self._limit else "nothing new was to be tried"
            )
        improvements = [task.expected_improvement for task in self._tasks]
        if all(improvement.is_negligible for improvement in improvements):
            return str(max(improvements, key=lambda improvement: improvement.chance))
        return self._budget_text if perf_counter() > self._search_deadline else None

    @property
    def _budget_text(self) -> str:
        return f"{self._seconds:g} seconds are over"

    def _trials_left(self) -> int:
        assert self._limit is not None
        return self._limit - sum(task.tried for task in self._tasks)

    def _next_batch(self) -> Batch | None:
        """A batch of the most promising function; None where none has a new candidate."""
        open_ = [task for task in self._tasks if not task.expected_improvement.is_negligible]
        for task in sorted(open_, key=lambda task: -task.expected_saving):
            most = BATCH if self._limit is None else min(BATCH, self._trials_left())
            batch = task.next_batch(most, self._place)
            if batch is not None:
                return batch
        return None

    def _next_round(self, reason: str | None) -> ConfirmationRound | None:
        """A process of a confirmation round: of one that is open, else of a function that an
        earlier search left undecided, else of that with the largest potential saving whose search
        has settled, or all where the search has ended.
        """
        rounds = sum(isinstance(part, ConfirmationRound) for part in self._in_flight.values())
        if self._stop.is_set() or perf_counter() > self._deadline:
            return None
        if rounds >= max(1, self._place.slots // 2):  # as many as can run: sooner one is decided
            return None
        if self._open:
            return self._open.pop(0)
        waiting = [
            task
            for task in self._tasks
            if (reason or task in self._left_over or task.is_settled)
            and not task.is_measuring
            and self._confirmed.get(task) != task.searched
        ]
        for task in sorted(waiting, key=lambda one: (not one.is_undecided, -one.potential_saving)):
            self._confirmed[task] = task.searched
            self._left_over.discard(task)
            part = task.confirmation()
            if part is not None:
                return part
        return None

    def _wait(self) -> bool:
        """Wait for replies, and take them in; False where the budget ended before one came."""
        left = max(0.0, self._last - perf_counter())
        finished, _ = wait(self._in_flight, None if left == inf else left, FIRST_COMPLETED)
        for future in finished:
            part = self._in_flight.pop(future)
            reply = future.result()
            part.take(reply)
            if reply.is_calm:
                for task in self._tasks:
                    task.repeat_disturbed()
            if isinstance(part, ConfirmationRound) and not part.state.is_over:
                self._open.append(part)
        return bool(finished) or not self._in_flight
