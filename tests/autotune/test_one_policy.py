"""All views of one log agree on what is best, and how well it is known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.autotune.samples import split_in, trial, workload
from tests.cli.conftest import Command, tilewright
from tilewright.autotune.log.choice import choose
from tilewright.autotune.log.conditions import conditions
from tilewright.autotune.log.file import LogWriter, read_log
from tilewright.autotune.log.record import Trial
from tilewright.autotune.report.progress_table import ProgressTable
from tilewright.autotune.tuning_log import UNCONFIRMED, TuningLog
from tilewright.runtime.machine.host import host_target

from .samples import scaled

__all__ = ["tilewright"]
SIZES = {16: "default", 32: "candidate", 64: "confirmed"}


def trials_of(n: int, state: str) -> list[Trial]:
    """Trials that lead to a state."""
    made = [trial(0, n=n, seconds=4e-6), trial(1, n=n, seconds=(9e-6, 1e-6)[state != "default"])]
    if state == "confirmed":
        won = zip(made, ([4e-6] * 6, [2e-6] * 6), strict=True)
        made += [
            replace(one, samples=tuple(samples), method=replace(one.method, session="a"))
            for one, samples in won
        ]
    return [replace(one, conditions=conditions(host_target())) for one in made]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "all.jsonl"
    with LogWriter(path) as writer:
        for n, state in SIZES.items():
            writer.append(workload(n), *trials_of(n, state))
    return path


def test_all_views_of_a_log_agree(tilewright: Command, log: Path) -> None:
    known = read_log(log)
    expected = {}
    for n in SIZES:
        choice = choose([one for one in known.trials if one.workload == workload(n).key])
        expected[f"scaled {n}"] = (choice.state, f"{choice.gain:.2f}")
    assert [state for state, _ in expected.values()] == list(SIZES.values())
    live = ProgressTable()
    for record in known.records:
        live.add(record)
    assert {r.name: (r.choice.state, f"{r.choice.gain:.2f}") for r in live.all_rows} == expected
    lines = tilewright("log", "show", log).out.splitlines()
    shown = [line.split() for line in lines if line.startswith("scaled")]
    assert {" ".join(row[:2]): (row[-1], row[-2]) for row in shown} == expected
    told = json.loads(tilewright("log", "show", log, "--json").out)
    listed = sorted((one["state"], f"{one['gain']:.2f}") for one in told)
    assert listed == sorted(expected.values())
    best = tilewright("log", "best", log).out
    assert all(f"{state}" in best for state in SIZES.values())
    html = TuningLog(log)._repr_html_()
    assert all(f"<td>{state}</td>" in html for state in SIZES.values())
    legend = TuningLog(log).figure().axes[0].get_legend()
    assert legend is not None
    assert {text.get_text() for text in legend.get_texts()} == {
        f"{name}, {state}" for name, (state, _) in expected.items()
    }


@pytest.mark.parametrize("n", SIZES)
def test_a_build_takes_what_the_views_show(log: Path, n: int) -> None:
    found = TuningLog(log).advice(scaled(n), host_target())
    part = 4 if SIZES[n] == "default" else 8
    assert found.schedule is not None
    assert found.why == (UNCONFIRMED if SIZES[n] == "candidate" else "")
    assert found.schedule.trace == split_in(n, part).trace
