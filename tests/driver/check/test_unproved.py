"""driver/check/unproved.py: an undecided proof demands a run beside the reference."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.driver import lower
from tilewright.driver.build_program import build_program
from tilewright.driver.jobs import ProgramOptions
from tilewright.schedule.rules.default import default_schedule
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.source import as_source
from tilewright.schedule.verdict import Verdict
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target

from ...tiny_program import constants, expected, image, tiny

OFF = ProgramOptions(verify="off")
UNDECIDED = Verdict("unknown", reasons=("P2 takes isl more than 7 operations",))


def doubled() -> PrimFunc:
    x = te.placeholder((4,), "float32", name="X")
    return te.func(x, te.compute((4,), lambda i: x[i] * 2.0, name="Y"), name="doubled")


@pytest.fixture
def undecided(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Make the proof of functions of a name undecided; of all for an empty one."""
    prove = lower.prove

    def leave(name: str) -> None:
        monkeypatch.setattr(
            lower,
            "prove",
            lambda nest, *given: UNDECIDED if name in nest.name else prove(nest, *given),
        )

    return leave


def test_what_is_neither_proved_nor_checked_is_refused(undecided: Callable[[str], None]) -> None:
    undecided("doubled")
    with pytest.raises(tw.TilewrightError) as caught:
        tw.build(doubled(), "c:scalar", verify="off")
    assert str(caught.value) == (
        "ProofError: build: 'doubled' is neither proved nor checked; expected a proof, or a run "
        "beside the reference. [proof-unknown]\n"
        "  doubled: P2 takes isl more than 7 operations\n"
        "  Hint: verify='kernels' runs each kernel beside its reference.\n"
        "  Hint: or leave out the steps that the proof does not decide."
    )


def test_rewrites_alone_are_no_check_of_a_kernel(undecided: Callable[[str], None]) -> None:
    undecided("doubled")
    with pytest.raises(tw.TilewrightError, match=r"\[proof-unknown\]"):
        tw.build(doubled(), "c:scalar", verify="rewrites")


def test_a_kernel_for_another_machine_cannot_be_checked_here(
    undecided: Callable[[str], None],
) -> None:
    undecided("doubled")
    with pytest.raises(tw.TilewrightError) as caught:
        tw.build(doubled(), "c:neon")
    assert "Hint: build where the target is, with verify='kernels', which runs" in str(caught.value)


@pytest.mark.needs_cc
def test_a_check_stands_in_for_the_proof_and_the_kernel_says_so(
    undecided: Callable[[str], None],
) -> None:
    undecided("doubled")
    kernel = tw.build(doubled(), "c:scalar")
    np.testing.assert_array_equal(kernel(np.ones(4, np.float32)), np.full(4, 2, np.float32))
    assert "undecided: P2 takes isl more than 7 operations" in str(kernel.proof)
    assert "undecided: P2 takes isl more than 7 operations" in repr(kernel)


@pytest.mark.needs_cc
def test_a_kernel_of_a_model_that_is_neither_proved_nor_checked_is_refused(
    undecided: Callable[[str], None],
) -> None:
    undecided("relu")
    with pytest.raises(tw.TilewrightError) as caught:
        build_program(tiny(), constants(), "c:scalar", options=OFF)
    assert "build: 'relu' is neither proved nor checked" in str(caught.value)


@pytest.mark.needs_cc
def test_an_engine_names_what_its_proof_left_open(undecided: Callable[[str], None]) -> None:
    undecided("relu")
    report = build_program(tiny(), constants(), "c:scalar").explain()
    assert report.proofs == {"proved": 2, "unknown": 1}
    (relu,) = [kernel for kernel in report.kernels if kernel.name == "relu"]
    assert relu.proof.endswith("; undecided: P2 takes isl more than 7 operations")
    assert relu.check == "ok"
    assert "undecided: P2 takes isl more than 7 operations; check ok" in str(report)


@pytest.mark.needs_cc
def test_a_given_schedule_that_is_neither_proved_nor_checked_gives_way_to_the_rule(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prove, seen = lower.prove, list[str]()

    def undecided_once(nest: PrimFunc, *given: object) -> Verdict:
        seen.append(nest.name)
        once = nest.name == "relu" and seen.count("relu") == 1
        return UNDECIDED if once else prove(nest, *given)  # type: ignore[arg-type]

    def given(func: PrimFunc, target: Target) -> Schedule:
        schedule = default_schedule(func, target)
        schedule.origin = "tuned"
        return schedule

    monkeypatch.setattr(lower, "prove", undecided_once)
    engine = build_program(tiny(), constants(), "c:scalar", source=as_source(given), options=OFF)
    report = engine.explain()
    assert report.notes == (
        "kernel 'relu': its schedule (tuned) gave way: its kernel is neither proved nor checked; "
        "it is scheduled by rule 'elementwise'",
    )
    assert report.proofs == {"proved": 3}
    np.testing.assert_allclose(engine(image()), expected(image()), rtol=1e-4, atol=1e-4)
