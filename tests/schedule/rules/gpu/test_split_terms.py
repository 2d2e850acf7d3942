"""schedule/rules/gpu/split_terms: products whose terms several blocks share are right, and are
made where tiles are few.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright.schedule.rules.default import default_schedule, rule_for
from tilewright.schedule.rules.gpu.products import STAGES
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.trace.decisions import Question
from tilewright.tir.func import PrimFunc
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.target.target import Target

from ....codegen.cuda.test_warps_rule import product as halves
from ...programs import conv, integers, matmul, matmul_relu
from ...rule_checks import check
from .test_rules import batched

pytestmark = pytest.mark.sampled(10)

A100 = Target.parse("cuda:sm_80")
QUESTION = "parts of the terms of "

FUNCTIONS: dict[str, Callable[[], PrimFunc]] = {
    "product": lambda: matmul(9, 6, 128),
    "with constants": lambda: matmul(9, 6, 128, constant=True),
    "and what follows": lambda: matmul_relu(17, 18, 128),
    "batched": lambda: batched(2, 9, 10, 128),
    "convolution": lambda: conv(3, 4, 128, 6),
    "grouped convolution": lambda: conv(3, 3, 256, 4, groups=2),
}


class Parts:
    """Decisions: so many parts of the terms, so many stages; the default for others."""

    def __init__(self, parts: int, stages: int = STAGES[0]) -> None:
        self.answers = {QUESTION: parts, "stages of ": stages}
        self.met: list[str] = []

    def choose(self, question: Question) -> int:
        for start, wanted in self.answers.items():
            if question.name.startswith(start):
                self.met.append(start)
                return question.candidates.index(wanted)
        return question.default


def parts_of(sch: Schedule) -> list[object]:
    """What the questions for parts were answered."""
    names = [(str(dict(step.arguments).get("name", "")), step.decision) for step in sch.trace.steps]
    return [decision for name, decision in names if name.startswith(QUESTION)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_terms_in_parts_are_right(name: str) -> None:
    func = FUNCTIONS[name]()
    assert rule_for(func, A100).name == "grid products"
    answered = Parts(2)
    check(func, A100, answered)
    assert QUESTION in answered.met


@pytest.mark.parametrize("stages", STAGES)
def test_slices_may_come_ahead_of_their_use(stages: int) -> None:
    answered = Parts(2, stages)
    check(matmul_relu(17, 18, 128), A100, answered)
    assert set(answered.met) == set(answered.answers)


@pytest.mark.needs_cxx
@pytest.mark.parametrize("kind", ["float32", "float16", "int8"])
def test_the_kernels_of_parts_are_right(kind: str) -> None:
    """Their CUDA C, each access looked at."""
    func = halves(20, 24, 256, kind, weights=True, finished=kind != "int8")
    arrays = integers(func)
    constants = {b.name: arrays[b.name] for b in func.constants}
    answered = Parts(4, stages=3)
    kernel = tw.build(default_schedule(func, A100, answered), A100, constants=constants)
    assert QUESTION in answered.met
    assert kernel.proof.status == "proved"
    assert len(kernel.artifact.run.launches) == 2
    inputs = [arrays[b.name] for b in func.inputs if b not in func.constants]
    expected = evaluate(func, arrays)[func.outputs[0].name]
    np.testing.assert_array_equal(tw.emulated(kernel, checked=True)(*inputs), expected)


@pytest.mark.parametrize("make", [matmul, halves], ids=["floats", "halves"])
def test_parts_are_made_where_tiles_are_few(make: Callable[[int, int, int], PrimFunc]) -> None:
    (few,) = parts_of(default_schedule(make(16, 64, 4096), A100))
    (many,) = parts_of(default_schedule(make(4096, 4096, 1024), A100))
    assert (few, many) == (16, 1)


def test_terms_of_a_sum_in_order_and_those_that_are_few_stay_together() -> None:
    assert parts_of(default_schedule(matmul(16, 64, 4096), A100, strict=True)) == []
    assert parts_of(default_schedule(matmul(16, 64, 127), A100)) == []
