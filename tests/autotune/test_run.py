"""Budgets, seen with workers that answer at once and a clock of the tests."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event
from time import perf_counter, sleep
from unittest.mock import patch

import pytest

from tilewright.autotune import run
from tilewright.autotune.log.disturbance import note_of
from tilewright.autotune.log.record import Conditions, Trial
from tilewright.autotune.measure.jobs import Job, Reply
from tilewright.autotune.options import TuneArguments
from tilewright.autotune.places.confirmation import REPEATS
from tilewright.autotune.places.executors import Elsewhere
from tilewright.autotune.result import TuneResult
from tilewright.autotune.tune import tune
from tilewright.runtime.machine.host import host_target
from tilewright.schedule.schedule import Schedule
from tilewright.tir.json_reader import Json

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
        self.finals = list[bool]()
        self._defaults = dict[str, str]()

    def __call__(self) -> float:
        return self.seconds

    def answer(self, job: Job) -> bytes:
        """Candidates other than the default are faster, the more so the larger the function."""
        if not job.candidates:  # it asks for the conditions alone
            return right(job)
        self.seconds += 1.0
        self.finals.append(job.is_final)
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


def test_confirmation_waits_for_the_trials_that_are_being_measured(clock: Clock) -> None:
    """Two jobs at a time: the last batch is under way when the trials are spent."""
    pool = ThreadPoolExecutor(1)  # the other job waits
    later = Executor()
    later.submit = lambda _, data: pool.submit(answer, data)  # type: ignore[method-assign]

    def answer(data: bytes) -> bytes:
        sleep(0.05)
        return clock.answer(Job.decode(data))

    with pool, patch.object(Elsewhere, "slots", 2):
        result = tune(scaled(1 << 20), TARGET, rule=by_extent, trials=8, executor=later)
    assert result.stopped_because == "8 trials are done"
    assert result.awaiting == ()


def by_extent(sch: Schedule) -> None:
    """A space that grows with the function."""
    (loop,) = sch.loops("y")
    extent = sch.func.outputs[0].shape[0]
    sizes = [1 << n for n in range(2, extent.bit_length())]
    sch.split(loop, (None, int(sch.sample_categorical(sizes))))


def test_a_function_is_confirmed_as_soon_as_its_search_settles(clock: Clock) -> None:
    """The small space is exhausted long before the large one."""
    pairs = [(scaled(32), 10**9), (scaled(1 << 20), 1)]
    tune(pairs, TARGET, rule=by_extent, seconds=100.0, executor=Instant(clock.answer))
    assert False in clock.finals[clock.finals.index(True) :]
    assert "[32]" in clock.confirmed[0]


def test_what_was_stopped_is_confirmed_first_when_it_goes_on(clock: Clock, tmp_path: Path) -> None:
    stop, log = Event(), tmp_path / "a.jsonl"
    options = TuneArguments(rule=in_parts, executor=Instant(clock.answer), log=log)
    pairs = [(scaled(size), 1) for size in SIZES]
    tried = list[Trial]()

    def take(trial: Trial) -> None:
        tried.append(trial)
        if len(tried) == 5:
            stop.set()

    result = tune(pairs, TARGET, **options, callback=take, stop=stop)
    assert result.stopped_because == "it was stopped"
    assert len(result.awaiting) == 2
    assert not any(clock.finals)
    clock.finals.clear()
    assert not tune(pairs, TARGET, **options).awaiting
    assert clock.finals[:7] == [True] * 7


def test_without_trials_only_what_awaits_it_is_confirmed(clock: Clock, tmp_path: Path) -> None:
    stop, log = Event(), tmp_path / "a.jsonl"
    options = TuneArguments(rule=in_parts, executor=Instant(clock.answer), log=log)
    tune(scaled(), TARGET, **options, callback=lambda trial: stop.set(), stop=stop)
    clock.finals.clear()
    result = tune(scaled(), TARGET, **options, trials=0)
    assert result.stopped_because == "nothing new was to be tried"
    assert clock.finals == [True] * 7
    assert result.functions[0].choice.state == "confirmed"


def test_what_a_disturbance_leaves_undecided_is_confirmed_once_in_a_search(
    clock: Clock, tmp_path: Path
) -> None:
    def answer(job: Job) -> bytes:
        reply = Reply.decode(clock.answer(job))
        if not job.is_final:
            return reply.encode()
        tied = tuple(replace(one, samples=(1.0,), text=note_of(0.5)) for one in reply.results)
        return Reply(reply.conditions, tied).encode()

    log = tmp_path / "a.jsonl"
    options = TuneArguments(rule=in_parts, seconds=100.0, log=log)
    told = list[dict[str, Json]]()
    result = tune(scaled(), TARGET, **options, executor=Instant(answer), events=told.append)
    assert result.stopped_because == "the space is exhausted"
    assert result.awaiting
    assert len(clock.confirmed) == REPEATS + 1
    (found,) = result.functions
    assert (found.choice.state, found.best) == ("undecided", found.choice.default)
    assert "\nundecided: scaled: the machine was busy during its confirmation: the " in str(result)
    assert "not confirmed yet" not in str(result)
    last = [event for event in told if event["event"] == "best"][-1]
    assert (last["state"], last["why"]) == ("undecided", found.choice.why)
    clock.confirmed.clear()
    (found,) = tune(scaled(), TARGET, **options, executor=Instant(clock.answer)).functions
    assert (found.choice.state, len(clock.confirmed)) == ("confirmed", 7)


def test_what_is_undecided_is_confirmed_before_what_saves_more(
    clock: Clock, tmp_path: Path
) -> None:
    """The large function saves more, and was never confirmed; the small one was disturbed."""
    log = tmp_path / "a.jsonl"
    options = TuneArguments(rule=in_parts, log=log)

    def answer(job: Job) -> bytes:
        reply = Reply.decode(clock.answer(job))
        if not job.is_final:
            return reply.encode()
        tied = tuple(replace(one, samples=(1.0,), text=note_of(0.5)) for one in reply.results)
        return Reply(reply.conditions, tied).encode()

    tune(scaled(64), TARGET, **options, executor=Instant(answer))
    stop = Event()

    def take(trial: Trial) -> None:
        if trial.seconds and not trial.is_default:
            stop.set()

    tune(scaled(256), TARGET, **options, executor=Instant(clock.answer), callback=take, stop=stop)
    clock.confirmed.clear()
    pairs = [(scaled(256), 1000), (scaled(64), 1)]
    result = tune(pairs, TARGET, **options, trials=0, executor=Instant(clock.answer))
    assert not result.awaiting
    assert ["[64]" in func for func in clock.confirmed] == [True] * 7 + [False] * 7


def test_what_is_being_measured_does_not_delay_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that never answers: the search ends with its budget all the same."""
    monkeypatch.setattr(Elsewhere, "slots", 1)
    hung = Executor()
    hung.submit = lambda *_: Future()  # type: ignore[method-assign]
    first = Conditions(TARGET.to_json(), "cpu", "cc", (), "0")
    monkeypatch.setattr(Elsewhere, "conditions", lambda *_: first)
    began = perf_counter()
    result = tune(scaled(), TARGET, rule=in_parts, seconds=1.0, executor=hung)
    assert result.stopped_because == "1 seconds are over"
    assert perf_counter() - began < 5.0
