"""How much each decision matters: the share of the spread of times that its answers explain.

Times are compared as logarithms. The share is that of one question alone, less what as many answers
would explain by chance (Kelley's epsilon squared, 1935), so the shares of questions that matter
together alone are small, and all of them need not add up to 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..log.record import Trial
from ..space.decisions import answers_of, numbers

FEWEST = 8  # trials


@dataclass(frozen=True, slots=True)
class Importance:
    """Of one question. share: 0 to 1; answers: how many different ones were tried."""

    question: str
    share: float
    answers: int


def importances(trials: Sequence[Trial]) -> list[Importance]:
    """Of each question that had two answers or more, the most important first; none where too few
    trials ran. The parts of an answer, as the sizes of a tile, count as questions of their own.

    trials: of one function in one setting; those that were timed alone count, since others are the
    best ones again.
    """
    timed = [
        (numbers(answers_of(trial.trace)), math.log(trial.seconds))
        for trial in trials
        if trial.seconds is not None and not trial.method.session
    ]
    if len(timed) < FEWEST:
        return []
    found = []
    for question in dict.fromkeys(name for answers, _ in timed for name in answers):
        groups: dict[float | None, list[float]] = {}
        for answers, value in timed:
            groups.setdefault(answers.get(question), []).append(value)
        if len(groups) > 1:
            found.append(Importance(question, _explained(list(groups.values())), len(groups)))
    return sorted(found, key=lambda one: (-one.share, one.question))


def _explained(groups: Sequence[Sequence[float]]) -> float:
    """The share of the spread that lies between the groups, without what chance puts there."""
    values = [value for group in groups for value in group]
    mean = math.fsum(values) / len(values)
    total = math.fsum((value - mean) ** 2 for value in values)
    within = math.fsum(
        (value - math.fsum(group) / len(group)) ** 2 for group in groups for value in group
    )
    free = len(values) - len(groups)
    if total == 0.0 or free <= 0:
        return 0.0
    by_chance = (len(groups) - 1) * within / free
    return max(0.0, (total - within - by_chance) / total)
