"""Expected improvement: how likely one of the next trials is to be better, and by how much on
average.

There are two estimates, and the smaller one is taken. The cost model predicts the candidates that
it ranks first, and its errors in earlier picks give the spread of a prediction (expected
improvement: Mockus, 1975). The history of these picks says how many of them beat everything before;
a prior of a quarter of one such pick keeps the estimate above zero (Laplace's rule of succession).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean

MIN_GAIN = 0.01  # the share of its time by which a candidate must be faster to matter
HORIZON = 16  # trials that are looked ahead
MIN_CHANCE = 0.05  # a search ends below it
FIRST_GAIN = 0.3  # of a function's time, expected of its first trial
RECENT = 96  # the last picks, from which the next ones are estimated
MIN_PICKS = 16  # that gained nothing, before the model's estimate is used
NOISE = 0.003  # the least standard deviation of a prediction, a logarithm
PRIOR_HITS = 0.25  # picks that were better, beside those that were observed
PRIOR_GAIN = 0.03  # the share of the time that such a pick gains


@dataclass(frozen=True, slots=True)
class ExpectedImprovement:
    """chance: that one of the next `HORIZON` trials is better by `MIN_GAIN`. gain: the share of its
    time that the function is expected to lose by the next trial. is_exhausted: the whole space was
    tried.
    """

    chance: float
    gain: float
    is_exhausted: bool = False

    @property
    def is_negligible(self) -> bool:
        """Whether nothing better is likely."""
        return self.chance < MIN_CHANCE

    def __str__(self) -> str:
        if self.is_exhausted:
            return "the space is exhausted"
        return (
            f"an improvement of {MIN_GAIN:.0%} is unlikely: its chance within the next {HORIZON} "
            f"trials is {self.chance:.0%}"
        )


NOTHING_LEFT = ExpectedImprovement(0.0, 0.0, is_exhausted=True)
REPETITION = ExpectedImprovement(1.0, math.inf)  # of what a busy machine measured: it comes first


def gain_by_count(tried: int) -> float:
    """The expected gain of the next trial, from the number of trials alone: each doubling of the
    trials finds half of what is left.
    """
    return FIRST_GAIN / (1 + tried) ** 2


@dataclass(frozen=True, slots=True)
class Pick:
    """A trial that the model chose. error: the logarithm of its time over the prediction; gain: of
    the best time before it over its own, above 0 where it was better.
    """

    error: float
    gain: float


def expected_improvement(expected: Sequence[float], picks: Sequence[Pick]) -> ExpectedImprovement:
    """The improvement that a pool of candidates promises. expected: for each candidate, the
    logarithm of its predicted time over the best time.

    picks: the trials that the model chose so far.
    """
    if not expected:
        return NOTHING_LEFT
    recent = picks[-RECENT:]
    one, other = _from_history(recent), _from_model(sorted(expected)[:HORIZON], recent)
    return ExpectedImprovement(min(one.chance, other.chance), min(one.gain, other.gain))


def _from_history(picks: Sequence[Pick]) -> ExpectedImprovement:
    hits = sum(pick.gain > MIN_GAIN for pick in picks)
    each = (hits + PRIOR_HITS) / (len(picks) + PRIOR_HITS)
    gained = sum(max(0.0, pick.gain) for pick in picks)
    gain = (gained + PRIOR_HITS * PRIOR_GAIN) / (len(picks) + PRIOR_HITS)
    return ExpectedImprovement(1.0 - (1.0 - each) ** HORIZON, gain)


def _from_model(expected: Sequence[float], picks: Sequence[Pick]) -> ExpectedImprovement:
    if len(picks) < MIN_PICKS or any(pick.gain > MIN_GAIN for pick in picks[-MIN_PICKS:]):
        return ExpectedImprovement(1.0, math.inf)
    errors = [pick.error for pick in picks]
    bias = fmean(errors)
    spread = math.sqrt(sum((error - bias) ** 2 for error in errors) / (len(errors) - 1))
    normal = NormalDist(0.0, max(spread, NOISE))
    over = [ratio + bias for ratio in expected]
    missed = math.prod(1.0 - normal.cdf(-MIN_GAIN - ratio) for ratio in over)
    gains = [normal.variance * normal.pdf(ratio) - ratio * normal.cdf(-ratio) for ratio in over]
    return ExpectedImprovement(1.0 - missed, fmean(gains))
