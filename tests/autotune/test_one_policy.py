"""All views of one log agree on what is best, and how well it is known."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.autotune.samples import split_in, trial, workload
from tests.cli.conftest import Command, tilewright
from tilewright.autotune.log.choice import choose
from tilewright.autotune.log.conditions import conditions
from tilewright.autotune.log.disturbance import note_of
from tilewright.autotune.log.file import LogWriter, read_log
from tilewright.autotune.log.record import Trial
from tilewright.autotune.report.progress_table import ProgressTable
from tilewright.autotune.tuning_log import UNCONFIRMED, TuningLog
from tilewright.runtime.machine.host import host_target

from .samples import scaled

__all__ = ["tilewright"]
SIZES = {16: "default", 32: "candidate", 64: "confirmed", 128: "undecided"}
SHOWN = {**{state: state for state in SIZES.values()}, "undecided": "undecided: machine busy"}


def trials_of(n: int, state: str) -> list[Trial]:
    """Trials that lead to a state."""
    made = [trial(0, n=n, seconds=4e-6), trial(1, n=n, seconds=(9e-6, 1e-6)[state != "default"])]
    if state in ("confirmed", "undecided"):
        text, rival = ("", 2e-6) if state == "confirmed" else (note_of(0.5), 4e-6)
        made += [
            replace(one, samples=(each,) * 6, text=text, method=replace(one.method, session="a"))
            for one, each in zip(made, (4e-6, rival), strict=True)
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
    cells = [re.split(r"  +", line) for line in lines if line.startswith("scaled")]
    assert {row[0]: (row[-1], row[-2]) for row in cells} == {
        name: (SHOWN[state], gain) for name, (state, gain) in expected.items()
    }
    told = json.loads(tilewright("log", "show", log, "--json").out)
    listed = sorted((one["state"], f"{one['gain']:.2f}") for one in told)
    assert listed == sorted(expected.values())
    best = tilewright("log", "best", log).out
    assert all(f"  {state}  " in best for state in SHOWN.values())
    why = f"the machine was busy during its confirmation: {note_of(0.5)}"
    assert [one["why"] for one in told if one["state"] == "undecided"] == [why]
    html = TuningLog(log)._repr_html_()
    assert f'<td title="{why}">undecided: machine busy</td>' in html
    assert all(f">{state}</td>" in html for state in SHOWN.values())
    legend = TuningLog(log).figure().axes[0].get_legend()
    assert legend is not None
    assert {text.get_text() for text in legend.get_texts()} == {
        f"{name}, {SHOWN[state]}" for name, (state, _) in expected.items()
    }


@pytest.mark.parametrize("n", SIZES)
def test_a_build_takes_what_the_views_show(log: Path, n: int) -> None:
    found = TuningLog(log).advice(scaled(n), host_target())
    part = 4 if SIZES[n] in ("default", "undecided") else 8
    busy = f"the machine was busy during its confirmation: {note_of(0.5)}"
    assert found.schedule is not None
    assert found.why == {"candidate": UNCONFIRMED, "undecided": busy}.get(SIZES[n], "")
    assert found.schedule.trace == split_in(n, part).trace
