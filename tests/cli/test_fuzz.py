"""cli/fuzz.py: the table, the exit code, JSON."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tilewright.cli import fuzz as verb
from tilewright.driver.fuzz import session
from tilewright.driver.fuzz.case import Case
from tilewright.driver.fuzz.examine import CaseFailure
from tilewright.driver.fuzz.session import Found, FuzzWorker, Summary
from tilewright.graph.fuzz.random_model import random_model

from .conftest import Command

FUNCTION = """\
def f(X: float32[1], Y: output(float32[1])):
    for i in range(1):
        with block("Y", vi=spatial(1, i)):
            Y[vi] = X[vi]"""


def summary(*failures: Found) -> Summary:
    return Summary(
        seed=4,
        isas=("scalar",),
        seconds=2.0,
        cases=10,
        applied=Counter(split=12, fuse=3),
        refused=Counter(fuse=5),
        kinds={
            "argument": Counter({"fuse-none": 1}),
            "conflict": Counter({"loop-conflict": 3}),
            "limit": Counter({"loop-conflict": 1}),
        },
        present=Counter(split=8, fuse=2),
        depths=Counter({2: 4, 7: 6}),
        proofs=Counter(proved=10),
        target_refused=Counter({"register-index": 2}),
        failures=list(failures),
    )


def failed(path: Path | None) -> Found:
    failure = CaseFailure("nest", "values", "max error / bound 3 at Y[0]")
    return Found(4_000_001, failure, Case.of(FUNCTION, []), path)


def test_a_short_run_finds_nothing(tilewright: Command) -> None:
    done = tilewright("fuzz", "--seconds", "0.5", "--no-compile", "--corpus", "found")
    assert (done.code, done.err) == (0, "")
    assert "failures   none" in done.out
    assert "C on: none" in done.out
    assert not Path("found").exists()


def test_the_table_of_a_run_with_a_failure(
    tilewright: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = summary(failed(Path("found/seed_4000001.py")), failed(None))
    monkeypatch.setattr(session, "fuzz", lambda *_, **__: found)
    done = tilewright("fuzz", "--no-compile")
    assert done.code == 1
    assert done.out == (
        "cases      10 in 2 s, 5.0 a second, seed 4\n"
        "           C on: scalar\n"
        "steps      primitive  applied  refused  in cases\n"
        "           fuse             3        5      20 %\n"
        "           split           12        0      80 %\n"
        "refusals   1 argument (20.0 %), 3 conflict (60.0 %), 1 limit (20.0 %)\n"
        "           rule           kind      refusals   share\n"
        "           loop-conflict  conflict         3  60.0 %\n"
        "           fuse-none      argument         1  20.0 %\n"
        "           loop-conflict  limit            1  20.0 %\n"
        "depth      60 % of cases have 6 steps or more\n"
        "           2: 4, 7: 6\n"
        "proofs     10 proved\n"
        "targets    schedules that a target refuses: 2 register-index\n"
        "failures   2\n"
        "           case 4000001\n"
        "           nest: max error / bound 3 at Y[0]\n"
        + "".join(f"             {line}\n" for line in FUNCTION.splitlines())
        + "           kept: found/seed_4000001.py\n"
        "           case 4000001: as above, nest\n"
    )


def test_json_holds_the_cases_that_failed(
    tilewright: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "fuzz", lambda *_, **__: summary(failed(None)))
    done = tilewright("fuzz", "--no-compile", "--json")
    held = json.loads(done.out)
    assert done.code == 1
    assert held["cases"] == 10
    assert held["applied"] == {"split": 12, "fuse": 3}
    assert held["refusals"] == {
        "argument": {"fuse-none": 1},
        "conflict": {"loop-conflict": 3},
        "limit": {"loop-conflict": 1},
    }
    assert held["failures"][0]["case"] == {"function": FUNCTION, "steps": []}


def test_a_clone_keeps_failures_beside_its_tests() -> None:
    folder = verb.clone_corpus()
    assert folder is not None
    assert folder.parts[-2:] == ("tests", "corpus")


def test_without_a_compiler_it_says_so(tilewright: Command, no_compiler: None) -> None:
    done = tilewright("fuzz", "--seconds", "1")
    assert done.code == 4
    assert "[compiler-missing]" in done.err


def test_models_that_fail_are_listed(tilewright: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(self: FuzzWorker, request: dict[str, object], seconds: float) -> object:
        if request["seed"] == 5_000_001:
            return "crashed: SIGSEGV"
        if request["seed"] == 5_000_002:
            raise KeyboardInterrupt
        return [{"kind": "sizes", "kernels": 2, "failure": "", "beside": "not run: no Max"}]

    monkeypatch.setattr(FuzzWorker, "ask", ask)
    done = tilewright("fuzz", "--models", "--seed", "5")
    assert done.code == 1
    failed = random_model(5_000_001)
    nodes = f"{len(failed.proto.graph.node)} nodes"
    said = " ".join(done.out.split())
    assert "models 2 in 0 s, seed 5, interrupted: " in said
    assert "kernels 2, all proved beside onnxruntime: 1 not run failures" in said
    assert f"model 5000001 ({failed.kind}, {nodes}): the worker crashed: SIGSEGV" in said
    assert "--corpus FOLDER keeps it" in said
    told = json.loads(tilewright("fuzz", "--models", "--seed", "5", "--json").out)
    assert told["failures"][0]["seed"] == 5_000_001
    assert told["onnxruntime"] == {"not run": 1}


def test_models_are_always_compiled(tilewright: Command) -> None:
    done = tilewright("fuzz", "--models", "--no-compile")
    assert done.code == 2
    assert done.err == (
        "UsageError: fuzz: --models compiles what it draws, so --no-compile has no meaning with "
        "it. [cli-fuzz-models]\n  Hint: leave one of both out.\n"
    )
