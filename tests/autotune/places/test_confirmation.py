"""Confirmation rounds on a simulated clock: with noise, spikes, drift and luck per process."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tilewright.autotune.log.choice import LEVEL, choose
from tilewright.autotune.log.disturbance import note_of
from tilewright.autotune.log.record import Trial
from tilewright.autotune.measure.jobs import Result
from tilewright.autotune.places import confirmation
from tilewright.autotune.places.confirmation import Confirmation, rounds_of

from ..samples import trial

SEEDS = 1000
MADE = [trial(number) for number in range(5)]


class Clock:
    """Tells what calls take on a machine that nobody would wish for."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._drift = 1.0

    def process(self, true: list[float], rounds: int) -> list[Result]:
        """The samples of kernels of such true times, in one process."""
        luck = [self._random.lognormvariate(0, 0.01) for _ in true]
        taken: list[list[float]] = [[] for _ in true]
        for _ in range(rounds):
            self._drift *= self._random.lognormvariate(0, 0.03)
            for number, seconds in enumerate(true):
                noise = self._random.lognormvariate(0, 0.02)
                spike = 1 + 2 * self._random.random() if self._random.random() < 0.05 else 1
                taken[number].append(seconds * luck[number] * self._drift * noise * spike)
        return [Result("ok", samples=tuple(samples)) for samples in taken]


def verdict(true: list[float], seed: int) -> int:
    """The number of the kernel that is chosen; 0: the default."""
    clock, played = Clock(seed), Confirmation.of(len(true))
    while not played.is_over:
        played.take(clock.process([true[n] for n in played.staying], confirmation.ROUNDS))
    trials = [recorded(played, number) for number in range(len(true))]
    best = choose(trials).best
    assert best is not None
    return trials.index(best)


def recorded(played: Confirmation, number: int) -> Trial:
    made = MADE[number]
    method = replace(made.method, session="a", processes=played.processes[number])
    return replace(made, samples=played.results[number].samples, method=method)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("rivals", [1, 4])
def test_equal_kernels_tie_and_the_default_stays(rivals: int) -> None:
    """Of 1,000 searches at most as many as the stated level end with a false winner."""
    false = sum(verdict([1.0] * (1 + rivals), seed) != 0 for seed in range(SEEDS))
    assert false <= LEVEL * SEEDS


def test_a_kernel_that_is_a_tenth_faster_is_found() -> None:
    found = [verdict([1.0, 1.02, 0.9, 1.0], seed) for seed in range(100)]
    assert found.count(2) >= 95


def test_the_luck_of_the_first_place_wins_nothing() -> None:
    played = Confirmation.of(2)
    while not played.is_over:
        played.take([result(0.9), result(1.0)])
    assert played.processes[0] < confirmation.PROCESSES


def test_a_slower_kernel_never_wins() -> None:
    assert {verdict([1.0, 1.1], seed) for seed in range(100)} == {0}


def test_a_finalist_that_loses_a_process_is_out_and_a_tie_is_cheap() -> None:
    played = Confirmation.of(3)
    played.take([result(1.0), result(0.9), result(1.1)])
    assert played.staying == (1, 0)
    played.take([result(1.1), result(1.0)])
    assert played.is_over
    assert played.processes == [2, 2, 1]
    assert played.results[1].samples == (0.9, 0.9, 1.1, 1.1)


def test_without_a_default_that_runs_there_is_nothing_to_compare_with() -> None:
    played = Confirmation.of(2)
    played.take([Result("crashed", "SIGSEGV"), result(0.9)])
    assert played.is_over
    assert played.results[0].text == "SIGSEGV"


def test_slow_kernels_get_fewer_rounds() -> None:
    assert [rounds_of([each] * 2) for each in (1e-3, 0.1, 5.0)] == [9, 5, 3]


def result(seconds: float) -> Result:
    return Result("ok", samples=(seconds, seconds))


def test_a_disturbed_process_is_repeated_until_the_machine_is_calm() -> None:
    noisy = [replace(result(seconds), text=note_of(0.5)) for seconds in (1.0, 9.0)]
    played = Confirmation.of(2)
    played.take(noisy)
    assert (played.processes, played.repeats, played.is_over) == ([0, 0], 1, False)
    while not played.is_over:
        played.take([result(1.0), result(0.9)][:: 1 if played.staying[0] == 0 else -1])
    assert played.processes == [7, 7]
    assert played.results[0].text == ""


def test_what_stays_disturbed_counts_in_the_end_and_is_marked() -> None:
    noisy = [replace(result(1.0), text=note_of(0.5))] * 2
    played = Confirmation.of(2)
    while not played.is_over:
        played.take(noisy)
    assert (played.repeats, played.processes) == (confirmation.REPEATS, [1, 1])
    assert played.results[1].text == note_of(0.5)


def test_a_process_in_which_one_finalist_was_disturbed_is_repeated() -> None:
    played = Confirmation.of(2)
    played.take([result(1.0), replace(result(9.0), text=note_of(0.5))])
    assert (played.processes, played.repeats) == ([0, 0], 1)


def test_a_mark_stays_when_the_machine_is_calm_again() -> None:
    played = Confirmation.of(2)
    for seconds in [0.9] * (confirmation.REPEATS + 1):
        played.take([replace(result(each), text=note_of(0.5)) for each in (1.0, seconds)])
    assert played.processes == [1, 1]
    played.take([result(0.9), result(1.0)])
    assert (played.processes, played.results[1].text) == ([2, 2], note_of(0.5))
