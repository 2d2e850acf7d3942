"""driver/check/chain.py: the blocks of a schedule against the function's own."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace

import pytest

import tilewright as tw
from tilewright import te
from tilewright.driver import build_code
from tilewright.driver.build_program import build_program
from tilewright.driver.check import chain
from tilewright.driver.check.chain import TOLERANCE, changed_kernels, check_chain
from tilewright.driver.check.check import CheckError
from tilewright.driver.check.program import KernelCheck, ProgramCheckError
from tilewright.driver.lower import lower_function
from tilewright.schedule.primitives.blocks import inline
from tilewright.tir.expr import Expr, Var
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.visit import substitute

from ...tiny_program import constants, tiny

SCALAR = Target.parse("c:scalar")


def sums(m: int = 5, n: int = 7) -> PrimFunc:
    x = te.placeholder((m, n), "float32", name="X")
    p = te.compute((m, n), lambda i, j: x[i, j] * te.cast(i + 2 * j, "float32"), name="P")
    y = te.compute((m, m), lambda i, j: p[i, 0] + p[j, 2], name="Y")
    return te.func(x, y, name="sums")


def inlined(func: PrimFunc) -> tw.Schedule:
    sch = tw.Schedule(func)
    sch.compute_inline("P")
    return sch


@pytest.fixture
def swapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """compute_inline puts the indices of a read in the wrong order."""

    def turn(value: Expr, point: Mapping[Var, Expr]) -> Expr:
        return substitute(value, dict(zip(point, reversed(point.values()), strict=True)))

    monkeypatch.setattr(inline, "substitute", turn)


def test_a_verdict_says_which_steps_changed_the_blocks_and_what_numbers_say_of_them() -> None:
    assert tw.prove(inlined(sums()), SCALAR).scope == (
        "P1 to P5 of the nest before vectorising, against its blocks as the schedule left them",
        "those, after compute_inline, and its own: equal in float64 on random data",
    )
    assert tw.prove(sums(), SCALAR).scope == (
        "P1 to P5 of the nest before vectorising, against the function's own blocks",
    )


def test_blocks_too_large_to_be_compared_are_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "MOST_OPERATIONS", 10)
    verdict = tw.prove(inlined(sums()), SCALAR)
    assert verdict.status == "proved"
    assert (
        verdict.scope[1]
        == "those, after compute_inline, and its own: too large to be compared here"
    )


@pytest.mark.usefixtures("swapped")
def test_blocks_that_a_step_made_wrong_are_refuted() -> None:
    verdict = tw.prove(inlined(sums()), SCALAR)
    assert verdict.status == "refuted"
    assert [str(failure) for failure in verdict.failures] == [
        "values: the schedule of 'sums' changes the value of 'Y'."
    ]


@pytest.mark.needs_cc
@pytest.mark.usefixtures("swapped")
def test_blocks_that_a_step_made_wrong_are_not_built() -> None:
    with pytest.raises(CheckError, match=r"changes the value of 'Y'\. \[check-chain\]"):
        tw.build(inlined(sums()), SCALAR)


@pytest.mark.usefixtures("swapped")
def test_kernels_of_a_model_with_wrong_blocks_are_found() -> None:
    right, wrong = tw.Schedule(sums()), inlined(sums())
    kernels = {
        name: SimpleNamespace(func=sch.original, canonical=lower_function(sch, SCALAR).canonical)
        for name, sch in (("right", right), ("wrong", wrong))
    }
    found = changed_kernels(kernels, SCALAR, strict=False)  # type: ignore[arg-type]
    assert {name: check.verdict for name, check in found.items()} == {
        "wrong": "the schedule of 'sums' changes the value of 'Y'."
    }


@pytest.mark.needs_cc
def test_a_model_with_wrong_blocks_is_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {"relu": KernelCheck("the schedule of 'relu' changes the value of 'Y'.", None, 0.0)}
    monkeypatch.setattr(build_code, "changed_kernels", lambda *given, **options: wrong)
    with pytest.raises(ProgramCheckError, match="'relu': the schedule of 'relu' changes"):
        build_program(tiny(), constants(), "c:scalar")


def doubled(factor: float) -> PrimFunc:
    x = te.placeholder((64,), "float64", name="X")
    return te.func(x, te.compute((64,), lambda i: x[i] * factor, name="Y"), name="doubled")


def test_the_values_of_blocks_may_differ_by_the_order_of_sums_and_no_more() -> None:
    assert TOLERANCE == 1e-11
    check_chain(doubled(2.0), doubled(2.0 * (1 + 0.9e-11)))
    with pytest.raises(CheckError, match="check-chain"):
        check_chain(doubled(2.0), doubled(2.0 * (1 + 1.1e-11)))
