"""Interleaved sampling of calls; one that is clearly slower than the best is dropped, but never the
default, with which all others are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from statistics import geometric_mean, median
from time import perf_counter

from ...runtime.machine.timing import Sampler, in_turn
from ..log.record import SizeTimes
from ..sizes import SizeValues

# rounds -> the multiple of the best time beyond which a call is dropped; none is dropped for a
# single sample, which another process may have disturbed
PATIENCE = ((2, 3.0), (3, 1.5), (4, 1.2))
SETTLED = 1.2  # the multiple of the fastest sample that the median of a default may be
MORE = 4  # times as many samples as there are rounds, at most, until it is
_SETTLING = 1.0  # seconds that this may take


@dataclass
class SizedSampler:
    """Samples of a candidate at each of its sizes, one after the other."""

    each: Sequence[Sampler]
    _taken: list[list[float]] = field(default_factory=list)

    @property
    def repeats(self) -> int:
        """The number of calls of a sample, at all sizes together."""
        return sum(sampler.repeats for sampler in self.each)

    def take(self) -> float:
        """The geometric mean of a sample at each size, in seconds."""
        self._taken.append([sampler.take() for sampler in self.each])
        return geometric_mean(self._taken[-1])

    def times(self, sizes: Sequence[SizeValues]) -> tuple[SizeTimes, ...]:
        """What was sampled at each size; nothing where no call decides any."""
        by_size = zip(sizes, self.each, zip(*self._taken, strict=True), strict=True)
        found = (SizeTimes(values, one.repeats, taken) for values, one, taken in by_size)
        return tuple(found) if sizes else ()


def take_turns(
    samples: Sequence[Callable[[], float]],
    rounds: int,
    bar: float | None,
    default: int | None = None,
) -> list[list[float]]:
    """The samples of each call, in seconds, one per round; each round starts with another call.

    bar: seconds of the fastest call known before. A call whose fastest sample exceeds the best time
    by more than PATIENCE allows is dropped. None: all calls stay for all rounds. Noise only ever
    makes a call slower, so the fastest sample is the least noisy one.
    default: the number of the call that is not dropped. Where half of its samples are slow, more
    are taken: other work on the machine holds up single samples, of which few may all be slow.
    """
    taken: list[list[float]] = [[] for _ in samples]
    staying = [str(number) for number in range(len(samples))]
    for turn in range(rounds if samples else 0):
        for name in in_turn(staying, turn):
            taken[int(name)].append(samples[int(name)]())
        if bar is not None:
            best = min(bar, *(min(taken[int(name)]) for name in staying))
            limit = best * _patience(turn + 1)
            staying = [
                name for name in staying if int(name) == default or min(taken[int(name)]) <= limit
            ]
        if not staying:
            break
    if default is not None and bar is not None:
        _settle(samples[default], taken[default], MORE * rounds)
    return taken


def _settle(sample: Callable[[], float], taken: list[float], most: int) -> None:
    """Take more samples of a call, until their median is near the fastest one."""
    ends = perf_counter() + _SETTLING
    while median(taken) > SETTLED * min(taken) and len(taken) < most and perf_counter() < ends:
        taken.append(sample())


def _patience(rounds: int) -> float:
    return next((times for after, times in reversed(PATIENCE) if rounds >= after), inf)
