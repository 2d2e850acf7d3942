from __future__ import annotations

import pytest

from tilewright.autotune.measure.drift import DriftMonitor

STEADY = (100.0, 101.0)


def test_a_machine_at_rest_is_accepted() -> None:
    monitor = DriftMonitor()
    for rate in (100.0, 103.0, 98.0):
        assert monitor.accepts((rate, rate + 1), 1.0)


def test_a_drift_of_more_than_a_twentieth_is_measured_again() -> None:
    monitor = DriftMonitor()
    assert monitor.accepts(STEADY, 1.0)
    assert monitor.drift((80.0, 100.0)) == pytest.approx(0.2, abs=0.01)
    assert not monitor.accepts((100.0, 80.0), 0.1)
    assert monitor.accepts(STEADY, 1.0)


def test_a_drift_within_the_first_window_is_seen() -> None:
    assert not DriftMonitor().accepts((100.0, 50.0), 0.1)


def test_pauses_grow_until_the_machine_rests() -> None:
    monitor = DriftMonitor()
    assert [monitor.pause() for _ in range(6)] == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0]
    assert monitor.accepts(STEADY, 1.0)
    assert monitor.pause() == 0.2


def test_a_machine_that_never_rests_costs_a_tenth_of_the_time() -> None:
    monitor, seconds, lost = DriftMonitor(), 0.0, 0.0
    for number in range(1000):
        rate = 100.0 if number % 2 else 50.0
        while not monitor.accepts((rate, rate), 0.1):
            lost += 0.1 + monitor.pause()
        seconds += 0.1
    assert lost <= 2.0 + 0.1 * seconds


def test_another_speed_that_stays_becomes_the_usual_one() -> None:
    monitor = DriftMonitor()
    for rate in (100.0,) * 5 + (70.0,) * 10:
        while not monitor.accepts((rate, rate), 1.0):
            monitor.pause()
    assert monitor.drift((70.0, 70.0)) == 0.0
