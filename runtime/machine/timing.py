"""How long a call takes: the one implementation that kernels, benchmarks, tuning and tests share.

A sample is the mean of as many calls as last a millisecond. What is told is the median of the
samples and the interval that holds the true median with 95 % confidence (from the order of the
samples; nothing is assumed of their distribution). Calls that are compared take turns, so that a
machine that drifts drifts for all. "warm": the data is where the call before left it. "cold":
before each call, memory of twice the last-level cache is read and written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from .host import last_level_bytes

CacheState = Literal["warm", "cold"]
Call = Callable[[], object]

MIN_SAMPLE = 1e-3  # seconds
MIN_SAMPLES = 5
WARM = 0.1  # seconds: whose first call takes longer is as warm as it gets


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds per call: the median, its 95 % interval, every sample; the calls in a sample, and the
    cache's state.
    """

    median: float
    low: float
    high: float
    samples: tuple[float, ...] = field(repr=False)
    repeats: int = 1
    cache: CacheState = "warm"

    def __str__(self) -> str:
        return (
            f"{seconds_text(self.median)} ({seconds_text(self.low)} to {seconds_text(self.high)}, "
            f"{len(self.samples)} samples, {self.cache})"
        )

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class Sampler:
    """What takes samples of a call: the seconds of one, each of so many calls."""

    take: Callable[[], float]
    repeats: int


@runtime_checkable
class OwnClock(Protocol):
    """A call that is timed by another clock than the host's."""

    def measure(self, seconds: float, cache: CacheState) -> Timing:
        """As `measure` does."""
        ...


def measure(call: Call | OwnClock, seconds: float = 0.5, *, cache: CacheState = "warm") -> Timing:
    """Time a call for about `seconds`, at least five samples, after a warm-up; by the call's own
    clock where it has one.
    """
    if isinstance(call, OwnClock):
        return call.measure(seconds, cache)
    repeats = calibrate(call) if cache == "warm" else 1
    evict = Evictor() if cache == "cold" else None
    samples: list[float] = []
    deadline = perf_counter() + seconds
    while len(samples) < MIN_SAMPLES or perf_counter() < deadline:
        if evict is not None:
            evict()
        samples.append(sample(call, repeats))
    return summarise(samples, repeats, cache)


def compare(
    calls: Mapping[str, Call],
    rounds: int = 7,
    *,
    seconds: float = math.inf,
    cache: CacheState = "warm",
) -> dict[str, Timing]:
    """Time calls in turns: in each round one sample of each, every round beginning with another
    call. seconds: after which no round begins, but for the first five.
    """
    names = list(calls)
    repeats = {name: calibrate(calls[name]) if cache == "warm" else 1 for name in names}
    evict = Evictor() if cache == "cold" else None
    samples: dict[str, list[float]] = {name: [] for name in names}
    deadline = perf_counter() + seconds
    for turn in range(rounds):
        if turn >= MIN_SAMPLES and perf_counter() > deadline:
            break
        for name in in_turn(names, turn):
            if evict is not None:
                evict()
            samples[name].append(sample(calls[name], repeats[name]))
    return {name: summarise(samples[name], repeats[name], cache) for name in names}


def in_turn(names: Sequence[str], turn: int) -> list[str]:
    """The names in the order of a round: every round begins with another one."""
    first = turn % len(names)
    return [*names[first:], *names[:first]]


def calibrate(call: Call) -> int:
    """How many calls last a millisecond; the calls made to find out are the warm-up. Other work on
    the machine may hold one up, so the faster one of two samples counts.
    """
    if sample(call, 1) > WARM:
        return 1
    repeats = 1
    while True:
        elapsed = min(sample(call, repeats), sample(call, repeats)) * repeats
        if elapsed >= MIN_SAMPLE / 2:
            return max(1, math.ceil(repeats * MIN_SAMPLE / elapsed))
        repeats *= 4


def sample(call: Call, repeats: int) -> float:
    """Seconds per call over `repeats` calls."""
    began = perf_counter()
    for _ in range(repeats):
        call()
    return (perf_counter() - began) / repeats


def summarise(samples: list[float], repeats: int = 1, cache: CacheState = "warm") -> Timing:
    """The median of at least one sample, and the interval between order statistics around it."""
    ordered = sorted(samples)
    count = len(ordered)
    reach = 1.96 * math.sqrt(count) / 2  # of a binomial count of samples below the median
    low = max(0, math.floor((count - 1) / 2 - reach))
    high = min(count - 1, math.ceil((count - 1) / 2 + reach))
    median = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
    return Timing(median, ordered[low], ordered[high], tuple(samples), repeats, cache)


class Evictor:
    """Calling it leaves nothing of what was in the caches: twice the last level is read and
    written.
    """

    def __init__(self) -> None:
        size = 2 * last_level_bytes()
        self._memory = np.zeros(size // 8, np.int64)

    def __call__(self) -> None:
        self._memory += 1


def seconds_text(seconds: float) -> str:
    """A duration with three digits and its unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
