"""A rule prices itself: what it declares is all that anybody asks of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from tilewright.schedule.cost.grid import KERNEL_SECONDS
from tilewright.schedule.estimate import estimate
from tilewright.schedule.rules import default
from tilewright.schedule.rules.default import GRID_RULES, RULES, rule_for
from tilewright.schedule.rules.gpu.elementwise import schedule_points
from tilewright.schedule.rules.rule import Rule
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.instructions.instructions import Instruction
from tilewright.tir.instructions.tensor_intrinsics import TENSOR_INTRINSICS
from tilewright.tir.target.target import Target

from ..programs import chain, matmul, matmul_relu, running

CPU, GPU = Target.parse("c:avx512+vnni"), Target.parse("cuda:sm_90a")


@dataclass(frozen=True, slots=True)
class Unpriced(Rule):
    """A rule whose author says nothing of what it costs: block by block, without vectors."""

    name: ClassVar[str] = "unpriced"
    instructions: ClassVar[Mapping[str, Instruction]] = TENSOR_INTRINSICS

    def matches(self, func: PrimFunc) -> bool:
        """Always."""
        return True

    def apply(self, sch: Schedule, target: Target) -> None:
        """Take the steps that the target cannot do without."""
        for name in sch.blocks() if target.has_grid else ():
            schedule_points(sch, name)


@pytest.fixture
def unpriced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(default, "RULES", (Unpriced(), *RULES))
    monkeypatch.setattr(default, "GRID_RULES", (Unpriced(), *GRID_RULES))


@pytest.mark.usefixtures("unpriced")
@pytest.mark.parametrize("func", [matmul_relu(40, 48, 64), chain(70, 90), running(9, 21)])
def test_a_rule_that_nobody_priced_has_the_price_of_its_nest(func: PrimFunc) -> None:
    assert rule_for(func, CPU).name == "unpriced"
    assert estimate(func, CPU) == estimate(Schedule(func), CPU)


def test_its_price_is_not_that_of_another_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """A product without vectors takes as long as that, though a rule for products knows better."""
    func = matmul(128, 128, 128)
    known = estimate(func, CPU)
    monkeypatch.setattr(default, "RULES", (Unpriced(), *RULES))
    assert estimate(func, CPU) > 20 * known


@pytest.mark.usefixtures("unpriced")
def test_on_a_gpu_its_nests_are_kernels() -> None:
    func = matmul_relu(512, 512, 512)
    assert 2 * KERNEL_SECONDS < estimate(func, GPU) < 4 * KERNEL_SECONDS


def test_kernels_of_a_nest_cost_what_its_blocks_are_said_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    func = matmul(1024, 1024, 1024)
    known = estimate(func, GPU)
    monkeypatch.setattr(default, "GRID_RULES", (Unpriced(), *GRID_RULES))
    assert estimate(func, GPU) == known


@pytest.mark.usefixtures("unpriced")
@pytest.mark.parametrize("target", [CPU, GPU], ids=str)
def test_a_rule_that_says_nothing_of_sums_is_not_for_strict_builds(target: Target) -> None:
    func = matmul(16, 16, 16)
    assert rule_for(func, target).name == "unpriced"
    assert rule_for(func, target, strict=True).name != "unpriced"
    assert rule_for(func, target, strict=True).in_order


@pytest.mark.usefixtures("unpriced")
def test_a_rule_may_use_the_instructions_it_knows_and_the_target_has() -> None:
    func = matmul(16, 16, 16)
    assert rule_for(func, CPU).units == ("vpdpbusd", "vpdpwssd")
    assert rule_for(func, Target.parse("c:avx2")).units == ("vpmaddwd",)
    assert rule_for(func, Target.parse("c:avx512")).units == ()


@pytest.mark.parametrize("rule", [*RULES, *GRID_RULES], ids=lambda rule: rule.name)
def test_rules_are_values_with_names_of_their_own(rule: Rule) -> None:
    assert rule == type(rule)()
    assert [one.name for one in (*RULES, *GRID_RULES)].count(rule.name) == 1


def test_nobody_asks_which_rule_it_is(root: Path) -> None:
    asked = re.compile(r"isinstance\([^)]*Rule\b")
    files = (root / "schedule").rglob("*.py")
    assert not [str(path) for path in files if asked.search(path.read_text(encoding="utf-8"))]
