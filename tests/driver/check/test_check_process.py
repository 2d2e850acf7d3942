"""driver/check/check_process.py: a second process finds what this one would find, and what it does
not come to is checked here.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pytest

from tilewright.codegen.c.program import emit_program
from tilewright.codegen.c.program_source import program_source
from tilewright.driver import compile_ahead
from tilewright.driver.build_program import build_program
from tilewright.driver.check import check_process
from tilewright.driver.check.check_process import CheckedObject, CheckJob, CheckProcess
from tilewright.driver.check.program import KernelCheck, KernelChecker
from tilewright.driver.lower_program import lower_program
from tilewright.runtime.toolchain.compile import compile_shared
from tilewright.tir.target.target import Target

from ...tiny_program import constants, tiny

pytestmark = pytest.mark.needs_cc

TARGET = Target.parse("c:scalar")
COPIES = 4  # of each kernel, so that both processes have some


@cache
def checked(old: str = "", new: str = "") -> tuple[CheckedObject, dict[str, CheckJob]]:
    """The tiny model's object, its C changed behind everybody's back, and several jobs of each of
    its kernels.
    """
    lowered = lower_program(tiny(), TARGET)
    artifact = emit_program(lowered.program, TARGET)
    text = program_source(artifact)
    assert old in text
    shared = compile_shared(text.replace(old, new) if old else text, TARGET)
    jobs = {}
    for name, kernel in lowered.kernels.items():
        symbol = f"{artifact.symbol}_{name}"
        prepare = None if kernel.prepare is None else f"{symbol}_prepare"
        for copy in range(COPIES):
            jobs[f"{name} {copy}"] = CheckJob(kernel.func, symbol, prepare, False)
    return CheckedObject(artifact, shared), jobs


def found(
    process: CheckProcess, what: CheckedObject, jobs: dict[str, CheckJob]
) -> dict[str, KernelCheck]:
    checks = process.checks(what, KernelChecker(what.artifact, what.shared), jobs)
    assert list(checks) == list(jobs)
    return checks


def without_seconds(checks: dict[str, KernelCheck]) -> dict[str, KernelCheck]:
    return {name: replace(check, seconds=0.0) for name, check in checks.items()}


def served(what: CheckedObject, jobs: dict[str, CheckJob]) -> dict[str, KernelCheck]:
    """What the other process finds, of all kernels."""
    return CheckProcess()._serve(what, deque(jobs), jobs)


def alone(what: CheckedObject, jobs: dict[str, CheckJob]) -> dict[str, KernelCheck]:
    checker = KernelChecker(what.artifact, what.shared)
    return {name: job.run(checker) for name, job in jobs.items()}


def test_both_find_what_one_finds() -> None:
    what, jobs = checked()
    checks = found(CheckProcess(), what, jobs)
    assert all(check.verdict == "ok" for check in checks.values())
    assert without_seconds(checks) == without_seconds(alone(what, jobs))


def test_the_other_process_checks_kernels() -> None:
    what, jobs = checked()
    assert without_seconds(served(what, jobs)) == without_seconds(alone(what, jobs))


def test_the_other_process_finds_what_is_wrong() -> None:
    what, jobs = checked("+ B[", "- B[")
    checks = served(what, jobs)
    bad = {name for name, check in checks.items() if not check.ok}
    assert bad == {name for name in jobs if name.startswith("add")}
    assert all(checks[name].verdict.startswith("max error / bound") for name in bad)


def test_a_kernel_that_touches_what_it_may_not_is_found_there() -> None:
    what, jobs = checked("S[", "S[210] = 0, S[")
    checks = served(what, jobs)
    assert {check.verdict for check in checks.values() if not check.ok} == {
        "it reads or writes behind 'S', where it may not."
    }


def test_where_the_process_ends_all_is_checked_here() -> None:
    what, jobs = checked()
    process = CheckProcess()
    assert process._process is not None
    process._process.kill()
    process._process.wait()
    assert without_seconds(found(process, what, jobs)) == without_seconds(alone(what, jobs))


@pytest.mark.parametrize("command", [["/no/such/python"], [sys.executable, "-c", "print('?')"]])
def test_where_there_is_no_process_all_is_checked_here(
    monkeypatch: pytest.MonkeyPatch, command: Sequence[str]
) -> None:
    what, jobs = checked()
    monkeypatch.setattr(check_process, "worker_command", lambda: command)
    checks = found(CheckProcess(), what, jobs)
    assert without_seconds(checks) == without_seconds(alone(what, jobs))


def test_a_build_of_enough_kernels_starts_one(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[CheckProcess] = []

    class Noted(CheckProcess):
        def __init__(self) -> None:
            super().__init__()
            begun.append(self)

    monkeypatch.setattr(compile_ahead, "CheckProcess", Noted)
    monkeypatch.setattr(compile_ahead, "allowed_cpus", lambda: 2)
    build_program(tiny(), constants(), TARGET)
    assert not begun
    monkeypatch.setattr(compile_ahead, "FEW", 3)  # as many kernels as it has
    engine = build_program(tiny(), constants(), TARGET)
    assert len(begun) == 1
    assert {kernel.check for kernel in engine.parts.report.kernels} == {"ok"}
    monkeypatch.setattr(compile_ahead, "allowed_cpus", lambda: 1)
    build_program(tiny(), constants(), TARGET)
    assert len(begun) == 1
