from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tilewright.driver.build_program import build_program
from tilewright.driver.check.program import KernelCheck, KernelChecker, ProgramCheckError
from tilewright.driver.compile_ahead import CompileAhead
from tilewright.driver.jobs import ProgramOptions
from tilewright.driver.lower_program import LoweredKernel
from tilewright.runtime.arrays import ArgumentTypeError
from tilewright.schedule.rules.default import default_schedule
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.source import as_source
from tilewright.tir.errors import TargetError
from tilewright.tir.func import PrimFunc
from tilewright.tir.program.program import Copy
from tilewright.tir.program.syncs import place_syncs
from tilewright.tir.target.target import Target

from ..isas import HERE
from ..tiny_program import SIZE, constants, expected, image, piece, tiny

pytestmark = [pytest.mark.needs_cc, pytest.mark.isa]

SCALAR = "c:scalar"


@pytest.mark.parametrize("target", HERE)
def test_a_program_computes_what_it_means(target: str) -> None:
    engine = build_program(tiny(), constants(), target)
    for seed in range(3):
        got = engine(image(seed))
        np.testing.assert_allclose(got, expected(image(seed)), rtol=1e-4, atol=1e-4)
    assert {kernel.check for kernel in engine.explain().kernels} == {"ok"}
    assert {kernel.check_ran for kernel in engine.explain().kernels} == {
        "normal data on 1, 2 and 3 threads, wide data on 2 threads, positive data on 3 threads; "
        "with guard pages"
    }


def test_a_copy_is_a_step_like_any_other() -> None:
    program = tiny()
    copy = Copy(piece("arena", SIZE), piece("output", 0))
    program = place_syncs(replace(program, body=(*program.launches[:3], copy)))
    engine = build_program(program, constants(), SCALAR)
    wanted = image().astype(np.float64) @ constants()["w2"]
    for threads in (1, 2, 3):
        np.testing.assert_allclose(engine(image(), threads=threads), wanted, atol=1e-4)


def test_a_constant_may_be_a_view_that_repeats_a_value() -> None:
    splat = np.broadcast_to(np.float32(0.5), (20, 35))
    engine = build_program(tiny(), {**constants(), "w2": splat}, SCALAR)
    wide = image().astype(np.float64)
    wanted = np.maximum(wide @ constants()["w1"], 0) + 0.5 * wide.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(engine(image()), wanted, atol=1e-4)
    assert engine.memory_plan.kept_bytes == constants()["w1"].nbytes


def test_weights_need_not_be_kept() -> None:
    engine = build_program(tiny(), constants(), SCALAR, options=ProgramOptions(keep_weights=False))
    assert engine.parts.plain is None
    assert engine.memory_plan.kept_bytes == 0


def test_checks_may_be_left_out() -> None:
    engine = build_program(tiny(), constants(), SCALAR, options=ProgramOptions(verify="off"))
    assert {kernel.check for kernel in engine.explain().kernels} == {"off"}


def tuned(func: PrimFunc, target: Target) -> Schedule:
    schedule = default_schedule(func, target)
    schedule.origin = "tuned"
    return schedule


def test_schedules_come_from_the_source() -> None:
    engine = build_program(tiny(), constants(), SCALAR, source=as_source(tuned))
    assert engine.tuning.counts == {"tuned": 3}


def test_a_given_schedule_that_fails_its_check_is_replaced_by_rule(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check = KernelChecker.check
    calls: list[str] = []

    def fail_once(
        self: KernelChecker, func: PrimFunc, run: str, prepare: str | None, *, strict: bool
    ) -> KernelCheck:
        assert not strict
        calls.append(func.name)
        wrong = func.name == "relu" and calls.count("relu") == 1
        return KernelCheck("it is wrong.", 9.0, 0.0) if wrong else check(self, func, run, prepare)

    told: list[str] = []
    add = CompileAhead.add

    def listen(self: CompileAhead, kernel: LoweredKernel) -> None:
        told.extend([kernel.func.name] if kernel.seconds else [])
        add(self, kernel)

    monkeypatch.setattr(KernelChecker, "check", fail_once)
    monkeypatch.setattr(CompileAhead, "add", listen)
    report = build_program(tiny(), constants(), SCALAR, source=as_source(tuned)).explain()
    assert {kernel.name: kernel.origin for kernel in report.kernels} == {
        "mm1": "tuned",
        "relu": "rule",
        "add": "tuned",
    }
    assert report.notes == (
        "kernel 'relu': its schedule (tuned) gave way: its kernel failed the check: it is wrong.; "
        "it is scheduled by rule 'elementwise'",
    )
    assert told == ["mm1", "relu", "add", "relu"]  # the seconds of each that was lowered, once


def test_a_kernel_that_fails_its_check_in_every_way_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(self: KernelChecker, func: PrimFunc, *given: object, **how: object) -> KernelCheck:
        return KernelCheck("it is wrong." if func.name == "mm1" else "ok", None, 0.0)

    monkeypatch.setattr(KernelChecker, "check", fail)
    with pytest.raises(ProgramCheckError) as caught:
        build_program(tiny(), constants(), SCALAR)
    assert caught.value.functions == ("mm1", "mm2")  # both are launches of that kernel
    options = ProgramOptions(divisible=frozenset({"mm2"}))
    with pytest.raises(ProgramCheckError):
        build_program(tiny(), constants(), SCALAR, options=options)


def test_every_constant_is_needed() -> None:
    with pytest.raises(ArgumentTypeError) as caught:
        build_program(tiny(), {"w1": constants()["w1"]}, SCALAR)
    assert str(caught.value) == (
        "ArgumentTypeError: build: constant 'w2' of 'tiny' is float32[20, 35]; got none. "
        "[program-constant]"
    )


def test_a_target_that_runs_nothing_is_refused() -> None:
    with pytest.raises(TargetError) as caught:
        build_program(tiny(), constants(), "null")
    assert str(caught.value) == (
        "TargetError: build: target 'null' runs nothing; expected 'c', 'cuda' or 'python'. "
        "[build-target]"
    )


def test_what_a_cpu_runs_is_not_emulated() -> None:
    with pytest.raises(TargetError) as caught:
        build_program(tiny(), constants(), SCALAR, options=ProgramOptions(verify="emulated"))
    assert str(caught.value) == (
        "TargetError: build: verify='emulated' runs kernels for a GPU on the CPU; the target is "
        "'c:scalar'. [build-emulated]\n"
        "  Hint: verify='kernels' runs each kernel where it belongs."
    )
