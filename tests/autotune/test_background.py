from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest
from IPython.display import HTML

from tilewright.autotune.log.record import Trial
from tilewright.autotune.tune import tune
from tilewright.driver.tuning.errors import TuneError
from tilewright.runtime.machine.host import host_target

from .places.test_executors import Instant, right
from .samples import scaled
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


def test_a_notebook_follows_it_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, go, shown = threading.Event(), threading.Event(), list[str]()

    class Shown:
        def update(self, html: HTML) -> None:
            shown.append(str(html.data))

    def display(html: HTML, *, display_id: bool) -> Shown:
        shown.append(str(html.data))
        return Shown()

    def hold(trial: Trial) -> None:
        seen.set()
        assert go.wait(60)

    monkeypatch.setattr("IPython.display.display", display)
    monkeypatch.setattr("tilewright.autotune.background._SHOWN_EVERY", 0.05)
    tuning = tune(
        scaled(), TARGET, rule=in_parts, executor=Instant(right), callback=hold, background=True
    )
    assert seen.wait(60)
    tuning._ipython_display_()
    assert "<td>scaled 64</td><td>1</td><td>1</td>" in shown[0]
    assert "ended: it is still running" in shown[0]
    assert repr(tuning).startswith("Tuning, running:\nscaled: best ")
    go.set()
    ending = f"<p>{tuning.result(timeout=60).ending}</p>"
    for _ in range(600):
        if ending in shown[-1]:
            break
        time.sleep(0.05)
    assert ending in shown[-1]
    assert repr(tuning) == f"Tuning, ended:\n{tuning.result()}"


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
    assert repr(tuning).startswith(
        "Tuning, ended:\nscaled: nothing ran; 0 trials, 0 failed\nended: "
    )
    assert "TuneError: tune: there is no executor" in repr(tuning)


def test_what_cannot_be_tuned_is_refused_at_once() -> None:
    with pytest.raises(TuneError, match="runs nothing that can be timed"):
        tune(scaled(), "python", background=True)
