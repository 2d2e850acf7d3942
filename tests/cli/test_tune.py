"""cli/tune.py: a model is tuned into a log, which a compile takes its schedules from."""

from __future__ import annotations

import argparse
import io
import json
import re
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import Future
from pathlib import Path

import pytest
from rich.console import Console

from tests.autotune.interrupted import Instant
from tests.autotune.samples import scaled, trial, workload
from tilewright.autotune import session
from tilewright.autotune.log.conditions import conditions
from tilewright.autotune.log.disturbance import note_of
from tilewright.autotune.log.file import read_log
from tilewright.autotune.log.record import Trial
from tilewright.autotune.measure.jobs import Job, Reply, Result
from tilewright.autotune.report.progress_table import ProgressTable
from tilewright.autotune.run import BATCH
from tilewright.cli.tune import duration
from tilewright.cli.tuning_progress import Progress, TrialBudget
from tilewright.driver.tuning import cuda_tuner
from tilewright.runtime.cuda.device.availability import Unavailable

from .conftest import Command, Done

pytestmark = pytest.mark.needs_cc
START = "import sys; from tilewright.cli.main import main; sys.exit(main())"


@pytest.fixture(scope="module")
def tuned(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """The log of a short search, and what the search said."""
    log = tmp_path_factory.mktemp("tuned") / "tiny.jsonl"
    command = [sys.executable, "-c", START, "tune", tiny, "--log", log, "--trials", "3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return log, Done(done.returncode, done.stdout, done.stderr)


def alone(log: Path) -> list[Trial]:
    """What was tried on the way of a search; on a busy machine a candidate is measured again."""
    trials = {str(t.trace): t for t in read_log(log).trials if not t.method.session}
    return list(trials.values())


def test_a_model_is_tuned_and_compiled_with_the_log(
    tilewright: Command, tiny: Path, tuned: tuple[Path, Done]
) -> None:
    log, done = tuned
    assert done.code == 0, done.err
    assert done.err.startswith(f"tilewright: tuning {tiny}, log {log}\n")
    lines = done.out.splitlines()
    assert lines[0] == "ended      3 trials are done"
    heads = next(line for line in lines if line.startswith("function"))
    assert heads.split() == [
        "function", "places", "trials", "default", "best", "saved", "state", "nodes",
    ]  # fmt: skip
    assert "conv, relu" in done.out
    told = " ".join(done.out.split())  # long lines are cut at a word
    assert f"go on tilewright tune {tiny} --log {log}" in told
    assert f"covered tilewright log check {tiny} --log {log}" in told
    assert told.endswith(f"use tilewright compile {tiny} --log {log}")
    assert len(alone(log)) == 3
    compiled = tilewright("compile", tiny, "--log", log)
    assert compiled.code == 0
    words = r"((confirmed|candidate|undecided) \d, )*default \d"
    assert re.search(rf"tuning     {words}(; \d in the log)?\n", compiled.out)


def test_a_model_with_ranges_is_tuned_at_the_sizes_that_are_given(
    tilewright: Command, open_model: Path, tmp_path: Path
) -> None:
    log, ranges = tmp_path / "open.jsonl", ("--shapes", "batch:1-4-64")
    given = ("--sizes", "batch:2", "--sizes", "batch:4")
    done = tilewright("tune", open_model, *ranges, "--log", log, "--trials", "1", *given)
    assert done.code == 0, done.err
    assert {trial.timed_at for trial in read_log(log).trials} == {((8,), (16,))}
    assert "predicted latency" in done.out
    told = " ".join(done.out.split())
    same = f"{open_model} --shapes batch:1-4-64 --log {log}"
    assert f"go on tilewright tune {same} --sizes batch:2 --sizes batch:4" in told
    checked = tilewright("log", "check", open_model, *ranges, "--log", log)
    assert "kernels 1: " in checked.out
    assert "; 1 in the log" in checked.out
    wrong = tilewright("tune", open_model, *ranges, "--log", log, "--sizes", "bach:2")
    assert wrong.code == 2
    assert "there is no size 'bach'; expected 'batch'. [tune-size-unknown]" in wrong.err


class Disturbed(Instant):
    """A place where all calls take the same, on a machine that is never at rest; a default that
    was timed alone took longer.
    """

    def submit(self, job: Job) -> Future[Reply]:
        done: Future[Reply] = Future()
        text = note_of(0.5) if job.is_final else ""
        times = [2e-6 if n == job.default and not job.is_final else 1e-6 for n in range(BATCH + 1)]
        results = tuple(
            Result("ok", text, (seconds,) * job.rounds, 8, 64 << 20, 110.0)
            for _, seconds in zip(job.candidates, times, strict=False)
        )
        done.set_result(Reply(conditions(job.target), results))
        return done


@pytest.mark.slow
def test_a_search_a_build_and_the_log_use_the_same_words_and_counts(
    tilewright: Command, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "busy.jsonl"
    monkeypatch.setattr(session, "Here", Disturbed)
    done = tilewright("tune", tiny, "--log", log, "--trials", "8")
    assert done.code == 0, done.err
    shown = json.loads(tilewright("log", "show", log, "--json").out)
    counts = Counter(one["state"] for one in shown)
    assert counts["undecided"] > 0
    told = " ".join(done.out.split())
    assert "the machine was busy during the confirmation of" in told
    assert f"tilewright tune {tiny} --log {log} --confirm" in told
    assert done.out.count("undecided: machine busy") == counts["undecided"]
    covered = json.loads(tilewright("log", "check", tiny, "--log", log, "--json").out)
    tuned = [one["schedule"] for one in covered["kernels"] if one["tuned"]]
    compiled = json.loads(tilewright("compile", tiny, "--log", log, "--json").out)
    assert compiled["coverage"] == covered["coverage"]
    assert compiled["coverage"]["undecided"] == tuned.count("undecided") > 0
    assert "tuned" not in compiled["coverage"]


@pytest.mark.slow
def test_a_second_search_goes_on(
    tilewright: Command, tiny: Path, tuned: tuple[Path, Done], tmp_path: Path
) -> None:
    log = tmp_path / "more.jsonl"
    log.write_bytes(tuned[0].read_bytes())
    done = tilewright("tune", tiny, "--log", log, "--trials", "4", "--json")
    report = json.loads(done.out)
    assert report["stopped_because"] == "4 trials are done"
    assert len(alone(log)) == 4


def test_a_kernel_that_is_not_tuned_is_refused_where_all_must_be(
    tilewright: Command, tiny: Path, tuned: tuple[Path, Done]
) -> None:
    done = tilewright("compile", tiny, "--log", tuned[0], "--require-tuned")
    assert done.code == 3
    assert "have no tuned schedule" in done.err


def test_sigterm_ends_a_search_with_what_it_found_and_how_to_go_on(
    tiny: Path, tmp_path: Path
) -> None:
    log = tmp_path / "tiny.jsonl"
    command = [sys.executable, "-c", START, "tune", tiny, "--log", log]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        for _ in range(600):
            if log.exists() and len(read_log(log).trials) > 2:
                break
            time.sleep(0.1)
        process.terminate()
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    lines = out.splitlines()
    assert lines[0] == "ended      it was interrupted"
    assert f"tilewright tune {tiny} --log {log}" in " ".join(out.split())
    assert "Traceback" not in err
    assert read_log(log).problems == ()


def test_a_time_is_seconds_minutes_or_hours() -> None:
    assert [duration(text) for text in ("90", "1.5s", "20m", "8h")] == [90, 1.5, 1200, 28800]
    with pytest.raises(argparse.ArgumentTypeError) as refused:
        duration("soon")
    assert str(refused.value) == "'soon' is no time such as 90, 20m or 8h"


def test_a_pipe_gets_a_line_for_each_gain() -> None:
    stream = io.StringIO()
    table = ProgressTable.of({workload().key: (scaled(), 3)})
    with Progress(table, stream, TrialBudget(trials=4)) as progress:
        progress(trial(0, seconds=4e-6))
        progress(trial(1, seconds=2e-6))
        progress(trial(2, outcome="crashed"))
        progress(trial(4, seconds=3e-6))
    (line,) = stream.getvalue().splitlines()
    assert line == (
        "tilewright: 1 of 1 functions, 2 trials, 0 s, about 0 s left: "
        "scaled 64 3 us, gain 2.00, candidate"
    )


def test_a_pipe_gets_a_line_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, clock = io.StringIO(), iter(range(0, 10_000, 25))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    with Progress(ProgressTable.of({workload().key: (scaled(), 3)}), stream) as progress:
        for number in range(4):
            progress(trial(number, seconds=(1 + number) * 1e-6))
    assert "no gain since" in stream.getvalue()


def test_a_terminal_shows_a_table() -> None:
    table = ProgressTable.of({workload().key: (scaled(), 3)})
    table.resume([trial(0, seconds=4e-6)], 1)
    progress = Progress(table, io.StringIO(), TrialBudget(seconds=600.0))
    progress(trial(1, seconds=2e-6))
    progress(trial(2, outcome="crashed"))
    console = Console(file=io.StringIO(), width=100, record=True)
    console.print(progress.renderable())
    title, heads, row = (line.rstrip() for line in console.export_text().splitlines())
    assert title == "1 of 1 functions, 3 trials, 1 failed, 0 s, at most 10 min 00 s left"
    assert heads.split() == [
        "function", "places", "trials", "failed", "default", "best", "gain", "state", "of",
        "limit",
    ]  # fmt: skip
    assert row.split() == [
        "scaled", "64", "3", "3", "1", "6", "us", "3", "us", "2.00", "candidate",
    ]  # fmt: skip


def test_time_left_is_that_of_the_nearest_limit() -> None:
    table = ProgressTable(began=time.monotonic() - 10.0, now=5)
    assert TrialBudget().text(table) == ""
    assert TrialBudget(seconds=30.0).text(table) == "at most 20 s left"
    assert TrialBudget(trials=6, seconds=30.0).text(table) == "about 2 s left"
    assert TrialBudget(trials=3).text(table) == "last rounds"
    assert TrialBudget(trials=3).text(ProgressTable()) == ""


def test_without_a_gpu_a_search_for_one_does_not_begin(
    tilewright: Command, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        cuda_tuner, "availability", lambda: Unavailable("there is none", "get one.")
    )
    log = tmp_path / "never.jsonl"
    done = tilewright("tune", tiny, "--log", log, "--target", "cuda:sm_90a")
    assert done.code == 4
    assert "cuda: there is none. [cuda-unavailable]" in done.err
    assert "get one." in done.err
    assert not log.exists()


@pytest.mark.needs_cc
def test_a_file_of_events_that_has_no_folder_is_refused_before_the_search(
    tilewright: Command, tiny: Path, tmp_path: Path
) -> None:
    log = tmp_path / "never.jsonl"
    done = tilewright("tune", tiny, "--log", log, "--events", "no/events.jsonl")
    assert done.code == 2
    assert "'no/events.jsonl' cannot be written: there is no folder 'no'" in done.err
    assert not log.exists()


def test_confirm_finishes_what_awaits_it_and_tries_nothing_new(
    tilewright: Command, tiny: Path, tuned: tuple[Path, Done], tmp_path: Path
) -> None:
    log = tmp_path / "more.jsonl"
    log.write_bytes(tuned[0].read_bytes())
    done = tilewright("tune", tiny, "--log", log, "--confirm", "--json", "--events", "events.jsonl")
    events = [json.loads(line) for line in Path("events.jsonl").read_text().splitlines()]
    assert [events[0]["event"], events[-1]["event"]] == ["began", "ended"]
    states = {event["key"]: event["state"] for event in events if event["event"] == "best"}
    # a clock that drifts, as that of a busy machine, decides nothing
    assert all(states.get(key) == "undecided" for key in events[-1]["awaiting"])
    report = json.loads(done.out)
    assert done.code == 0
    assert report["stopped_because"] == "nothing new was to be tried"
    assert len(alone(log)) == 3
    waiting = [one for one in report["functions"] if one["awaiting"]]
    assert len(waiting) == len(events[-1]["awaiting"])


def test_confirm_refuses_what_contradicts_it(
    tilewright: Command, tiny: Path, tmp_path: Path
) -> None:
    log = tmp_path / "none.jsonl"
    assert tilewright("tune", tiny, "--log", log, "--confirm").code == 2
    done = tilewright("tune", tiny, "--log", log, "--confirm", "--trials", "4")
    assert done.code == 2
    assert done.err == (
        "UsageError: tune: --confirm tries nothing new, so --trials has no meaning with it. "
        "[cli-tune-confirm]\n"
        "  Hint: leave one of --confirm and --trials out.\n"
    )
