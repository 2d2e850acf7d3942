"""The best schedules of similar functions, to be tried first.

Two functions are similar when they differ only in numbers: sizes, constants. Their rules ask the
same questions, mostly with other candidates, so decisions are transferred by name: to the nearest
candidate, or to the rule's own choice where the decision was the rule's own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from ..space.decisions import GuidedWalk, decisions_of
from .choice import choose
from .file import Contents
from .record import Trial, Workload
from .setting import Setting, by_setting

MOST = 4  # schedules that are transferred
_NUMBER = re.compile(r"\d+")


def similar_walks(
    workload: Workload, rule: str, here: Setting, known: Contents
) -> list[GuidedWalk]:
    """The best decisions for similar functions, and for this one in other settings, nearest first.
    Trials of other rules or instructions are ignored.
    """
    texts = {one.key: one.text for one in known.workloads}
    candidates = []
    for key, trials in _by_function(known.trials, rule).items():
        distance = _distance(texts.get(key, ""), workload.text)
        for setting, members in by_setting(trials).items():
            best = choose(members).best
            if distance is None or best is None or best.is_default:
                continue
            at = Setting.of(best.conditions, sizes=best.timed_at)
            own = key == workload.key and at == here
            if not own and setting.instructions == here.instructions:
                candidates.append((setting.place != here.place, distance, best))
    nearest = sorted(candidates, key=lambda one: one[:2])[:MOST]
    return [GuidedWalk((), decisions=decisions_of(best.trace)) for _, _, best in nearest]


def _by_function(trials: Sequence[Trial], rule: str) -> dict[str, list[Trial]]:
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        if trial.rule == rule:
            groups.setdefault(trial.workload, []).append(trial)
    return groups


def _distance(text: str, other: str) -> float | None:
    """The logarithmic distance of the numbers of two texts; None where other text differs."""
    if _NUMBER.sub("#", text) != _NUMBER.sub("#", other):
        return None
    pairs = zip(_NUMBER.findall(text), _NUMBER.findall(other), strict=True)
    return sum(abs(math.log((1 + int(a)) / (1 + int(b)))) for a, b in pairs)
