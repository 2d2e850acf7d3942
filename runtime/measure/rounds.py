"""Systems timed in turns, for comparisons that a drifting machine cannot bend.

In each round every system makes its calls, each timed alone: after a rest, in which the thread
pools of the others stop spinning, and one call that does not count. Every round begins with another
system. What is told of a round is the median of its calls; systems are compared round by round, and
the median of those ratios counts, with its 95 % interval.

On shared machines two threads get one thread's throughput for seconds at a time, and no counter
shows it. A gate sees it: a probe of the multiply-add peak stands before and after each round, and a
round that it finds slow is repeated, for all systems alike. What it also tells, and leaves as it
is, is how long a barrier takes: virtual CPUs wander between one core, one last-level cache and two
of them, and what threads hand to each other then costs up to four times as much.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter, sleep

from ..machine.timing import Call, Timing, in_turn, sample, summarise
from .limits import Probe, barrier_probe, fma_peak

_GATE = 0.92  # of threads times the best single-thread rate
_REST = 0.1  # seconds between one system and the next: onnxruntime's threads spin for half of it
_PAUSE = 0.3  # seconds that a slow machine is given
_PROBED = 2  # calls of the probe
_FEWEST = 100  # calls, below which the slowest few say nothing
_DISTURBED = 2.0  # the ends of an interval are that many times apart
_PASSED = 3  # calls of the probe of barriers, the least of which counts: others may take a CPU


@dataclass(frozen=True, slots=True)
class Ratio:
    """The time of one system over that of another, round by round: the median and its 95 %
    interval.
    """

    median: float
    low: float
    high: float
    samples: tuple[float, ...] = field(repr=False)

    @property
    def is_tie(self) -> bool:
        """Whether the interval holds 1.0."""
        return self.low <= 1.0 <= self.high

    @property
    def is_disturbed(self) -> bool:
        """Whether the rounds agree so little that their median is no figure."""
        return is_disturbed(self.low, self.high)


def is_disturbed(low: float, high: float) -> bool:
    """Whether an interval of ratios is too wide to be told by its middle: something else ran beside
    one of the systems.
    """
    return high > _DISTURBED * low


@dataclass(frozen=True, slots=True)
class Rounds:
    """What was measured.

    seconds: of each system, in each round, its calls in order. peaks: GFLOP/s of the probe in each
    round; empty where none stood by. repeated: rounds that do not count, because the machine was
    slow. barriers: seconds of a barrier of the threads before each round; empty for one thread.
    """

    seconds: Mapping[str, tuple[tuple[float, ...], ...]]
    peaks: tuple[float, ...] = ()
    repeated: int = 0
    barriers: tuple[float, ...] = ()

    def timing(self, name: str) -> Timing:
        """Seconds per call of a system; its samples are the medians of the rounds."""
        return summarise([median(calls) for calls in self.seconds[name]])

    def ratio(self, name: str, over: str) -> Ratio:
        """The time of one system over that of another in the same rounds."""
        pairs = zip(self.timing(name).samples, self.timing(over).samples, strict=True)
        found = summarise([mine / other for mine, other in pairs])
        return Ratio(found.median, found.low, found.high, found.samples)

    def percentile(self, name: str, percent: float) -> float | None:
        """The seconds that `percent` of a system's calls, of all rounds, do not exceed; None for
        the slower ones of fewer than 100 calls.
        """
        ordered = sorted(call for calls in self.seconds[name] for call in calls)
        if percent > 50 and len(ordered) < _FEWEST:
            return None
        return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]

    def fastest(self) -> tuple[str, ...]:
        """The fastest system, then those that tie with it."""
        first, *_ = self.seconds
        best = min(self.seconds, key=lambda name: self.ratio(name, first).median)
        tied = (name for name in self.seconds if name != best and self.ratio(name, best).low <= 1.0)
        return best, *tied


class Gate:
    """Lets rounds count in which the multiply-add probe is as fast as `wanted` GFLOP/s.

    It turns rounds away for `patience` seconds from now; then all count.
    """

    def __init__(
        self, probe: Probe, wanted: float, patience: float, barriers: Probe | None = None
    ) -> None:
        """barriers: a probe that passes barriers; None for one thread."""
        self._probe = probe
        self._barriers = barriers
        self._wanted = wanted
        self._deadline = perf_counter() + patience

    @staticmethod
    def of(threads: int, patience: float) -> Gate:
        """A gate that wants of `threads` threads nearly as many times what one reaches.

        Raises: CompilerNotFound, CompileFailed, LibraryError.
        """
        alone = fma_peak(1)
        best = max(alone.rate(sample(alone, 3)) for _ in range(10))
        barriers = barrier_probe(threads) if threads > 1 else None
        return Gate(fma_peak(threads), _GATE * threads * best, patience, barriers)

    def rate(self) -> float:
        """GFLOP/s now."""
        sleep(_REST)
        self._probe()
        return self._probe.rate(sample(self._probe, _PROBED))

    def barrier(self) -> float | None:
        """Seconds of a barrier now; None for one thread."""
        if self._barriers is None:
            return None
        return min(sample(self._barriers, 1) for _ in range(_PASSED)) / self._barriers.work

    def refuses(self, rate: float) -> bool:
        """Whether the machine is too slow, and there is time to wait."""
        return rate < self._wanted and perf_counter() < self._deadline


def interleave(
    calls: Mapping[str, Call],
    counts: Mapping[str, int],
    rounds: int,
    gate: Gate | None = None,
    *,
    ahead: Call | None = None,
) -> Rounds:
    """Time systems in turns. counts: how many calls of each make its part of a round. ahead: what
    runs before each call, untimed.
    """
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name in calls}
    peaks: list[float] = []
    barriers: list[float] = []
    done = repeated = 0
    while done < rounds:
        before = None if gate is None else gate.rate()
        if gate is not None and before is not None and gate.refuses(before):
            repeated += 1
            sleep(_PAUSE)
            continue
        barrier = None if gate is None else gate.barrier()
        taken = {
            name: _part(calls[name], counts[name], ahead) for name in in_turn(list(calls), done)
        }
        if gate is not None and before is not None:
            after = gate.rate()
            if gate.refuses(after):
                repeated += 1
                continue
            peaks.append((before + after) / 2)
        if barrier is not None:
            barriers.append(barrier)
        for name, seconds in taken.items():
            found[name].append(seconds)
        done += 1
    seconds_of = {name: tuple(parts) for name, parts in found.items()}
    return Rounds(seconds_of, tuple(peaks), repeated, tuple(barriers))


def _part(call: Call, count: int, ahead: Call | None) -> tuple[float, ...]:
    """The seconds of each of `count` calls, after a rest and a call that does not count."""
    sleep(_REST)
    call()
    taken = []
    for _ in range(count):
        if ahead is not None:
            ahead()
        taken.append(sample(call, 1))
    return tuple(taken)
