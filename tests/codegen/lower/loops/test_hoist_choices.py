"""What the steps of a recurrence decide is tested outside of its lines: text, values, rest."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.lower.loops.hoist_choices import HoistChoices
from tilewright.codegen.lower.lower import contraction, lower, lower_to_nest
from tilewright.schedule.rules.default import default_schedule
from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.stmt import If
from tilewright.tir.target.target import Target
from tilewright.tir.te import te
from tilewright.tir.visit import found_in


def hoisted(value: str, around: str = "range(6)") -> str:
    """The loops of a step in which S[t + 1, i] is set to a value."""
    text = (
        "def f(S: inout(float32[7, 8]), A: float32[8]):\n"
        f"    for t in {around}:\n"
        "        for i in range(8):\n"
        f"            S[t + 1, i] = {value}\n"
    )
    return "\n".join(line[4:] for line in str(HoistChoices()(parse(text))).splitlines()[1:])


def test_a_choice_by_the_step_stands_outside_of_the_lines() -> None:
    text = hoisted("select(t % 3 == 0, S[t, i // 2], S[t, i // 2 + 4])")
    assert text == (
        "for t in range(6):\n"
        "    if t % 3 == 0:\n"
        "        for i in range(8):\n"
        "            S[t + 1, i] = S[t, i // 2]\n"
        "    else:\n"
        "        for i in range(8):\n"
        "            S[t + 1, i] = S[t, i // 2 + 4]"
    )


def test_a_choice_within_a_branch_is_made_there() -> None:
    text = hoisted("select(t < 2, select(t < 1, S[t, i], 2.0), S[t, i // 2])")
    assert text.count("if t < 2:") == text.count("if t < 1:") == 1
    assert text.count("for i in range(8):") == 3
    assert "select" not in text


def test_one_choice_in_several_places_is_one_test() -> None:
    text = hoisted("select(t < 2, S[t, i], 0.0) + select(t < 2, 1.0, S[t, i // 2])")
    assert text.count("if ") == 1
    assert "S[t + 1, i] = S[t, i] + 1.0" in text


def test_at_most_three_choices_one_behind_the_other() -> None:
    parts = " + ".join(f"select(t < {n}, S[t, i], {n}.0)" for n in range(1, 5))
    text = hoisted(parts)
    assert text.count("if ") == 1 + 2 + 4
    assert text.count("select(t < 4, ") == 8


@pytest.mark.parametrize(
    "value",
    [
        "select(i < 3, S[t, i // 2], 0.0)",  # the line decides
        "select(A[i] < 3.0, S[t, i // 2], 0.0)",  # data decide
        "select(A[t] < 3.0, S[t, i // 2], 0.0)",
        "select(t < 3, A[i], 0.0)",  # it looks at nothing of its own
        "select(t < 3, S[t + 1, i], 0.0) + A[i]",  # nor at another element
        "S[t, i // 2]",
    ],
)
def test_other_choices_stay(value: str) -> None:
    assert "if " not in hoisted(value)


def test_a_loop_that_threads_share_out_is_left() -> None:
    assert "if " not in hoisted("select(t < 3, S[t, i // 2], 0.0)", "parallel(6)")


def halving(steps: int, n: int) -> PrimFunc:
    """Every third step looks at the first half twice, another one at both halves."""
    x = te.placeholder((n,), "float32", name="X")
    state = te.state((steps, n), "float32", name="S")
    first = te.compute((1, n), lambda t, i: x[i], name="first")

    def element(t: Expr, i: Expr) -> Expr:
        low, high = state[t - 1, i // 2], state[t - 1, i // 2 + n // 2]
        return te.select(te.eq(t % 3, 0), low * 2.0, te.select(t % 3 > 1, high, low - high))

    made = te.scan(first, te.compute((steps, n), element, name="step"), state)
    y = te.compute((n,), lambda i: made[steps - 1, i], name="Y")
    return te.func(x, y, name="halving")


@pytest.mark.parametrize("steps", [1, 2, 3, 9])
def test_values_stay(steps: int) -> None:
    func, target = halving(steps, 8), Target.parse("c:avx2")
    for scheduled in (func, default_schedule(func, target).func):
        lowered = lower(lower_to_nest(contraction(scheduled, target)), target)
        assert bool(found_in(lowered.body, If)) == (steps > 3)
        x = np.arange(8, dtype=np.float32)
        (found,) = interpret(lowered, x, checked=True)
        np.testing.assert_array_equal(found, evaluate(func, {"X": x})["Y"])
