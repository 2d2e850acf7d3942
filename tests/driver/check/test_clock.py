"""driver/check/clock.py: parts add up, whoever timed them."""

from __future__ import annotations

import time

import pytest

from tilewright.driver.check.clock import Clock


def test_parts_of_one_name_add_up_in_the_order_of_their_first() -> None:
    clock = Clock()
    for name in ("lower", "check", "lower"):
        clock.lap(name)
    clock.add("before", 2.0)
    assert [name for name, _ in clock.laps] == ["lower", "check", "before"]
    assert dict(clock.laps)["before"] == 2.0


def test_what_was_timed_inside_of_a_part_is_not_counted_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = iter((10.0, 15.0))
    monkeypatch.setattr(time, "perf_counter", lambda: next(now))
    clock = Clock()
    clock.lap("lower", (("prove", 1.0), ("schedule", 2.5), ("prove", 0.5)))
    assert clock.laps == (("prove", 1.5), ("schedule", 2.5), ("lower", 1.0))
