from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.autotune.log.conditions import conditions
from tilewright.autotune.log.file import LogWriter
from tilewright.autotune.log.record import Trial, Workload
from tilewright.autotune.tuning_log import UNCONFIRMED, TuningLog
from tilewright.driver.build import UntunedKernelError
from tilewright.driver.tuning.errors import TuneError
from tilewright.runtime.machine.host import host, host_target

from .samples import scaled, split_in, trial

pytestmark = pytest.mark.needs_cc
TARGET = host_target()


def here(made: Trial) -> Trial:
    """The trial as one of this machine."""
    conditions = replace(made.conditions, target=TARGET.to_json(), cpu=host().model)
    return replace(made, conditions=conditions)


def log(folder: Path, *trials: Trial) -> TuningLog:
    path = folder / "tune.jsonl"
    with LogWriter(path) as writer:
        writer.append(Workload.of(scaled()), *trials)
    return TuningLog(path)


def test_a_log_gives_the_fastest_schedule_and_its_time(tmp_path: Path) -> None:
    known = log(tmp_path, here(trial(0, seconds=3e-6)), here(trial(1, seconds=1e-6)))
    found = known.schedule(scaled(), TARGET)
    assert found is not None
    assert found.origin == "tuned"
    assert str(found) == str(split_in(64, 8))
    assert known.seconds(scaled(), TARGET) == 1.5e-6
    assert repr(known) == f"TuningLog('{tmp_path}/tune.jsonl': 1 workloads, 2 trials)"
    assert len(known) == 2


def test_a_log_knows_nothing_of_another_function(tmp_path: Path) -> None:
    known = log(tmp_path, here(trial(0)))
    assert known.schedule(scaled(32), TARGET) is None
    assert known.reason(scaled(32), TARGET) == "the log has it in other shapes or types alone"
    assert known.seconds(scaled(32), TARGET) is None


def test_a_schedule_of_another_machine_is_similar_and_has_no_time_here(tmp_path: Path) -> None:
    other = here(trial(1))
    other = replace(other, conditions=replace(other.conditions, cpu="another CPU"))
    known = log(tmp_path, other)
    found = known.schedule(scaled(), TARGET)
    assert found is not None
    assert found.origin == "similar"
    assert known.seconds(scaled(), TARGET) is None


def test_a_schedule_for_other_instructions_is_none(tmp_path: Path) -> None:
    made = here(trial(1))
    target = {**made.conditions.target, "isa": "neon"}
    known = log(tmp_path, replace(made, conditions=replace(made.conditions, target=target)))
    assert known.schedule(scaled(), TARGET) is None


def test_a_trace_that_cannot_be_replayed_is_passed_over(tmp_path: Path) -> None:
    made = here(trial(1))
    step = replace(made.trace.steps[1], primitive="no_such_primitive")
    trace = replace(made.trace, steps=(made.trace.steps[0], step))
    assert log(tmp_path, replace(made, trace=trace)).schedule(scaled(), TARGET) is None


def test_a_kernel_is_built_with_the_schedule_of_a_log(tmp_path: Path) -> None:
    known = log(tmp_path, here(trial(2)))
    kernel = tw.build(scaled(), schedules=known)
    assert "split" in kernel.source
    x = np.arange(64, dtype=np.float32)
    np.testing.assert_array_equal(kernel(x), 2 * x)


def test_a_kernel_says_whether_it_is_tuned_and_why_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tuned = log(tmp_path / "tuned", replace(trial(2), conditions=conditions(TARGET)))
    elsewhere = replace(conditions(TARGET), cpu="another CPU")
    similar = log(tmp_path / "similar", replace(trial(2), conditions=elsewhere))
    kernel = tw.build(scaled(), schedules=tuned, require_tuned=True)
    assert (kernel.tuning, kernel.notes) == (f"tuned: {UNCONFIRMED}", ())
    assert pickle.loads(pickle.dumps(kernel)).tuning == kernel.tuning
    assert tw.build(scaled()).tuning == "default: no schedules were given"
    assert tw.build(split_in(64, 8)).tuning == "by hand"
    assert tw.build(scaled(), "python").tuning == "default: an interpreter takes no schedule"
    assert not caplog.records

    other = tw.build(scaled(32), schedules=tuned)
    assert other.tuning == "default: the log has it in other shapes or types alone"
    assert other.notes == (f"schedule: {other.tuning}",)
    near = tw.build(scaled(), schedules=similar)
    why = f"CPU 'another CPU', not '{host().model}'; {UNCONFIRMED}"
    assert near.tuning == f"similar: {why}"
    assert [record.getMessage() for record in caplog.records] == [
        f"'scaled' has no schedule that was tuned here: {one.tuning}" for one in (other, near)
    ]


@pytest.mark.parametrize("length", [32, 64])
def test_a_kernel_that_is_not_tuned_is_refused_where_that_is_asked_for(
    tmp_path: Path, length: int
) -> None:
    elsewhere = replace(conditions(TARGET), cpu="another CPU")
    similar = log(tmp_path, replace(trial(2), conditions=elsewhere))
    why = {
        32: "default: the log has it in other shapes or types alone",
        64: f"similar: CPU 'another CPU', not '{host().model}'; {UNCONFIRMED}",
    }
    with pytest.raises(UntunedKernelError) as caught:
        tw.build(scaled(length), schedules=similar, require_tuned=True)
    assert str(caught.value) == (
        f"UntunedKernelError: build: 'scaled' has no schedule that was tuned here: it is "
        f"{why[length]}. [build-untuned]\n"
        "  Hint: tw.tune(func, log=path) tunes it, schedules=tw.TuningLog(path) builds with that; "
        "or leave out require_tuned=True."
    )


def test_times_of_two_code_generators_are_not_compared(tmp_path: Path) -> None:
    ours = conditions(TARGET)
    mine = replace(trial(1, seconds=3e-6), conditions=ours)
    older = replace(trial(2, seconds=1e-6), conditions=replace(ours, tool="0.0.1"))
    known = log(tmp_path, older, mine)
    assert known.seconds(scaled(), TARGET) == 4.5e-6
    assert known.advice(scaled(), TARGET).trial == mine
    alone = log(tmp_path / "older", older)
    found = alone.advice(scaled(), TARGET)
    assert (found.origin, found.why) == (
        "tuned",
        f"tilewright '0.0.1', not '0.1.0'; {UNCONFIRMED}",
    )
    assert alone.seconds(scaled(), TARGET) == 1.5e-6  # better known from then than guessed


def test_of_two_cache_states_the_cold_one_is_the_one_to_go_by(tmp_path: Path) -> None:
    cold = replace(trial(1, seconds=3e-6), conditions=conditions(TARGET))
    warm = replace(trial(2, seconds=1e-6), conditions=conditions(TARGET))
    warm = replace(warm, method=replace(warm.method, cache="warm"))
    known = log(tmp_path, warm, cold)
    assert known.advice(scaled(), TARGET).trial == cold
    assert known.seconds(scaled(), TARGET) == 4.5e-6


def test_advice_says_why_there_is_none(tmp_path: Path) -> None:
    ours = conditions(TARGET)
    failed = replace(trial(0, outcome="wrong"), conditions=ours)
    foreign = replace(trial(1), conditions=replace(ours, target={**ours.target, "isa": "neon"}))
    step = replace(trial(1).trace.steps[1], primitive="no_such_primitive")
    stale = replace(trial(1), conditions=ours, trace=replace(trial(1).trace, steps=(step,)))

    def why(name: str, *trials: Trial) -> str:
        found = log(tmp_path / name, *trials).advice(scaled(), TARGET)
        assert (found.schedule, found.origin, found.trial) == (None, "rule", None)
        return found.why

    here = log(tmp_path / "here", replace(trial(1), conditions=ours))
    assert here.reason(scaled(), TARGET) == UNCONFIRMED
    assert why("none") == "the log has no trial of it"
    assert why("failed", failed) == "all of its 1 trials failed"
    assert why("foreign", foreign, failed) == "it was tuned for other instructions"
    assert why("stale", stale).startswith("its schedule can no longer be replayed: ")


def test_a_notebook_shows_a_table_for_each_setting(tmp_path: Path) -> None:
    other = replace(trial(1), conditions=replace(trial(1).conditions, cpu="another CPU"))
    html = log(tmp_path, trial(0), other)._repr_html_()
    assert "1 workloads, 2 trials" in html
    assert html.count("<table>") == 2
    assert "another CPU, c:avx512, 2 threads, cold constants" in html


def test_a_log_draws_itself_or_one_of_its_functions(tmp_path: Path) -> None:
    path = tmp_path / "tune.jsonl"
    with LogWriter(path) as writer:
        writer.append(Workload.of(scaled(32)), trial(0, n=32), trial(1, n=32))
    known = log(tmp_path, trial(0), trial(1))
    assert known.figure().get_suptitle().startswith("2 functions on A CPU")
    assert known.figure(scaled()).get_suptitle().startswith("scaled 64: 2 trials")
    with pytest.raises(TuneError, match="the log holds no trial that ran"):
        known.figure(scaled(128))
