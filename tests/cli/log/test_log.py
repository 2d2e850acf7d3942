"""cli/log*.py: what logs hold, as tables and JSON; damaged lines; coverage; joining; following."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.autotune.samples import trial, workload
from tilewright.autotune.errors import LogError
from tilewright.autotune.log.conditions import conditions
from tilewright.autotune.log.file import LogWriter, read_log
from tilewright.autotune.log.record import Conditions, SizeTimes, Workload
from tilewright.autotune.report.pictures import STEPS
from tilewright.cli.log.log import ACTIONS
from tilewright.graph.plan.tasks import taken
from tilewright.graph.samples.samples import tiny_model
from tilewright.runtime.machine.host import host_target
from tilewright.schedule.rules.default import default_schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.te import te

from ..conftest import Command
from ..test_main import steady


def written(path: Path, *numbers: int) -> Path:
    with LogWriter(path) as writer:
        writer.append(workload(), *(trial(n, seconds=(4 - n) * 1e-6) for n in numbers))
        writer.append(trial(5, outcome="crashed"))
    return path


def elsewhere(path: Path) -> Path:
    """A log of another number of threads."""
    made = trial(1)
    at = replace(made.conditions, target={**made.conditions.target, "threads": 8})
    with LogWriter(path) as writer:
        writer.append(workload(), replace(made, conditions=at))
    return path


def test_show_lists_functions_with_their_gain(tilewright: Command, tmp_path: Path) -> None:
    done = tilewright("log", "show", written(tmp_path / "a.jsonl", 0, 1, 2))
    assert done.code == 0
    key = workload().key[:12]
    assert done.out == (
        "setting    A CPU, c:avx512, 2 threads, cold constants\n"
        "           tilewright 0.1.0, cc 12\n"
        "function   key           trials  failed  default  best  gain  state\n"
        f"scaled 64  {key}       4       1     6 us  3 us  2.00  candidate\n"
    )


def test_show_says_at_which_sizes_a_function_was_timed(tilewright: Command, tmp_path: Path) -> None:
    n = te.dim("n", 1, 64)
    x = te.placeholder((n,), "float32", name="x")
    func = te.func(x, te.compute((n,), lambda i: x[i] * 2.0, name="y"), name="scaled")
    each = (SizeTimes((1,), 8, (1e-6,) * 3), SizeTimes((64,), 8, (4e-6,) * 3))
    made = Workload.of(func)
    later = "2026-11-22T12:00:01.000000Z"
    one = replace(trial(0), workload=made.key, samples=(2e-6,) * 3, sizes=each, time=later)
    plain = written(tmp_path / "a.jsonl", 0)
    with LogWriter(plain) as writer:
        writer.append(made, one)
    key, other = workload().key[:12], made.key[:12]
    assert tilewright("log", "show", plain).out == (
        "setting    A CPU, c:avx512, 2 threads, cold constants\n"
        "           tilewright 0.1.0, cc 12\n"
        "function     key           trials  failed  default  best  gain  state\n"
        f"scaled 64    {key}       2       1     6 us  6 us  1.00  default\n"
        f"scaled 1-64  {other}       1       0     2 us  2 us  1.00  default\n"
        "means      scaled 1-64, of 2 sizes: 1: 1 us, 64: 4 us\n"
    )
    (told,) = json.loads(tilewright("log", "best", plain, "--only", other, "--json").out)
    assert told["sizes"] == [
        {"values": [1], "default_seconds": 1e-6, "seconds": 1e-6},
        {"values": [64], "default_seconds": 4e-6, "seconds": 4e-6},
    ]
    rows = csv.DictReader(io.StringIO(tilewright("log", "export", plain).out))
    assert [len(json.loads(row["sizes"])) for row in rows] == [0, 0, 2]


def test_show_keeps_settings_apart_and_says_why(tilewright: Command, tmp_path: Path) -> None:
    logs = written(tmp_path / "a.jsonl", 0, 2), elsewhere(tmp_path / "b.jsonl")
    out = tilewright("log", "show", *logs).out
    assert out.count("setting    A CPU") == 2
    assert out.splitlines()[-1] == (
        "times of setting 2 are not compared with those of the first: threads 8, not 2"
    )
    told = json.loads(tilewright("log", "show", *logs, "--json").out)
    assert [(one["threads"], one["trials"], one["gain"]) for one in told] == [
        (2, 3, 2.0),
        (8, 1, None),
    ]


def test_show_tells_a_function_of_which_nothing_ran(tilewright: Command, tmp_path: Path) -> None:
    out = tilewright("log", "show", written(tmp_path / "a.jsonl")).out
    assert out.splitlines()[-1].split() == ["scaled", "64", workload().key[:12], "1", "1"]
    with LogWriter(tmp_path / "a.jsonl") as writer:  # of another function something ran there
        writer.append(workload(32), trial(0, n=32))
    out = tilewright("log", "show", tmp_path / "a.jsonl").out
    assert out.count("setting") == 1
    assert "cold constants" in out
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    assert tilewright("log", "show", empty).out == "the log holds no trial\n"


def test_only_some_functions_are_shown(tilewright: Command, tmp_path: Path) -> None:
    log = written(tmp_path / "a.jsonl", 0)
    with LogWriter(log) as writer:
        writer.append(workload(32), trial(0, n=32))
    for wanted in ("scal*", "scaled"):
        assert len(tilewright("log", "show", log, "--only", wanted).out.splitlines()) == 5
    assert len(tilewright("log", "show", log, "--only", workload(32).key[:8]).out.splitlines()) == 4
    done = tilewright("log", "show", log, "--only", "skaled")
    assert done.code == 2
    assert done.err == (
        "UsageError: log: --only: no function is 'skaled'; expected one of 'scaled'. "
        "[cli-log-only]\n"
    )


def test_best_gives_what_is_to_be_used(tilewright: Command, tmp_path: Path) -> None:
    log = written(tmp_path / "a.jsonl", 0, 1, 2)
    row = tilewright("log", "best", log).out.splitlines()[-1]
    assert row.endswith("elementwise  3 us  candidate  question 0 = 16")
    (one,) = json.loads(tilewright("log", "best", log, "--json").out)
    assert one["decisions"] == {"question 0": 16}
    assert one["outcomes"] == {"ok": 3, "crashed": 1}
    assert one["trace"]["version"] == 1
    only = written(tmp_path / "b.jsonl", 0)
    assert tilewright("log", "best", only).out.splitlines()[-1].endswith("the rule's own")


def test_merge_writes_every_record_once(tilewright: Command, tmp_path: Path) -> None:
    one, two = written(tmp_path / "a.jsonl", 0, 1), written(tmp_path / "b.jsonl", 1, 2)
    done = tilewright("log", "merge", two, one, "-o", "both.jsonl")
    assert done.out == "written    both.jsonl: 1 functions, 4 trials\n"
    assert [t.time for t in read_log("both.jsonl").trials] == [trial(n).time for n in (0, 1, 2, 5)]
    again = tilewright("log", "merge", one, two, "-o", "again.jsonl", "--json")
    assert json.loads(again.out) == {"file": "again.jsonl", "functions": 1, "trials": 4}
    assert Path("again.jsonl").read_bytes() == Path("both.jsonl").read_bytes()
    assert tilewright("log", "merge", one, two).code == 2


def test_check_names_damaged_lines(tilewright: Command, tmp_path: Path) -> None:
    log = written(tmp_path / "a.jsonl", 0, 1)
    assert tilewright("log", "check", "--log", log).code == 0
    log.write_bytes(log.read_bytes()[:-9])
    done = tilewright("log", "check", "--log", log)
    assert done.code == 1
    assert done.out == ("log        1 functions, 2 trials\ndamaged    1 line is no record\n")
    assert done.err.startswith(f"tilewright: {log}:4: log: no record of ours: json: record is not")
    report = json.loads(tilewright("log", "check", "--log", log, "--json").out)
    assert (report["functions"], report["trials"]) == (1, 2)
    assert report["problems"][0]["line"] == 4
    assert "coverage" not in report


def tuned(log: Path, functions: Iterable[PrimFunc], at: Conditions) -> None:
    """Add a trial of the default of each function."""
    with LogWriter(log) as writer:
        for func in functions:
            known, trace = Workload.of(func), default_schedule(func, host_target()).trace
            made = replace(trial(0), workload=known.key, trace=trace, conditions=at)
            writer.append(known, made)


@pytest.mark.needs_cc
def test_check_says_kernel_by_kernel_what_a_log_covers(
    tilewright: Command, tiny: Path, tmp_path: Path
) -> None:
    log, here = tmp_path / "tiny.jsonl", conditions(host_target())
    functions = [func for func, _ in taken(tiny_model().model, host_target())]
    tuned(log, functions[:1], here)
    tuned(log, functions[1:2], replace(here, cpu="another CPU"))
    done = tilewright("log", "check", tiny, "--log", log)
    assert done.code == 1
    count = len(functions)
    _, model, heads, *rows = done.out.splitlines()
    assert model == f"model      kernels {count}: similar 1, default {count - 1}; 1 in the log"
    assert heads.split() == ["kernel", "places", "schedule", "why"]
    told = {row.split()[0]: " ".join(row.split()[2:]) for row in rows}
    assert told[functions[0].name] == "default"
    assert told[functions[1].name].startswith("similar CPU 'another CPU', not '")
    assert told[functions[2].name] == "default the log has no trial of it"
    report = json.loads(tilewright("log", "check", tiny, "--log", log, "--json").out)
    assert report["coverage"] == {"similar": 1, "default": count - 1}
    assert [one["kernel"] for one in report["kernels"] if one["tuned"]] == [functions[0].name]
    assert len(report["kernels"]) == count
    tuned(log, functions[1:], here)
    done = tilewright("log", "check", tiny, "--log", log)
    assert done.code == 0
    assert f"kernels {count}: default {count}; {count} in the log\n" in done.out
    done = tilewright("compile", tiny, "--log", log, "--require-tuned", "--json")
    assert json.loads(done.out)["coverage"] == {"default": count}


def test_check_takes_no_log_for_a_model(tilewright: Command, tmp_path: Path) -> None:
    log = written(tmp_path / "a.jsonl", 0)
    done = tilewright("log", "check", "a.jsonl", "--log", log)
    assert done.code == 2
    assert done.err == (
        "UsageError: log check: 'a.jsonl' is a log; expected a model. [cli-log-model]\n"
        "  Hint: tilewright log check --log a.jsonl\n"
    )


def test_export_writes_a_flat_table(tilewright: Command, tmp_path: Path) -> None:
    log = written(tmp_path / "a.jsonl", 0, 1)
    rows = list(csv.DictReader(io.StringIO(tilewright("log", "export", log).out)))
    assert [(row["function"], row["outcome"], row["seconds"]) for row in rows] == [
        ("scaled", "ok", "6e-06"),
        ("scaled", "ok", "4.5e-06"),
        ("scaled", "crashed", ""),
    ]
    assert json.loads(rows[1]["decisions"]) == {"question 0": 8}
    tilewright("log", "export", log, "-o", "trials.json")
    listed = json.loads(Path("trials.json").read_text())
    assert [row["seconds"] for row in listed] == [6e-6, 4.5e-6, None]
    assert all(set(row) == set(rows[0]) for row in listed)
    assert (
        tilewright("log", "export", log, "--format", "json").out == Path("trials.json").read_text()
    )


def test_watch_follows_a_log_that_others_write_until_ctrl_c(
    tilewright: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, numbers = tmp_path / "logs", iter(range(2))

    def pause(seconds: float) -> None:
        number = next(numbers, None)
        if number is None:
            raise KeyboardInterrupt
        with LogWriter(f"{log}/") as writer:  # each writer has a file of its own
            writer.append(workload(), trial(number, seconds=(2 - number) * 1e-6))

    monkeypatch.setattr("tilewright.cli.log.watch.time.sleep", pause)
    done = tilewright("log", "watch", log)
    assert done.code == 0
    assert done.err == f"tilewright: waiting for '{log}'\n"
    assert done.out == (
        "tilewright: 1 of 1 functions, 2 trials, 0 s: scaled 64 1.5 us, gain 2.00, candidate\n"
    )


def test_watch_prints_trials_as_lines_of_json(tilewright: Command, tmp_path: Path) -> None:
    log = written(tmp_path / "a.jsonl", 0, 1)
    done = tilewright("log", "watch", log, "--seconds", "0", "--json")
    assert [json.loads(line)["outcome"] for line in done.out.splitlines()] == [
        "ok",
        "ok",
        "crashed",
    ]
    assert all(json.loads(line)["function"] == "scaled" for line in done.out.splitlines())


def test_watch_names_damaged_lines(tilewright: Command, tmp_path: Path) -> None:
    log = written(tmp_path / "a.jsonl", 0)
    log.write_bytes(b"what is this\n" + log.read_bytes())
    assert f"tilewright: {log}:1: log: " in tilewright("log", "watch", log, "--seconds", "0").err


@pytest.mark.needs_cc
def test_plot_draws_a_picture(tilewright: Command, tmp_path: Path) -> None:
    log = written(tmp_path / "a.jsonl", 0, 1, 2)
    done = tilewright("log", "plot", log, "-o", "a.svg")
    assert (done.code, done.out) == (0, "written    a.svg\n")
    assert "<svg" in Path("a.svg").read_text()
    assert done.err == ""
    done = tilewright("log", "plot", log, "-o", "a.txt")
    assert done.code == 2
    assert done.err == (
        "UsageError: log plot: 'a.txt' is no picture; expected a file in .png, .svg, .pdf. "
        "[cli-log-picture]\n"
    )


def test_plot_names_what_takes_its_time_on_a_terminal(
    tilewright: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, stream = written(tmp_path / "a.jsonl", 0, 1, 2), io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    assert tilewright("log", "plot", log, "-o", "a.svg").code == 0
    steps = (f"reading {log}", *STEPS, "writing a.svg")
    shown = stream.getvalue()
    places = [shown.index(f"{step} ") for step in steps]
    assert places == sorted(places)
    assert "83%" in shown  # the last of six has begun


def test_a_missing_log_is_a_usage_error(tilewright: Command) -> None:
    done = tilewright("log", "show", "none.jsonl")
    assert done.code == 2
    assert "there is no file 'none.jsonl'" in done.err


def test_a_log_without_a_workload_line_is_told_all_the_same(
    tilewright: Command, tmp_path: Path
) -> None:
    with LogWriter(tmp_path / "a.jsonl") as writer:
        writer.append(replace(trial(0), workload="0" * 64))
    assert "unnamed" in tilewright("log", "show", tmp_path / "a.jsonl").out


@pytest.mark.parametrize("action", [module.__name__.rpartition(".")[2] for module in ACTIONS])
def test_each_action_explains_itself_with_examples(
    action: str, tilewright: Command, golden: Callable[[str, str], None]
) -> None:
    done = tilewright("log", action, "--help")
    assert done.code == 0
    assert "examples:\n  tilewright log " in done.out
    golden(f"cli/help_log_{action}.txt", steady(done.out))


def compressed(log: Path) -> Path:
    path = log.with_suffix(".jsonl.gz")
    path.write_bytes(gzip.compress(log.read_bytes()))
    return path


@pytest.mark.parametrize("verb", ["show", "best", "export", "watch"])
def test_a_compressed_log_is_read_like_any_other(
    verb: str, tilewright: Command, tmp_path: Path
) -> None:
    log = written(tmp_path / "a.jsonl", 0, 1, 2)
    options = ["--seconds", "0"] if verb == "watch" else []
    plain, packed = (tilewright("log", verb, one, *options) for one in (log, compressed(log)))
    assert packed == plain
    assert packed.code == 0


def test_a_compressed_log_is_not_appended_to(tmp_path: Path) -> None:
    with pytest.raises(LogError) as refused:
        LogWriter(compressed(written(tmp_path / "a.jsonl", 0)))
    assert str(refused.value) == (
        f"LogError: log: '{tmp_path}/a.jsonl.gz' is compressed; expected a log that can be "
        f"appended to. [log-compressed]\n  Hint: gunzip {tmp_path}/a.jsonl.gz"
    )


@pytest.mark.parametrize("verb", ["show", "best", "export", "watch"])
def test_a_file_that_is_no_log_is_an_error_of_usage_in_one_line(
    verb: str, tilewright: Command, tmp_path: Path
) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text('{"a": 1}\n' * 300)
    done = tilewright("log", verb, other)
    assert done.code == 2
    assert done.err == (
        f"NotALog: log: '{other}' is no tuning log: none of its 300 lines is a record; "
        "expected what tilewright tune MODEL --log LOG writes, or tilewright.tune(func, log=path). "
        "[log-other]\n"
    )


def test_a_damaged_archive_cannot_be_read(tilewright: Command, tmp_path: Path) -> None:
    log = compressed(written(tmp_path / "a.jsonl", 0))
    log.write_bytes(log.read_bytes()[:-20])
    done = tilewright("log", "show", log)
    assert done.code == 2
    assert "cannot be read" in done.err


def test_diff_lists_what_changed(tilewright: Command, tmp_path: Path) -> None:
    old, new = written(tmp_path / "a.jsonl", 0), written(tmp_path / "b.jsonl", 0, 2)
    done = tilewright("log", "diff", old, new)
    key = workload().key[:12]
    assert done.out == (
        "function   key            old  state     new  state      new/old\n"
        f"scaled 64  {key}  6 us  default  3 us  candidate     0.50\n"
        "0 of 1 functions are the same\n"
    )
    assert tilewright("log", "diff", old, old).out == "1 of 1 functions are the same\n"
    (one,) = json.loads(tilewright("log", "diff", old, new, "--json").out)
    assert (one["old_state"], one["new_state"], one["ratio"]) == ("default", "candidate", 0.5)
    done = tilewright("log", "diff", elsewhere(tmp_path / "c.jsonl"), old)
    assert done.out.count("not there") == 2  # times of two settings are not compared


def test_prune_keeps_what_is_recommended(tilewright: Command, tmp_path: Path) -> None:
    log = written(tmp_path / "a.jsonl", 0, 1, 2, 3)
    done = tilewright("log", "prune", log, "-o", "small.jsonl")
    assert done.out == "written    small.jsonl: 4 of 5 trials\n"  # the one that crashed is gone
    assert tilewright("log", "diff", log, "small.jsonl").out == "1 of 1 functions are the same\n"
    done = tilewright("log", "prune", log, "-o", "small.jsonl", "--json")
    assert json.loads(done.out) == {"file": "small.jsonl", "trials": 4, "dropped": 1}
    done = tilewright("log", "prune", log, "-o", "small.jsonl", "--keep", "1")
    assert done.code == 2
    assert done.err == (
        "UsageError: log prune: --keep 1 is fewer than a confirmation round compares; expected 4 "
        "or more. [cli-log-keep]\n"
    )


@pytest.mark.parametrize(
    ("action", "output"), [("export", "a.csv"), ("html", "a.html"), ("plot", "a.svg")]
)
def test_an_output_needs_a_folder(
    tilewright: Command, tmp_path: Path, action: str, output: str
) -> None:
    log = written(tmp_path / "a.jsonl", 0, 1, 2)
    done = tilewright("log", action, log, "-o", f"no/{output}")
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith(
        f"OutputFileError: write: 'no/{output}' cannot be written: there is no folder 'no'; "
        "expected a file in a folder. [output-parent]\n"
        "  Hint: make the folder first, or name another one.\n"
    )


def test_html_is_one_page_that_loads_nothing(tilewright: Command, tmp_path: Path) -> None:
    log = written(tmp_path / "a<b.jsonl", 0, 1, 2)
    done = tilewright("log", "html", log, "-o", "a.html")
    assert (done.code, done.out) == (0, "written    a.html\n")
    page = Path("a.html").read_text()
    assert "<title>a&lt;b.jsonl</title>" in page
    assert "<td>scaled 64</td>" in page
    assert "<td>candidate</td>" in page
    assert not re.search(r"<script|src=|href=|@import|url\(", page)
