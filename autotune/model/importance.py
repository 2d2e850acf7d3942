"""The importance of each question: the share of the variance of the times that its choices explain.

Times are compared as logarithms. The share is that of one question alone, less what as many choices
would explain by chance (Kelley's epsilon squared, 1935). Interactions are not attributed, so the
shares need not add up to 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..log.record import Trial
from ..space.decisions import decisions_of, encode

FEWEST = 8  # trials


@dataclass(frozen=True, slots=True)
class Importance:
    """Of one question. share: 0 to 1; choices: how many different ones were tried."""

    question: str
    share: float
    choices: int


def importances(trials: Sequence[Trial]) -> list[Importance]:
    """The importance of each question with two choices or more, most important first; empty where
    too few trials ran. The parts of a tuple, such as the sizes of a tile, count as questions.

    trials: of one function in one setting. Those of confirmation sessions are left out: they repeat
    the best ones.
    """
    timed = [
        (encode(decisions_of(trial.trace)), math.log(trial.seconds))
        for trial in trials
        if trial.seconds is not None and not trial.method.session
    ]
    if len(timed) < FEWEST:
        return []
    ranked = []
    for question in dict.fromkeys(name for choices, _ in timed for name in choices):
        groups: dict[float | None, list[float]] = {}
        for choices, value in timed:
            groups.setdefault(choices.get(question), []).append(value)
        if len(groups) > 1:
            ranked.append(Importance(question, _explained(list(groups.values())), len(groups)))
    return sorted(ranked, key=lambda one: (-one.share, one.question))


def _explained(groups: Sequence[Sequence[float]]) -> float:
    """The share of the variance between the groups, less that expected by chance."""
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
