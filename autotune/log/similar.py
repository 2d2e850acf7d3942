"""What was best for functions like this one, to be tried early.

Two functions are alike when they differ in numbers alone: sizes, constants. Their schedules answer
the same questions, mostly with other candidates, so answers are taken over by name: the nearest
candidate, or the rule's own where the answer was the rule's own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from ..space.decisions import Answering, answers_of
from .choice import chosen
from .file import Contents
from .record import Trial, Workload
from .setting import Setting, by_setting

MOST = 4  # functions that are followed
_NUMBER = re.compile(r"\d+")


def similar_walks(workload: Workload, rule: str, here: Setting, known: Contents) -> list[Answering]:
    """Decisions that were best for functions alike, the nearest first, or for this one in another
    setting; those of other rules or instructions say nothing.
    """
    texts = {one.key: one.text for one in known.workloads}
    found = []
    for key, trials in _by_function(known.trials, rule).items():
        far = _distance(texts.get(key, ""), workload.text)
        for setting, members in by_setting(trials).items():
            best = chosen(members)
            if far is None or best is None or best.is_default:
                continue
            own = key == workload.key and Setting.of(best.conditions) == here
            if not own and setting.instructions == here.instructions:
                found.append((setting.place != here.place, far, best))
    nearest = sorted(found, key=lambda one: one[:2])[:MOST]
    return [Answering((), answers=answers_of(best.trace)) for _, _, best in nearest]


def _by_function(trials: Sequence[Trial], rule: str) -> dict[str, list[Trial]]:
    found: dict[str, list[Trial]] = {}
    for trial in trials:
        if trial.rule == rule:
            found.setdefault(trial.workload, []).append(trial)
    return found


def _distance(text: str, other: str) -> float | None:
    """How far apart the numbers of two functions are, as logarithms; None where more differs."""
    if _NUMBER.sub("#", text) != _NUMBER.sub("#", other):
        return None
    pairs = zip(_NUMBER.findall(text), _NUMBER.findall(other), strict=True)
    return sum(abs(math.log((1 + int(a)) / (1 + int(b)))) for a, b in pairs)
