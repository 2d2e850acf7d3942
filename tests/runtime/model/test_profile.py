from __future__ import annotations

import json
from pathlib import Path

from tilewright.runtime.model.profile import Profile, StepTime, profile_steps
from tilewright.tir.dtype import FLOAT32
from tilewright.tir.program.flow import Taken
from tilewright.tir.program.program import Copy, Launch, Slice

PROFILE = Profile("m", 2, 5, 3e-3, (StepTime("n1, n2", "conv", 3e-3), StepTime("", "relu", 1e-3)))


def test_launches_are_listed_by_their_share() -> None:
    assert str(PROFILE) == (
        "m: 3 ms a run on 2 thread(s); launches 4 ms, medians of 5\n"
        "   75.0%      3 ms  n1, n2\n"
        "   25.0%      1 ms  relu"
    )
    assert "<td>n1, n2</td><td>conv</td><td>3 ms</td><td>75.0%</td>" in PROFILE._repr_html_()


def test_it_is_saved_as_a_trace_in_order(tmp_path: Path) -> None:
    file = PROFILE.save(tmp_path / "trace.json")
    events = json.loads(file.read_text())["traceEvents"]
    assert [(e["name"], e["ts"], e["dur"]) for e in events] == [
        ("n1, n2", 0.0, 3000.0),
        ("relu", 3000.0, 1000.0),
    ]


def test_each_step_is_called_in_every_round_and_once_more_to_warm_up() -> None:
    calls: list[str] = []
    item = Slice("arena", 0, FLOAT32, (1,))
    launch, copy = Launch("k", (), "node"), Copy(item, item)
    steps = [
        (launch, lambda at: calls.append("launch")),
        (copy, lambda at: calls.append("copy")),
    ]

    def run() -> list[Taken]:
        return [Taken(0, launch, {}), Taken(1, copy, {})]

    found = profile_steps("m", steps, run, lambda: calls.append("whole"), 1, 2)
    assert calls == ["launch", "copy", "whole"] * 3
    assert [(step.label, step.kernel) for step in found.steps] == [("node", "k"), ("copy", "copy")]
    assert found.seconds > 0


def test_an_empty_profile_prints() -> None:
    assert str(Profile("m", 1, 1, 0.0, ())).startswith("m: 0 ns a run")
