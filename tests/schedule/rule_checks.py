"""Is the schedule that a rule makes right?"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tilewright.codegen.lower.lower import contraction, lower, lower_to_nest
from tilewright.schedule.canonical import canonical_form
from tilewright.schedule.proof.prove import prove
from tilewright.schedule.rules.default import default_schedule
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.trace.decisions import Decisions, Question
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.target.target import Target
from tilewright.tir.verify.verify import Stage, verify

from .programs import assert_replays, integers


class Answered:
    """Decisions: an answer for each question whose name is here, the default for others. met: the
    names that were asked for.
    """

    def __init__(self, answers: Mapping[str, object]) -> None:
        self.answers = answers
        self.met: set[str] = set()

    def choose(self, question: Question) -> int:
        if question.name not in self.answers:
            return question.default
        self.met.add(question.name)
        return question.candidates.index(self.answers[question.name])


def answer(sch: Schedule, name: str) -> object:
    """What the question of that name was answered."""
    (step,) = (step for step in sch.trace.steps if dict(step.arguments).get("name") == name)
    return step.decision


def check(
    func: PrimFunc,
    target: str | Target,
    decisions: Decisions | None = None,
    *,
    rtol: float = 2e-6,
    atol: float = 1e-30,
) -> Schedule:
    """The rule's schedule is right: values, stages, proof, replay; it can be lowered to the end."""
    machine = target if isinstance(target, Target) else Target.parse(target)
    sch = default_schedule(func, machine, decisions)
    verify(sch.func, Stage.SCHEDULED)
    contracted = contraction(sch.func, machine)
    nest = lower_to_nest(contracted)
    verify(nest, Stage.NEST)
    lower(nest, machine)
    arrays = integers(func)
    expected = evaluate(func, arrays)
    for lowered, barriers in ((sch.func, False), (nest, True)):
        results = interpret(lowered, *arrays.values(), checked=True, barriers=barriers)
        for buffer, result in zip(func.outputs, results, strict=True):
            np.testing.assert_allclose(result, expected[buffer.name], rtol=rtol, atol=atol)
    verdict = prove(nest, canonical_form(contracted))
    assert verdict.status == "proved", str(verdict)
    assert_replays(sch)
    return sch
