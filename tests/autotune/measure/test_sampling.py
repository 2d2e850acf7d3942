from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from math import inf
from statistics import median

from tilewright.autotune.measure.sampling import MORE, take_turns


def clock(seconds: float, order: list[float]) -> Callable[[], float]:
    def sample() -> float:
        order.append(seconds)
        return seconds

    return sample


def test_each_round_begins_with_another_one() -> None:
    order: list[float] = []
    take_turns([clock(n, order) for n in (1.0, 1.01, 1.02)], 3, inf)
    assert order == [1.0, 1.01, 1.02, 1.01, 1.02, 1.0, 1.02, 1.0, 1.01]


def test_who_is_clearly_slower_gets_no_more_samples() -> None:
    order: list[float] = []
    taken = take_turns([clock(n, order) for n in (1.0, 1.1, 1.4, 2.0, 4.0)], 5, inf)
    assert [len(samples) for samples in taken] == [5, 5, 4, 3, 2]


def test_the_best_that_is_known_counts_too() -> None:
    taken = take_turns([clock(n, []) for n in (4.0, 1.0)], 5, 1.0)
    assert [len(samples) for samples in taken] == [2, 5]
    assert [len(samples) for samples in take_turns([clock(4.0, [])], 5, 1.0)] == [2]


def test_one_slow_sample_is_not_enough() -> None:
    """The fastest sample of a candidate is compared, and the first may be spoilt."""
    samples = iter([900.0, 1.0, 9.0, 9.0, 1.0])
    taken = take_turns([lambda: next(samples), lambda: 1.0], 5, inf)
    assert [len(samples) for samples in taken] == [5, 5]


def test_without_a_bar_all_stay() -> None:
    taken = take_turns([clock(n, []) for n in (1.0, 9.0)], 5, None)
    assert [len(samples) for samples in taken] == [5, 5]
    assert take_turns([], 5, None) == []


def test_the_default_is_never_dropped() -> None:
    taken = take_turns([clock(n, []) for n in (1.0, 4.0, 4.0)], 5, 1.0, default=1)
    assert [len(samples) for samples in taken] == [5, 5, 2]


def test_a_default_of_which_half_the_samples_were_held_up_gets_more() -> None:
    """What was seen in a log: of five samples three took ten times as long."""
    samples = iter([2.5, 0.36, 4.9, 3.7, 0.37, 0.36, 2.0, 0.37, 0.36])
    (taken,) = take_turns([lambda: next(samples)], 5, inf, default=0)
    assert median(taken) == 0.37
    assert len(taken) == 9


def test_a_default_that_never_settles_ends_all_the_same() -> None:
    samples = cycle([4.0, 1.0, 4.0])
    (taken,) = take_turns([lambda: next(samples)], 5, inf, default=0)
    assert len(taken) == MORE * 5


def test_in_a_session_all_have_as_many_samples() -> None:
    samples = cycle([4.0, 1.0, 4.0])
    taken = take_turns([lambda: next(samples), lambda: 1.0], 5, None, default=0)
    assert [len(each) for each in taken] == [5, 5]
