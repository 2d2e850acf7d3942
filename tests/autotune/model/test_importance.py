from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tilewright.autotune.log.record import Trial
from tilewright.autotune.model.importance import importances
from tilewright.schedule.trace.trace import Step, Trace

from ..samples import trial


def asked(seconds: float, **chosen: object) -> Trial:
    """A trial that answered questions."""
    steps = tuple(
        Step(
            "sample_categorical",
            (("candidates", (answer,)), ("default", 0), ("name", name)),
            answer,
        )
        for name, answer in chosen.items()
    )
    return replace(trial(0), trace=Trace(steps), samples=(seconds,))


def test_what_decides_the_time_is_told_first() -> None:
    source = random.Random(0)
    trials = []
    for _ in range(60):
        rows, width, idle = (source.choice((1, 2, 4)) for _ in range(3))
        seconds = 1e-6 * 2.0**rows * 1.05**width * source.uniform(0.99, 1.01)
        trials.append(asked(seconds, idle=idle, rows=rows, width=width, same=3))
    first, *others = importances(trials)
    assert first.question == "rows"
    assert first.choices == 3
    assert first.share == pytest.approx(0.99, abs=0.02)
    assert {one.question for one in others} == {"idle", "width"}
    assert all(one.share < 0.1 for one in others)


def test_parts_of_an_answer_are_questions_of_their_own() -> None:
    trials = [asked(1e-6 * n, tile=(n, 8 - n % 2)) for n in range(1, 5) for _ in range(3)]
    assert [(one.question, one.choices) for one in importances(trials)] == [
        ("tile[0]", 4),
        ("tile[1]", 2),
    ]
    assert importances(trials)[0].share == pytest.approx(1.0)


def test_answers_that_are_all_different_explain_nothing() -> None:
    assert [one.share for one in importances([asked(n, rows=n) for n in range(1, 20)])] == [0.0]


def test_times_that_are_all_the_same_have_nothing_to_explain() -> None:
    assert [one.share for one in importances([asked(1.0, rows=n % 2) for n in range(20)])] == [0.0]


def test_too_few_trials_say_nothing() -> None:
    paired = replace(asked(1.0, rows=1), method=replace(trial(0).method, session="a"))
    trials = [*(asked(n, rows=n % 2) for n in range(1, 8)), paired, trial(1, outcome="wrong")]
    assert importances(trials) == []
