"""Prune a log: drop the trials that no reader needs to choose a schedule."""

from __future__ import annotations

from collections.abc import Sequence

from .choice import FINALISTS
from .file import Contents, contents
from .record import Trial
from .setting import by_setting

KEPT = 16  # candidates of each function, at least `FINALISTS`


def prune(known: Contents, keep: int = KEPT) -> Contents:
    """A log of the same choices: of each function in each setting the defaults, the confirmation
    sessions and the `keep` fastest candidates. Failed trials and invalid lines go.
    """
    assert keep >= FINALISTS
    by_key: dict[str, list[Trial]] = {}
    for trial in known.trials:
        by_key.setdefault(trial.workload, []).append(trial)
    kept = {
        id(trial)
        for trials in by_key.values()
        for members in by_setting(trials).values()
        for trial in _kept(members, keep)
    }
    return contents((*known.workloads, *(one for one in known.trials if id(one) in kept)))


def _kept(trials: Sequence[Trial], keep: int) -> list[Trial]:
    """The trials that are kept: each rule has its own default, and so its own candidates."""
    kept = [trial for trial in trials if trial.method.session or trial.is_default]
    for rule in dict.fromkeys(trial.rule for trial in trials):
        searched = [
            (trial.seconds, number)
            for number, trial in enumerate(trials)
            if trial.rule == rule and trial.seconds is not None and not trial.method.session
        ]
        fastest: dict[str, Trial] = {}
        for _, number in sorted(searched):
            fastest.setdefault(trials[number].source, trials[number])
        kept += list(fastest.values())[:keep]
    return kept
