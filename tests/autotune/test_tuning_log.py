from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.autotune.log import LogWriter
from tilewright.autotune.record import Trial, Workload
from tilewright.autotune.tuning_log import TuningLog
from tilewright.runtime.host import host, host_target

from .samples import scaled, split_in, trial

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


@pytest.mark.needs_cc
def test_a_kernel_is_built_with_the_schedule_of_a_log(tmp_path: Path) -> None:
    known = log(tmp_path, here(trial(2)))
    kernel = tw.build(scaled(), schedules=known)
    assert "split" in kernel.source
    x = np.arange(64, dtype=np.float32)
    np.testing.assert_array_equal(kernel(x), 2 * x)
