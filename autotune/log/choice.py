"""Which trial a log recommends: the fastest of those that beat the default; where none does, the
default.

The test is a sign test. Finalists and the default took turns in several processes, one after the
other; a finalist wins one of them where it is faster in most rounds, pair by pair, so that a
machine that drifts drifts for both. The luck of a kernel with the memory that it got is the same in
all rounds of a process and another in the next, so processes are what is counted, not rounds. Were
a finalist no faster than the default, it would win as many or more with the probability that a coin
does; that has to be at most `LEVEL`, divided by the number of finalists (Bonferroni). A default
that nothing beats is thus replaced in at most 5 of 100 searches.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from statistics import median

from .record import Trial

LEVEL = 0.05


def chosen(trials: Sequence[Trial]) -> Trial | None:
    """The trial whose schedule is to be used, of one workload under one set of conditions.

    Where there were finals, the last ones of each rule count, of whose winners the fastest is
    taken: each rule has a default of its own, and rules do not meet in one session. Before the
    finals a trial replaces the default where its slowest sample is faster than the default's
    fastest one: they did not take turns, so what is nearer may be drift.
    """
    right = [trial for trial in trials if trial.seconds is not None]
    finals = [trial for trial in right if trial.method.session]
    if not finals:
        return _alone(right)
    last = {t.rule: t.method.session for t in sorted(finals, key=lambda trial: trial.time)}
    sessions = [[t for t in finals if t.method.session == one] for one in last.values()]
    return min(map(_of_session, sessions), key=_seconds)


def _alone(trials: Sequence[Trial]) -> Trial | None:
    default = min((trial for trial in trials if trial.is_default), key=_seconds, default=None)
    if default is None:
        return min(trials, key=_seconds, default=None)
    faster = [trial for trial in trials if max(trial.samples) < min(default.samples)]
    return min(faster, key=_seconds, default=default)


def _of_session(trials: Sequence[Trial]) -> Trial:
    default = next((trial for trial in trials if trial.is_default), None)
    if default is None:
        return min(trials, key=_seconds)
    rivals = [trial for trial in trials if not trial.is_default]
    faster = [trial for trial in rivals if is_faster(trial, default, len(rivals))]
    return min(faster, key=lambda trial: _ratio(trial, default), default=default)


def is_faster(trial: Trial, other: Trial, rivals: int = 1) -> bool:
    """Whether one trial took less than another in the same rounds, beyond their noise.

    rivals: how many trials are compared with that one.
    """
    wins = [won(mine, theirs) for mine, theirs in _units(trial, other)]
    return rivals * by_chance(sum(wins), len(wins)) <= LEVEL


def won(mine: Sequence[float], theirs: Sequence[float]) -> bool:
    """Whether a candidate was faster than another one in most rounds of a process."""
    return median(a / b for a, b in zip(mine, theirs, strict=True)) < 1.0


def by_chance(wins: int, of: int) -> float:
    """The probability that a coin wins so often, or more often."""
    return sum(comb(of, n) for n in range(wins, of + 1)) / float(2**of)


def _units(trial: Trial, other: Trial) -> list[tuple[Sequence[float], Sequence[float]]]:
    """The samples of both by process; by round where there was one process."""
    many = trial.method.processes
    size = len(trial.samples) // many if many > 1 else 1
    starts = range(0, min(len(trial.samples), len(other.samples)), size)
    return [(trial.samples[n : n + size], other.samples[n : n + size]) for n in starts]


def _ratio(trial: Trial, other: Trial) -> float:
    """Median of the time over that of the other one, round by round."""
    return median(a / b for a, b in zip(trial.samples, other.samples, strict=False))


def _seconds(trial: Trial) -> float:
    assert trial.seconds is not None
    return trial.seconds
