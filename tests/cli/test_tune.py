"""cli/tune.py: a model is tuned into a log, which a compile takes its schedules from."""

from __future__ import annotations

import argparse
import io
import json
from pathlib import Path

import pytest

from tests.autotune.samples import scaled, trial
from tilewright.autotune.log import read_log
from tilewright.cli.tune import duration
from tilewright.cli.tuning_progress import Progress

from .conftest import Command

pytestmark = pytest.mark.needs_cc


def test_a_model_is_tuned_and_compiled_with_the_log(tilewright: Command, tiny: Path) -> None:
    done = tilewright("tune", tiny, "--log", "tiny.jsonl", "--trials", "5")
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0] == "ended      5 trials are done"
    assert lines[1].split() == ["function", "places", "trials", "default", "best", "saved"]
    told = " ".join(done.out.split())  # long lines are cut at a word
    assert f"go on tilewright tune {tiny} --log tiny.jsonl" in told
    assert told.endswith(f"use tilewright compile {tiny} --log tiny.jsonl")
    alone = [t for t in read_log("tiny.jsonl").trials if not t.method.session]
    assert len(alone) == 5
    assert tilewright("compile", tiny, "--log", "tiny.jsonl").code == 0


def test_a_second_search_goes_on(tilewright: Command, tiny: Path) -> None:
    tilewright("tune", tiny, "--log", "tiny.jsonl", "--trials", "2")
    done = tilewright("tune", tiny, "--log", "tiny.jsonl", "--trials", "4", "--json")
    report = json.loads(done.out)
    assert report["stopped_because"] == "4 trials are done"
    alone = [t for t in read_log("tiny.jsonl").trials if not t.method.session]
    assert len(alone) == 4


def test_a_kernel_that_is_not_tuned_is_refused_where_all_must_be(
    tilewright: Command, tiny: Path
) -> None:
    tilewright("tune", tiny, "--log", "tiny.jsonl", "--trials", "1")
    done = tilewright("compile", tiny, "--log", "tiny.jsonl", "--require-tuned")
    assert done.code == 3
    assert "have no tuned schedule" in done.err


def test_a_time_is_seconds_minutes_or_hours() -> None:
    assert [duration(text) for text in ("90", "1.5s", "20m", "8h")] == [90, 1.5, 1200, 28800]
    with pytest.raises(argparse.ArgumentTypeError) as refused:
        duration("soon")
    assert str(refused.value) == "'soon' is no time such as 90, 20m or 8h"


def test_a_pipe_gets_a_line_for_each_gain() -> None:
    stream = io.StringIO()
    with Progress([(scaled(), 3)], stream) as progress:
        progress(trial(0, seconds=4e-6))
        progress(trial(1, seconds=2e-6))
        progress(trial(2, outcome="crashed"))
        progress(trial(4, seconds=3e-6))
    (line,) = stream.getvalue().splitlines()
    assert line == "tilewright: trial 2, 0 s: scaled 3 us, gain 2.00"
