"""driver/check/ways.py: what our own checks refuse gives way to the next way, and is named."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest

import tilewright as tw
from tilewright.driver import build_kernel as building
from tilewright.driver.build_program import build_program
from tilewright.driver.check.check import CheckError
from tilewright.driver.check.ways import Ways
from tilewright.driver.jobs import ProgramOptions
from tilewright.driver.lower import DefinitionError
from tilewright.driver.lower_program import ProgramRefusedError, lower_program
from tilewright.runtime.kernel import Kernel
from tilewright.schedule.errors import ScheduleError
from tilewright.schedule.rules.default import rules_for
from tilewright.schedule.rules.plain import PlainRule
from tilewright.schedule.rules.products.contraction import ContractionRule
from tilewright.schedule.rules.reduction import ReductionRule
from tilewright.schedule.rules.rows import RowsRule
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.source import as_source
from tilewright.tir.errors import InternalError
from tilewright.tir.func import PrimFunc
from tilewright.tir.parsing.parser import parse
from tilewright.tir.target.target import Target

from ...schedule.programs import matmul, matmul_relu
from ...tiny_program import constants, expected, image, tiny

AVX2 = Target.parse("c:avx2")


def refuse(*_: object) -> None:
    """A rule whose first step is refused."""
    raise ScheduleError("split: planted.", code="split-cover")


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule for products takes a step that is refused."""
    monkeypatch.setattr(ContractionRule, "apply", refuse)


@pytest.mark.parametrize(
    ("target", "names"),
    [
        ("c:avx2", ["contraction", "reduction", "rows", "plain"]),
        ("cuda:sm_90a", ["grid rows", "plain"]),
    ],
)
def test_the_rules_that_take_a_function_end_with_its_plain_nest(
    target: str, names: list[str]
) -> None:
    found = rules_for(matmul(5, 33, 40), Target.parse(target))
    assert [rule.name for rule in found] == names


@pytest.mark.parametrize("target", ["c:avx2", "cuda:sm_90a"])
def test_the_plain_nest_of_a_function_is_proved_and_lowered(target: str) -> None:
    machine = Target.parse(target)
    for func in (matmul_relu(5, 33, 40), matmul(1, 1, 1)):
        ways = Ways(func, machine)
        error = CheckError("planted", code="check-differs")
        while (way := ways.best()).lowered.rule != PlainRule().name:
            ways.give_up("planted.", error)
        assert way.lowered.verdict.status == "proved"
        ways.give_up("planted.", error)
        with pytest.raises(CheckError, match="planted"):
            ways.best()


@pytest.mark.usefixtures("planted")
def test_a_rule_that_is_refused_gives_way_and_is_named(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "tilewright"):
        way = Ways(matmul(5, 33, 40), AVX2).best()
    assert (way.lowered.rule, way.lowered.schedule.origin) == ("reduction", "rule")
    assert way.notes("matmul") == (
        "kernel 'matmul': rule 'contraction' gave way: split: planted. [split-cover]; it is "
        "scheduled by rule 'reduction'",
    )
    assert [record.getMessage() for record in caplog.records] == [
        "'matmul': rule 'contraction' gave way: split: planted. [split-cover]"
    ]


def test_what_the_proof_refutes_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def lowered(what: Schedule, target: Target, **options: object) -> object:
        if what.trace.steps:
            raise InternalError("proof: planted.", code="proof-refuted")
        return lower(what, target, **options)  # type: ignore[arg-type]

    from tilewright.driver.check import ways

    lower = ways.lower_function
    monkeypatch.setattr(ways, "lower_function", lowered)
    assert Ways(matmul(5, 33, 40), AVX2).best().lowered.rule == "plain"


def test_where_no_way_is_left_the_first_refusal_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    for rule in (ContractionRule, ReductionRule, RowsRule, PlainRule):
        monkeypatch.setattr(rule, "apply", refuse)
    with pytest.raises(ScheduleError, match="split-cover"):
        Ways(matmul(5, 33, 40), AVX2).best()


def test_a_schedule_by_hand_does_not_give_way() -> None:
    def wrong(func: PrimFunc, target: Target) -> Schedule:
        sch = Schedule(func)
        sch.parallel(sch.loops("C")[0])
        outer, inner = sch.split(sch.loops("C")[2], (None, 2))
        sch.reorder(inner, outer)
        return sch

    with pytest.raises(ScheduleError, match="strict-order"):
        tw.build(matmul(4, 4, 8), "c:avx2", schedules=wrong, strict=True)


@pytest.mark.needs_cc
def test_a_kernel_by_hand_that_fails_its_check_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **how: object) -> None:
        raise CheckError("check: planted.", code="check-differs")

    monkeypatch.setattr(building, "check_kernel", fail)
    with pytest.raises(CheckError, match="planted"):
        tw.build(matmul(4, 4, 8), schedules=lambda func, target: Schedule(func))


def test_a_definition_that_is_wrong_has_no_other_way() -> None:
    func = parse(
        """
def f(X: float32[8], I: int64[8], Y: output(float32[8])):
    for i in range(8):
        with block("Y", vi=spatial(8, i)):
            Y[vi] = X[I[vi]]
"""
    )
    with pytest.raises(DefinitionError):
        Ways(func, AVX2).best()


@pytest.mark.needs_cc
@pytest.mark.usefixtures("planted")
def test_a_kernel_says_what_gave_way() -> None:
    a, b = np.ones((5, 40), np.float32), np.ones((40, 33), np.float32)
    kernel = tw.build(matmul(5, 33, 40))
    assert np.array_equal(kernel(a, b), a @ b)
    (note,) = kernel.notes
    assert note.startswith("kernel 'matmul': rule 'contraction' gave way: split: ")
    assert f"  note: {note}" in repr(kernel)


@pytest.mark.needs_cc
def test_a_kernel_that_fails_its_check_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    check, calls = building.check_kernel, []

    def fail_once(kernel: Kernel, *arguments: object, **how: object) -> object:
        calls.append(kernel.name)
        if len(calls) == 1:
            raise CheckError("check: planted.", code="check-differs")
        return check(kernel, *arguments, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(building, "check_kernel", fail_once)
    kernel = tw.build(matmul(5, 33, 40))
    assert kernel.notes == (
        "kernel 'matmul': rule 'contraction' gave way: its kernel failed the check: check: "
        "planted.; it is scheduled by rule 'reduction'",
    )


@pytest.mark.needs_cc
@pytest.mark.usefixtures("planted")
def test_a_program_whose_rule_is_refused_is_built_and_says_so() -> None:
    engine = build_program(tiny(), constants(), "c")
    np.testing.assert_allclose(engine(image()), expected(image()), rtol=1e-4, atol=1e-4)
    report = engine.explain()
    assert {kernel.name: kernel.rule for kernel in report.kernels}["mm1"] == "reduction"
    assert report.notes == (
        "kernel 'mm1': rule 'contraction' gave way: split: planted. [split-cover]; it is scheduled "
        "by rule 'reduction'",
    )


@pytest.mark.usefixtures("planted")
def test_what_can_be_taken_apart_is_not_scheduled_in_a_plainer_way() -> None:
    with pytest.raises(ProgramRefusedError) as caught:
        lower_program(tiny(), AVX2, divisible=("mm1",))
    assert caught.value.functions == ("mm1",)
    assert str(caught.value) == (
        "ProgramRefusedError: program: function 'mm1' of 'tiny' should be taken apart: rule "
        "'contraction' gave way: split: planted. [split-cover] [program-refused]"
    )
    with pytest.raises(ProgramRefusedError):
        build_program(
            tiny(), constants(), AVX2, options=ProgramOptions(divisible=frozenset({"mm1"}))
        )


def test_a_tuned_schedule_that_is_refused_gives_way_to_the_rule() -> None:
    def tuned(func: PrimFunc, target: Target) -> Schedule:
        sch = Schedule(func, origin="tuned")
        outer, inner = sch.split(sch.loops("C")[2], (None, 2))
        sch.reorder(inner, outer)
        return sch

    way = Ways(matmul(4, 4, 8), AVX2, as_source(tuned), strict=True).best()
    assert way.lowered.schedule.origin == "rule"
    assert way.refusals[0].origin == "tuned"
    assert str(way.refusals[0]).startswith(
        "its schedule (tuned) gave way: build: the schedule of 'matmul' changes the order of a sum"
    )
    assert replace(way, refusals=()).notes("matmul") == ()
