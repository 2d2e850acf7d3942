"""Budgets, seen with workers that answer at once and a clock of the tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tilewright.autotune import run
from tilewright.autotune.measure.jobs import Job, Reply
from tilewright.autotune.places.executors import Elsewhere
from tilewright.autotune.result import TuneResult
from tilewright.autotune.tune import tune
from tilewright.runtime.machine.host import host_target

from .places.test_executors import Instant, right
from .samples import scaled
from .test_tune import in_parts

TARGET = replace(host_target(), threads=1)
SIZES = (64, 128, 256)


class Clock:
    """Stands still but for a second that each job takes."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.confirmed = list[str]()
        self._defaults = dict[str, str]()

    def __call__(self) -> float:
        return self.seconds

    def answer(self, job: Job) -> bytes:
        """Candidates other than the default are faster, the more so the larger the function."""
        if not job.candidates:  # it asks for the conditions alone
            return right(job)
        self.seconds += 1.0
        if job.is_final:
            self.confirmed.append(job.func)
        default = self._defaults.setdefault(job.func, job.candidates[0].source)
        rival = 0.8 if "[64]" in job.func else 0.5
        shares = [1.0 if one.source == default else rival for one in job.candidates]
        reply = Reply.decode(right(job))
        results = (
            replace(one, samples=tuple(share * sample for sample in one.samples))
            for one, share in zip(reply.results, shares, strict=True)
        )
        return Reply(reply.conditions, tuple(results)).encode()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(run, "perf_counter", made)
    monkeypatch.setattr(Elsewhere, "slots", 1)
    return made


def search(clock: Clock, seconds: float, sizes: Sequence[int] = SIZES) -> TuneResult:
    pairs = [(scaled(size), 1) for size in sizes]
    return tune(pairs, TARGET, rule=in_parts, seconds=seconds, executor=Instant(clock.answer))


def test_the_search_leaves_time_for_confirmation(clock: Clock) -> None:
    result = search(clock, 8.5, range(64, 76))
    assert result.stopped_because == "8.5 seconds are over"
    assert result.awaiting
    assert len(clock.confirmed) == 2  # of a budget of which a search alone would leave nothing


def test_every_function_is_confirmed_where_there_is_time(clock: Clock) -> None:
    result = search(clock, seconds=100.0)
    assert result.stopped_because == "the space is exhausted"
    assert len(clock.confirmed) == len(SIZES) * 7


def test_confirmation_ends_with_the_budget_and_functions_left_out_are_counted(clock: Clock) -> None:
    result = search(clock, 14.0, SIZES[::-1])
    assert 14.0 <= clock.seconds <= 15.0  # what was under way has ended
    assert result.stopped_because == "the space is exhausted"
    assert len(result.awaiting) == 2
    assert "\nnot confirmed yet: scaled, scaled" in str(result)
    assert "[64]" not in clock.confirmed[0]  # most is saved elsewhere


def test_a_function_whose_default_is_far_ahead_is_not_confirmed(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tilewright.autotune.log.choice.NEAR", 0.1)
    assert search(clock, seconds=100.0).stopped_because == "the space is exhausted"
    assert not clock.confirmed
