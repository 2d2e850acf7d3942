"""The last word: the best candidates and the default take turns in fresh processes, one after the
other, until it is known which of them, if any, is faster than the default.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ..log.choice import wins_most_rounds
from ..measure.jobs import Result

FINALISTS = 4  # beside the default
PROCESSES = 7  # the least of which all have to be won: 2**-7 is below the level for four finalists
ROUNDS = 9  # in each process
_SECONDS = 1.0  # of a process; slow kernels get fewer rounds
_FEWEST = 3


@dataclass
class Confirmation:
    """Results of finalists, the first of which is the default.

    A finalist that loses in one process cannot win any more, and is out; where all are, nothing is
    left to find. So a tie is cheap, and what wins has won in every process.
    """

    results: list[Result]
    processes: list[int] = field(default_factory=list)
    _staying: list[int] = field(default_factory=list)

    @staticmethod
    def of(count: int) -> Confirmation:
        """For so many candidates, the default first."""
        return Confirmation([Result("ok")] * count, [0] * count, list(range(count)))

    @property
    def is_over(self) -> bool:
        """Whether there is nothing left to find."""
        return len(self._staying) < 2 or self.processes[0] == PROCESSES

    @property
    def staying(self) -> tuple[int, ...]:
        """Who takes turns in the next process, in the order in which they get their memory: what
        the first or the last gains by that is lost again in the next process.
        """
        return tuple(self._staying[:: -1 if self.processes[0] % 2 else 1])

    def take(self, results: Sequence[Result]) -> None:
        """What one process said of those that stay."""
        order = self.staying
        default = results[order.index(0)]
        for number, result in zip(order, results, strict=True):
            before = self.results[number].samples
            self.results[number] = replace(result, samples=before + result.samples)
            self.processes[number] += 1
            if number and not _goes_on(result, default):
                self._staying.remove(number)


def _goes_on(result: Result, default: Result) -> bool:
    ran = result.outcome == default.outcome == "ok"
    return ran and wins_most_rounds(result.samples, default.samples)


def rounds_of(seconds: Sequence[float]) -> int:
    """How many rounds a process has for candidates of which one call takes so long."""
    return max(_FEWEST, min(ROUNDS, int(_SECONDS / max(1e-9, sum(seconds)))))
