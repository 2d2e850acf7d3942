from __future__ import annotations

import time

import pytest

from tilewright.runtime.machine import timing
from tilewright.runtime.machine.timing import (
    MIN_SAMPLE,
    Evictor,
    calibrate,
    compare,
    measure,
    seconds_text,
    summarise,
)


class Clock:
    """A clock that only moves when a call says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(timing, "perf_counter", lambda: self.now)

    def call(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.mark.parametrize("seconds", [1e-7, 3e-5, 4e-3])
def test_repeats_make_a_sample_last_a_millisecond(clock: Clock, seconds: float) -> None:
    repeats = calibrate(lambda: clock.call(seconds))
    assert repeats * seconds * 1.001 >= MIN_SAMPLE
    assert repeats == 1 or (repeats - 1) * seconds < MIN_SAMPLE * 1.001


def test_a_call_that_was_held_up_once_does_not_make_single_calls_of_samples(clock: Clock) -> None:
    """The first one warms up; the second one waits for another process."""
    taken = iter([4e-3, 4e-3])
    repeats = calibrate(lambda: clock.call(next(taken, 1e-5)))
    assert repeats == pytest.approx(100, abs=1)


def test_a_measurement_lasts_as_long_as_it_may(clock: Clock) -> None:
    found = measure(lambda: clock.call(1e-5), seconds=0.1)
    assert found.median == pytest.approx(1e-5)
    assert 90 <= len(found.samples) <= 101
    assert found.repeats == 100


def test_a_measurement_has_five_samples_at_least(clock: Clock) -> None:
    assert len(measure(lambda: clock.call(2.0), seconds=0.1).samples) == 5


def test_cold_samples_are_single_calls(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "Evictor", lambda: lambda: clock.call(7.0))
    found = measure(lambda: clock.call(1e-5), seconds=0.1, cache="cold")
    assert (found.repeats, found.cache) == (1, "cold")
    assert found.median == pytest.approx(1e-5)


def test_calls_that_are_compared_take_turns(clock: Clock) -> None:
    order: list[str] = []

    def call(name: str) -> None:
        order.append(name)
        clock.call(0.01)

    names = ("a", "b", "c")
    found = compare({name: lambda name=name: call(name) for name in names}, rounds=4)
    turns = order[-12:]
    assert turns == ["a", "b", "c", "b", "c", "a", "c", "a", "b", "a", "b", "c"]
    assert {name: len(found[name].samples) for name in names} == dict.fromkeys(names, 4)


def test_slow_calls_are_compared_five_times_however_long_that_takes(clock: Clock) -> None:
    calls = {"slow": lambda: clock.call(0.5), "fast": lambda: clock.call(0.001)}
    assert len(compare(calls, rounds=9, seconds=2.0)["slow"].samples) == 5
    assert len(compare(calls, rounds=9, seconds=60.0)["slow"].samples) == 9


def test_a_slow_call_is_warm_after_one(clock: Clock) -> None:
    began = clock.now
    assert calibrate(lambda: clock.call(0.5)) == 1
    assert clock.now - began == pytest.approx(0.5)


def test_the_interval_holds_the_median_and_narrows_with_samples() -> None:
    few = summarise([float(value) for value in range(7)])
    many = summarise([float(value) / 100 for value in range(700)])
    assert (few.low, few.median, few.high) == (0.0, 3.0, 6.0)
    assert many.high - many.low < 0.6 < few.high - few.low
    assert many.low <= many.median <= many.high
    assert summarise([2.0]).low == summarise([2.0]).high == 2.0


def test_one_slow_sample_moves_nothing() -> None:
    assert summarise([1.0] * 20 + [100.0]).high == 1.0


def test_the_interval_covers_the_true_median_about_as_often_as_it_says() -> None:
    values = [(number * 7919 + 13) % 1009 for number in range(25 * 400)]  # spread over 0..1008
    runs = [values[start : start + 25] for start in range(0, len(values), 25)]
    held = [found.low <= 504 <= found.high for found in map(summarise, runs)]
    assert sum(held) / len(held) >= 0.93


def test_real_time_is_measured() -> None:
    found = measure(lambda: time.sleep(0.002), seconds=0.02)
    assert 0.002 <= found.low <= found.median <= found.high


def test_an_evictor_touches_more_than_the_last_cache() -> None:
    evict = Evictor()
    began = time.perf_counter()
    evict()
    assert time.perf_counter() - began > 1e-5


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(2.5, "2.5 s"), (1.234e-3, "1.23 ms"), (9.87e-6, "9.87 us"), (42e-9, "42 ns")],
)
def test_durations_are_told_with_three_digits(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text


def test_a_timing_tells_its_state() -> None:
    assert str(summarise([1e-3, 2e-3, 3e-3], 4)) == "2 ms (1 ms to 3 ms, 3 samples, warm)"


def test_the_samples_of_a_timing_are_not_printed() -> None:
    found = summarise([1e-3, 2e-3, 3e-3], 4)
    assert repr(found) == str(found)
