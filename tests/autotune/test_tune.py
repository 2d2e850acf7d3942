from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tilewright.autotune.log.file import read_log
from tilewright.autotune.log.record import Trial
from tilewright.autotune.places import confirmation
from tilewright.autotune.tune import tune
from tilewright.driver.tuning.errors import TuneError
from tilewright.runtime.machine.host import host_target
from tilewright.schedule.schedule import Schedule
from tilewright.tir.target.target import Target

from .samples import scaled

pytestmark = pytest.mark.needs_cc
TARGET = replace(host_target(), threads=1)


@pytest.fixture(autouse=True)
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A confirmation round takes one process here, to be short."""
    monkeypatch.setattr(confirmation, "PROCESSES", 1)


def in_parts(sch: Schedule) -> None:
    (loop,) = sch.loops("y")
    _, lane = sch.split(loop, (None, int(sch.sample_categorical([4, 8, 16, 32]))))
    sch.unroll(lane)


def tried(history: Sequence[Trial]) -> set[tuple[object, ...]]:
    """What was tried on the way."""
    return {trial.decisions for trial in history if not trial.method.session}


def test_a_search_keeps_every_trial_and_says_why_it_ended(tmp_path: Path) -> None:
    log, told = tmp_path / "tune.jsonl", list[Trial]()
    result = tune(scaled(), TARGET, rule=in_parts, trials=8, log=log, callback=told.append)
    assert result.stopped_because == "the space is exhausted"
    assert tuple(told) == result.history == read_log(log).trials
    assert result.history[0].decisions == (4,)
    assert tried(result.history) == {(4,), (8,), (16,), (32,)}
    assert {trial.outcome for trial in result.history} == {"ok"}
    assert result.best in result.history
    assert result.best is not None
    assert result.best.method.session
    first, ended, *rest = str(result).splitlines()
    assert first.endswith(" trials, 0 failed")
    assert ended == "ended: the space is exhausted"
    assert rest[-1] == f"kept: every trial, in '{log}'; the same call goes on from there"
    assert repr(result) == str(result)
    html = result._repr_html_()
    assert "<td>scaled 64</td>" in html
    assert "<svg" in html
    assert "<p>ended: the space is exhausted</p><p>kept: every trial" in html


def test_what_a_log_holds_is_not_tried_again(tmp_path: Path) -> None:
    log = tmp_path / "tune.jsonl"
    first = tune(scaled(), TARGET, rule=in_parts, trials=2, log=log)
    assert first.stopped_because == "2 trials are done"
    whole = tune(scaled(), TARGET, rule=in_parts, log=log)
    assert len(tried(whole.history)) == 4
    assert whole.history[: len(first.history)] == first.history
    assert len(read_log(log).workloads) == 1


def test_ctrl_c_returns_what_there_is() -> None:
    def stop(trial: Trial) -> None:
        raise KeyboardInterrupt

    result = tune(scaled(), TARGET, rule=in_parts, callback=stop)
    assert result.stopped_because == "it was interrupted"
    assert str(result).endswith("ended: it was interrupted")
    assert len(result.history) == 1
    assert result.best == result.history[0]
    assert result.default_time == result.best.seconds


def test_a_target_that_runs_nothing_is_refused() -> None:
    with pytest.raises(TuneError) as refused:
        tune(scaled(), "python")
    assert str(refused.value) == (
        "TuneError: tune: target 'python' runs nothing that can be timed; expected 'c' or "
        "'cuda'. [tune-target]"
    )


def test_an_open_target_is_tuned_and_logged_as_this_machine(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    tune(scaled(), Target("c", threads=1), rule=in_parts, trials=1, log=log)
    (trial, *_) = read_log(log).trials
    assert trial.conditions.target == replace(host_target(), threads=1).to_json()


def test_functions_share_the_trials_by_what_they_promise() -> None:
    pairs = [(scaled(64), 1), (scaled(1 << 20), 10)]
    result = tune(pairs, TARGET, rule=in_parts, trials=6)
    small, large = result.functions
    assert result.stopped_because == "6 trials are done"
    assert result.best is None
    assert len(result.history) == len(small.history) + len(large.history)
    assert [len(tried(found.history)) for found in (small, large)] == [
        4,
        2,
    ]  # the first turns go round
    assert result.default_time is not None
    assert large.default_time is not None
    assert result.default_time > 10 * large.default_time


def without_effect(sch: Schedule) -> None:
    for name in ("one", "two", "three", "four"):
        sch.sample_categorical([1, 2, 3, 4, 5], name=name)


def test_a_search_ends_when_nothing_better_is_likely() -> None:
    result = tune(scaled(), TARGET, rule=without_effect, trials=600)
    assert re.fullmatch(
        r"an improvement of 1% is unlikely: its chance within the next 16 trials is \d+%",
        result.stopped_because,
    )
    assert 20 < len(tried(result.history)) < 120
