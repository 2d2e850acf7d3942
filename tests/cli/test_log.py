"""cli/log.py: what a log holds, as tables and JSON; damaged lines; merging."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from tests.autotune.samples import trial, workload
from tilewright.autotune.log import LogWriter, read_log

from .conftest import Command


def written(path: Path, *numbers: int) -> Path:
    with LogWriter(path) as writer:
        writer.append(workload(), *(trial(n, seconds=(4 - n) * 1e-6) for n in numbers))
        writer.append(trial(5, outcome="crashed"))
    return path


def test_show_lists_functions_with_their_gain(tilewright: Command, tmp_path: Path) -> None:
    done = tilewright("log", "show", written(tmp_path / "a.jsonl", 0, 1, 2))
    assert done.code == 0
    heads, row = (line.split() for line in done.out.splitlines())
    assert heads == ["function", "key", "threads", "trials", "failed", "default", "best", "gain"]
    assert row == ["scaled", workload().key[:12], "2", "4", "1", "6", "us", "3", "us", "2.00"]


def test_best_gives_what_is_to_be_used(tilewright: Command, tmp_path: Path) -> None:
    log = written(tmp_path / "a.jsonl", 0, 1, 2)
    assert tilewright("log", "best", log).out.splitlines()[1].endswith("elementwise  tuned   [16]")
    (one,) = json.loads(tilewright("log", "best", log, "--json").out)
    assert one["decisions"] == [16]
    assert one["outcomes"] == {"ok": 3, "crashed": 1}
    assert one["trace"]["version"] == 1


def test_merge_writes_every_record_once(tilewright: Command, tmp_path: Path) -> None:
    one, two = written(tmp_path / "a.jsonl", 0, 1), written(tmp_path / "b.jsonl", 1, 2)
    done = tilewright("log", "merge", two, one, "-o", "both.jsonl")
    assert done.out == "written    both.jsonl: 1 functions, 4 trials\n"
    assert [t.time for t in read_log("both.jsonl").trials] == [trial(n).time for n in (0, 1, 2, 5)]
    again = tilewright("log", "merge", one, two, "-o", "again.jsonl", "--json")
    assert json.loads(again.out) == {"file": "again.jsonl", "functions": 1, "trials": 4}
    assert Path("again.jsonl").read_bytes() == Path("both.jsonl").read_bytes()


def test_check_names_damaged_lines(tilewright: Command, tmp_path: Path) -> None:
    log = written(tmp_path / "a.jsonl", 0, 1)
    assert tilewright("log", "check", log).code == 0
    log.write_bytes(log.read_bytes()[:-9])
    done = tilewright("log", "check", log)
    assert done.code == 1
    assert done.out == "records    1 functions, 2 trials\n"
    assert done.err.startswith(f"tilewright: {log}:4: log: no record of ours: json: record is not")
    report = json.loads(tilewright("log", "check", log, "--json").out)
    assert report["records"] == 3
    assert report["problems"][0][1] == 4


def test_a_missing_log_is_an_error_of_the_environment(tilewright: Command) -> None:
    done = tilewright("log", "show", "none.jsonl")
    assert done.code == 4
    assert "there is no file 'none.jsonl'" in done.err


def test_merge_needs_an_output_and_nothing_else_takes_one(
    tilewright: Command, tmp_path: Path
) -> None:
    log = written(tmp_path / "a.jsonl", 0)
    done = tilewright("log", "merge", log)
    assert done.code == 2
    assert done.err == (
        "UsageError: log: merge needs --output. [cli-log-output]\n"
        "  Hint: tilewright log merge one.jsonl two.jsonl --output both.jsonl\n"
    )
    assert "log: show writes nothing." in tilewright("log", "show", log, "-o", "x").err


def test_a_log_without_a_workload_line_is_told_all_the_same(
    tilewright: Command, tmp_path: Path
) -> None:
    with LogWriter(tmp_path / "a.jsonl") as writer:
        writer.append(replace(trial(0), workload="0" * 64))
    assert "not told" in tilewright("log", "show", tmp_path / "a.jsonl").out
