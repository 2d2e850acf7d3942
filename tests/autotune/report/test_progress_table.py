from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tilewright.autotune.log.choice import choose
from tilewright.autotune.log.file import contents
from tilewright.autotune.log.record import Trial
from tilewright.autotune.log.setting import Setting
from tilewright.autotune.log.summary import summarise
from tilewright.autotune.report.bound import Limit, MachineBound, Roofs, roofs
from tilewright.autotune.report.progress_table import ProgressRow, ProgressTable
from tilewright.runtime.machine.host import host
from tilewright.schedule.rules.default import default_schedule
from tilewright.tir.target.target import Target

from ...schedule.programs import widened_matmul
from ..samples import scaled, trial, workload

KEY = workload().key


def test_rows_follow_the_trials() -> None:
    table = ProgressTable.of({KEY: (scaled(), 3)})
    assert table.add(trial(0, seconds=4e-6)) is not None
    assert table.add(trial(1, outcome="crashed")) is None
    assert table.add(trial(2, seconds=8e-6)) is None
    (row,) = table.all_rows
    assert table.add(trial(4, seconds=2e-6)) is row
    assert (row.name, row.places, row.trials, row.failed) == ("scaled 64", 3, 4, 1)
    assert (row.choice.default_seconds, row.choice.seconds, row.choice.gain) == (6e-6, 3e-6, 2.0)
    assert (table.trials, table.now) == (4, 4)


def test_what_is_found_after_a_session_awaits_the_next_one() -> None:
    """A candidate that is slower than the best one, but near the default."""
    lost = [
        replace(one, samples=(seconds,) * 6, method=replace(one.method, session="a"))
        for one, seconds in ((trial(0), 3.0e-6), (trial(1), 3.1e-6))
    ]
    trials = [trial(0, seconds=4e-6), trial(1, seconds=2e-6), *lost, trial(2, seconds=2.1e-6)]
    table = ProgressTable()
    for one in trials:
        table.add(one)
    (row,) = table.all_rows
    assert row.choice.awaiting == (trials[1], trials[-1])
    assert row.choice == choose(trials)


def test_what_was_known_before_is_no_trial_of_now() -> None:
    table = ProgressTable.of({KEY: (scaled(), 1)})
    table.resume([trial(0)], 1)
    assert (table.trials, table.now) == (1, 0)


def test_another_setting_has_a_row_of_its_own() -> None:
    table = ProgressTable.of({KEY: (scaled(), 3)})
    other = trial(1, seconds=1e-7)
    other = replace(other, conditions=replace(other.conditions, cpu="another CPU"))
    for one in (trial(2, outcome="wrong"), trial(0), other, trial(4)):
        table.add(one)
    assert [(row.trials, row.name, row.places) for row in reversed(table.all_rows)] == [
        (1, "scaled 64", 3),
        (3, "scaled 64", 3),
    ]
    warm = replace(trial(1), method=replace(trial(1).method, cache="warm"))
    table.add(warm)
    assert len(table.all_rows) == 3


def test_a_function_gets_its_name_when_its_record_comes() -> None:
    table = ProgressTable()
    table.add(trial(0))
    assert table.all_rows[0].name == "unnamed"
    table.add(workload())
    (row,) = table.all_rows
    assert row.name == "scaled 64"
    assert row.bound == MachineBound.of(scaled())
    table.add(replace(workload(32), text="no function"))
    assert len(table.all_rows) == 2


@pytest.mark.needs_cc
def test_the_share_of_the_limit_is_that_of_this_machine_alone() -> None:
    bound = MachineBound.of(scaled(1 << 20))
    assert (bound.operations, bound.constant_bytes, bound.other_bytes) == (1 << 20, 0, 1 << 23)
    assert bound.intensity == 0.125
    made = trial(0, seconds=1.0)
    assert bound.limit(made) is None
    mine = replace(made, conditions=replace(made.conditions, cpu=host().model))
    limit = bound.limit(mine)
    assert limit is not None
    assert limit.name == "memory"
    assert 0 < limit.seconds < 0.1  # 8 MiB
    row = ProgressRow("scaled", bound=bound)
    row.add(mine, Setting.of(mine.conditions))
    assert row.share == limit.seconds / 1.5
    probed = replace(mine, method=replace(mine.method, calibration=1e6))  # faster than any machine
    computing = replace(bound, operations=10**14, other_bytes=4)
    assert computing.limit(probed) == Limit(pytest.approx(0.1), "compute")
    row = ProgressRow("scaled", bound=bound)
    wrong = trial(0, outcome="wrong")
    row.add(wrong, Setting.of(wrong.conditions))
    assert row.share is None


def test_a_gpu_is_bound_by_tensor_cores_where_the_schedule_uses_them() -> None:
    a100 = Target.parse("cuda:sm_80")
    func = widened_matmul(2048, "float16")
    bound = MachineBound.of(func)
    conditions = replace(trial().conditions, target=a100.to_json(), cpu="NVIDIA A100-SXM4-80GB")
    on_units, without = (default_schedule(func, a100, strict=strict) for strict in (False, True))
    made = replace(trial(), conditions=conditions, trace=on_units.trace)
    seconds = 2 * 2048**3 / 1e9
    assert bound.limit(made) == Limit(pytest.approx(seconds / 312e3), "tensor core")
    plain = replace(made, trace=without.trace)
    assert bound.limit(plain) == Limit(pytest.approx(seconds / 19.5e3), "compute")
    assert bound.limit(replace(made, conditions=replace(conditions, cpu="NVIDIA A30"))) is None
    assert roofs([made]).peaks == {"": 19.5e3, "tensor core float16": 312e3}
    assert roofs([plain]) == Roofs({"": 19.5e3}, {"memory": 2039})


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(20))
def test_the_best_of_a_row_is_that_of_the_log(seed: int) -> None:
    """Trials alone and in sessions, in any order: the table and `log best` agree after each."""
    source = random.Random(seed)
    table, known = ProgressTable.of({KEY: (scaled(), 1)}), list[Trial]()
    for number in range(30):
        made = trial(source.randrange(4), seconds=source.uniform(1.0, 3.0) * 1e-6)
        outcome = source.choice(("ok", "ok", "ok", "crashed"))
        session = source.choice(("", "", "one", "two"))
        made = replace(
            made,
            outcome=outcome,
            samples=made.samples if outcome == "ok" else (),
            method=replace(made.method, session=session),
            time=f"2026-11-22T12:00:00.{number:06d}Z",
        )
        known.append(made)
        table.add(made)
        (row,), (entry,) = table.all_rows, summarise(contents(known))
        assert (row.choice.seconds, row.choice.default_seconds, row.choice.state) == (
            entry.choice.seconds, entry.choice.default_seconds, entry.choice.state,
        )  # fmt: skip
