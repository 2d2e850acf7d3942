from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from tilewright.autotune.errors import TuneError
from tilewright.autotune.record import Trial
from tilewright.autotune.tune import tune
from tilewright.runtime.host import host_target

from .samples import scaled
from .test_executors import Instant, right
from .test_tune import in_parts

TARGET = replace(host_target(), threads=1)


def test_a_search_in_the_background_tells_what_it_found_so_far_and_can_be_stopped() -> None:
    seen, go = threading.Event(), threading.Event()

    def wait(trial: Trial) -> None:
        seen.set()
        assert go.wait(60)

    pairs = [(scaled(64), 1), (scaled(128), 1)]
    tuning = tune(
        pairs, TARGET, rule=in_parts, executor=Instant(right), callback=wait, background=True
    )
    assert seen.wait(60)
    assert tuning.is_running
    assert tuning.so_far.stopped_because == "it is still running"
    assert len(tuning.so_far.history) == 1
    with pytest.raises(TimeoutError):
        tuning.result(timeout=0.01)
    tuning.stop()
    go.set()
    result = tuning.result(timeout=60)
    assert result.stopped_because == "it was stopped"
    assert not tuning.is_running
    assert tuning.so_far is result
    assert not any(trial.method.session for trial in result.history)


def test_an_event_that_is_set_ends_a_search() -> None:
    stop, trials = threading.Event(), list[Trial]()

    def count(trial: Trial) -> None:
        trials.append(trial)
        stop.set()

    result = tune(
        scaled(), TARGET, rule=in_parts, executor=Instant(right), callback=count, stop=stop
    )
    assert result.stopped_because == "it was stopped"
    assert result.history == tuple(trials)


def test_what_goes_wrong_in_the_background_is_raised_by_its_result() -> None:
    tuning = tune(scaled(), TARGET, executor="nowhere", background=True)
    with pytest.raises(TuneError, match="there is no executor 'nowhere'"):
        tuning.result(timeout=60)


def test_what_cannot_be_tuned_is_refused_at_once() -> None:
    with pytest.raises(TuneError, match="runs nothing that can be timed"):
        tune(scaled(), "python", background=True)
