"""What a search still promises: how likely one of the next trials is to be better, and by how much
on average.

Two witnesses are heard, and the less hopeful one is believed. The cost model expects something of
the candidates that it ranks first, and has erred by so much in the trials that it chose before
(expected improvement: Mockus, 1975). The record of these trials says how many of them were better
than all before; where none was, one more that is better is supposed to lie ahead, as Laplace's rule
of succession does, but a quarter of one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean

BETTER = 0.01  # the share of its time by which a candidate has to be faster to matter
HORIZON = 16  # trials that are looked ahead
LEVEL = 0.05  # the chance below which a search ends
HOPE = 0.3  # of its time that a function may lose by its first trial, before anything is known
RECENT = 96  # the last trials, by which the next ones are judged
LEAST = 16  # of them, all in vain, before the model is heard
NOISE = 0.003  # by which a time is off at least
SUPPOSED = 0.25  # of a better one beside those that were seen
BY = 0.03  # the share of its time by which that one is supposed to be better


@dataclass(frozen=True, slots=True)
class Outlook:
    """chance: that one of the next `HORIZON` trials is better by `BETTER`. gain: the share of its
    time that the function is expected to lose by the next trial. is_exhausted: all was tried.
    """

    chance: float
    gain: float
    is_exhausted: bool = False

    @property
    def is_over(self) -> bool:
        """Whether nothing better is likely."""
        return self.chance < LEVEL

    def __str__(self) -> str:
        if self.is_exhausted:
            return "the space is exhausted"
        return (
            f"nothing {BETTER:.0%} better is likely: the chance of it is {self.chance:.0%} in the "
            f"next {HORIZON} trials"
        )


NOTHING_LEFT = Outlook(0.0, 0.0, is_exhausted=True)


def hope(tried: int) -> float:
    """The share of its time that a function may lose by its next trial, by the number of trials
    alone: half of what can be found is found by twice as many trials.
    """
    return HOPE / (1 + tried) ** 2


@dataclass(frozen=True, slots=True)
class Pick:
    """A trial that the model chose. error: what it took over what was expected, gain: over the
    best before it, both logarithms; a gain is above 0 where it was better.
    """

    error: float
    gain: float


def outlook(expected: Sequence[float], picks: Sequence[Pick]) -> Outlook:
    """What candidates promise: expected is, of each, the logarithm of its time over the best one's.

    picks: the trials that the model chose so far.
    """
    if not expected:
        return NOTHING_LEFT
    recent = picks[-RECENT:]
    one, other = _by_record(recent), _by_model(sorted(expected)[:HORIZON], recent)
    return Outlook(min(one.chance, other.chance), min(one.gain, other.gain))


def _by_record(picks: Sequence[Pick]) -> Outlook:
    hits = sum(pick.gain > BETTER for pick in picks)
    each = (hits + SUPPOSED) / (len(picks) + SUPPOSED)
    gained = sum(max(0.0, pick.gain) for pick in picks)
    gain = (gained + SUPPOSED * BY) / (len(picks) + SUPPOSED)
    return Outlook(1.0 - (1.0 - each) ** HORIZON, gain)


def _by_model(expected: Sequence[float], picks: Sequence[Pick]) -> Outlook:
    if len(picks) < LEAST or any(pick.gain > BETTER for pick in picks[-LEAST:]):
        return Outlook(1.0, math.inf)
    errors = [pick.error for pick in picks]
    usual = fmean(errors)
    spread = math.sqrt(sum((error - usual) ** 2 for error in errors) / (len(errors) - 1))
    normal = NormalDist(0.0, max(spread, NOISE))
    over = [ratio + usual for ratio in expected]
    missed = math.prod(1.0 - normal.cdf(-BETTER - ratio) for ratio in over)
    gains = [normal.variance * normal.pdf(ratio) - ratio * normal.cdf(-ratio) for ratio in over]
    return Outlook(1.0 - missed, fmean(gains))
