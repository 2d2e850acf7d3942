"""Confirmation rounds: the fastest candidates and the default take turns in fresh processes, until
it is decided which of them, if any, is faster than the default. A process that a busy machine
disturbed is repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ..log.choice import wins_most_rounds
from ..log.disturbance import drift_in
from ..measure.jobs import Result

PROCESSES = 7  # all must be won: 2**-7 is below the significance level for four finalists
ROUNDS = 9  # in each process
REPEATS = 5  # of disturbed processes; what is disturbed beyond counts, and is marked
_SECONDS = 1.0  # for the rounds of a process; slow kernels get fewer
_FEWEST = 3


@dataclass
class Confirmation:
    """The results of the finalists, the first of which is the default.

    A finalist that loses a process is out, since only one that wins all processes replaces the
    default; so a tie is decided early. repeats: how many processes did not count, since the machine
    was disturbed.
    """

    results: list[Result]
    processes: list[int] = field(default_factory=list)
    _staying: list[int] = field(default_factory=list)
    repeats: int = 0

    @staticmethod
    def of(count: int) -> Confirmation:
        """Start with so many candidates, the default first."""
        return Confirmation([Result("ok")] * count, [0] * count, list(range(count)))

    @property
    def is_over(self) -> bool:
        """Whether it is decided: all finalists are out, or all processes have run."""
        return len(self._staying) < 2 or self.processes[0] == PROCESSES

    @property
    def staying(self) -> tuple[int, ...]:
        """The candidates of the next process, in the order in which their memory is allocated. The
        order is reversed from process to process, to cancel its effect.
        """
        return tuple(self._staying[:: -1 if self.processes[0] % 2 else 1])

    def take(self, results: Sequence[Result]) -> None:
        """Take in the results of one process for the candidates that stay."""
        if self.repeats < REPEATS and any(drift_in(result.text) for result in results):
            self.repeats += 1
            return
        order = self.staying
        default = results[order.index(0)]
        for number, result in zip(order, results, strict=True):
            before = self.results[number]
            text = max(result.text, before.text, key=drift_in)
            self.results[number] = replace(result.after(before), text=text)
            self.processes[number] += 1
            if number and not _goes_on(result, default):
                self._staying.remove(number)


def _goes_on(result: Result, default: Result) -> bool:
    ran = result.outcome == default.outcome == "ok"
    return ran and wins_most_rounds(result.samples, default.samples)


def rounds_of(seconds: Sequence[float]) -> int:
    """The number of rounds per process, given the seconds per call of each candidate."""
    return max(_FEWEST, min(ROUNDS, int(_SECONDS / max(1e-9, sum(seconds)))))
