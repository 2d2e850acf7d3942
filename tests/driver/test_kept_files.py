"""An engine, a tuning log and a trace of 24 November 2026, before modules moved to rooms and
primitives were declared: they load, run and replay as they did.
"""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.tir.func import PrimFunc
from tilewright.tir.parsing.parser import parse

KEPT = Path(__file__).with_name("fixtures")


def matmul() -> PrimFunc:
    return parse((KEPT / "matmul.txt").read_text(encoding="utf-8"))


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64",
    reason="the kept engine holds machine code for Linux on x86-64",
)
def test_a_kept_engine_loads_runs_and_is_verified() -> None:
    engine = tw.load(KEPT / "engine.twe")
    arrays = np.load(KEPT / "engine_arrays.npz")
    np.testing.assert_array_equal(engine.run({"x": arrays["x"]})["y"], arrays["y"])
    engine.verify()


def test_a_kept_trace_replays_to_the_nest_that_it_made() -> None:
    trace = tw.Trace.from_json(json.loads((KEPT / "matmul_trace.json").read_text(encoding="utf-8")))
    schedule = tw.Schedule.replay(matmul(), trace)
    assert str(schedule.func) == (KEPT / "matmul_scheduled.txt").read_text(encoding="utf-8")
    assert schedule.trace == trace


def test_a_kept_trace_of_a_grid_replays_though_the_scope_of_a_block_had_another_name() -> None:
    text = (KEPT / "matmul_grid_trace.json").read_text(encoding="utf-8")
    assert '"scope": "team"' in text
    schedule = tw.Schedule.replay(matmul(), tw.Trace.from_json(json.loads(text)))
    kept = (KEPT / "matmul_grid_scheduled.txt").read_text(encoding="utf-8")
    assert 'alloc(float32[24, 8], "team")' in kept
    assert str(schedule.func) == kept.replace('"team"', '"shared"') == str(parse(kept))
    assert '"team"' not in json.dumps(schedule.trace.to_json())


@pytest.mark.needs_cc
def test_the_schedules_of_a_kept_log_replay_and_build() -> None:
    log, func, target = tw.TuningLog(KEPT / "matmul_log.jsonl"), matmul(), tw.Target("c", "scalar")
    assert len(log) == 6
    assert not log.contents.problems
    for trial in log.contents.trials:
        schedule = tw.Schedule.replay(func, trial.trace, target)
        assert schedule.trace == trial.trace
    assert log.schedule(func, target) is not None
    kernel = tw.build(func, target, schedules=log)
    rng = np.random.default_rng(0)
    a = rng.standard_normal((16, 24)).astype(np.float32)
    b = rng.standard_normal((24, 8)).astype(np.float32)
    np.testing.assert_allclose(kernel(a, b), a @ b, rtol=1e-5, atol=1e-5)
