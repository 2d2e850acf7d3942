from __future__ import annotations

from dataclasses import replace

import pytest

from tilewright.autotune.log.record import Trial
from tilewright.autotune.model.model_fit import ModelFit, model_fit
from tilewright.schedule.schedule import Schedule

from ..samples import scaled, trial, workload


def timed(part: int, seconds: float) -> Trial:
    """A trial of a schedule that splits into parts."""
    sch = Schedule(scaled())
    (loop,) = sch.loops("y")
    _, inner = sch.split(loop, (None, part))
    if part % 2:
        sch.unroll(inner)
    return replace(trial(0), trace=sch.trace, samples=(seconds,))


def test_a_model_knows_times_that_follow_from_the_nest() -> None:
    trials = [timed(part, 1e-6 * (1 + part % 2)) for part in range(2, 34)]
    fit = model_fit(workload(), trials)
    assert fit is not None
    assert fit.measured == tuple(one.seconds for one in trials)
    assert fit.rank_correlation > 0.8
    assert fit.error < 0.1
    assert fit == model_fit(workload(), trials)


def test_trials_that_failed_took_turns_or_no_longer_replay_are_left_out() -> None:
    trials = [timed(part, 1e-6 * part) for part in range(2, 18)]
    step = replace(trials[0].trace.steps[0], primitive="no_such_primitive")
    others = [
        trial(1, outcome="wrong"),
        replace(trials[0], method=replace(trials[0].method, session="a")),
        replace(trials[0], trace=replace(trials[0].trace, steps=(step,))),
    ]
    assert model_fit(workload(), [*others, *trials]) == model_fit(workload(), trials)
    assert model_fit(workload(), [*others, *trials[1:]]) is None


def test_a_correlation_is_one_of_ranks() -> None:
    assert ModelFit((1.0, 2.0, 3.0), (1.0, 10.0, 11.0)).rank_correlation == pytest.approx(1.0)
    assert ModelFit((1.0, 2.0, 3.0), (3.0, 2.0, 1.0)).rank_correlation == pytest.approx(-1.0)
    assert ModelFit((1.0, 2.0, 2.0), (1.0, 2.0, 2.0)).rank_correlation == pytest.approx(1.0)
    assert ModelFit((1.0, 1.0), (1.0, 2.0)).rank_correlation == 0.0
    assert ModelFit((2.0, 2.0, 2.0), (1.0, 1.0, 1.0)).error == pytest.approx(1.0)
