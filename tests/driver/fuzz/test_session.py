"""driver/fuzz/session.py and worker.py: a run goes on over crashes and hangs, and keeps what is
small.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.driver.fuzz import session
from tilewright.driver.fuzz.case import Case
from tilewright.driver.fuzz.session import FuzzWorker, Summary, fuzz
from tilewright.driver.fuzz.worker import answer


def test_a_worker_answers_for_seeds_and_for_cases() -> None:
    (entry,) = answer({"seeds": [3], "isas": []})
    assert entry["failure"] is None
    assert entry["proof"] == "proved"
    wrong = {"function": "def f(Y: output(int32[1])):\n    pass\n", "steps": []}
    (entry,) = answer({"case": wrong, "isas": []})
    assert isinstance(entry["failure"], dict)
    assert entry["failure"]["stage"] == "definition"


def test_a_worker_that_dies_or_hangs_is_told_and_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = FuzzWorker()
    kill = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    monkeypatch.setattr(session, "COMMAND", ("-c", kill))
    assert worker.ask({}, 30) == "crashed: SIGSEGV"
    monkeypatch.setattr(session, "COMMAND", ("-c", "import time; time.sleep(60)"))
    assert worker.ask({}, 0.5) == "no answer within 0 s"
    monkeypatch.setattr(session, "COMMAND", ("-c", "input(); print('[]')"))
    assert worker.ask({}, 30) == []
    worker.stop()


def test_a_run_counts_cases(tmp_path: Path) -> None:
    summary = fuzz(1.0, seed=3, corpus=tmp_path, isas=())
    assert summary.cases >= session.BATCH
    assert sum(summary.depths.values()) == summary.cases
    assert summary.proofs["proved"]
    assert len(list(tmp_path.iterdir())) <= len(summary.failures)


def test_a_failure_is_made_small_and_kept_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "COMMAND", ("-c", _FAILS_WHERE_A_LOOP_IS_SPLIT))
    summary = fuzz(0.001, seed=3, corpus=tmp_path, isas=())
    first, *others = summary.failures
    assert others
    assert all(found.path is None for found in others)
    assert [path.name for path in tmp_path.iterdir()] == [f"seed_{first.seed}.py"]
    small = Case.read(tmp_path / f"seed_{first.seed}.py")
    *before, last = (step.primitive for step in small.trace.steps)
    assert last == "split"
    assert len(before) <= 1  # the step that made the loop, where one did
    assert len(small.function.blocks) == 1


def test_ctrl_c_ends_with_a_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(summary: Summary) -> None:
        raise KeyboardInterrupt

    summary = fuzz(60.0, isas=(), progress=interrupt)
    assert summary.interrupted
    assert summary.cases == session.BATCH


_FAILS_WHERE_A_LOOP_IS_SPLIT = """
import json, sys
from tilewright.driver.fuzz import worker
for line in sys.stdin:
    request = json.loads(line)
    entries = worker.answer({**request, "isas": []})
    for entry, seed in zip(entries, request.get("seeds", [None])):
        case = request.get("case")
        if case is None:
            from tilewright.driver.fuzz.case import draw
            from tilewright.driver.fuzz.steps import Tally
            case = draw(seed, Tally()).case.to_json()
        if entry["failure"] is None and '"split"' in json.dumps(case["steps"]):
            entry["failure"] = {"stage": "test", "kind": "split", "message": "planted"}
            entry["case"] = case
    print(json.dumps(entries), flush=True)
"""
