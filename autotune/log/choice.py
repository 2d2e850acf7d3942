"""Which trial is the best: the fastest of those that beat the default; the default where none does.

Everything that names a best trial asks this module: results, logs, builds, progress tables.

The decision is a sign test. In a confirmation session the finalists and the default take turns in
several processes, one after the other. A finalist wins a process where it is faster in most rounds,
compared pair by pair, so that drift of the machine affects both. Memory placement is the same for
all rounds of a process and varies between processes, so processes are counted, not rounds. If a
finalist were no faster than the default, the number of its wins would be binomial; the probability
of as many wins must be at most `LEVEL`, divided by the number of finalists (Bonferroni). So a
default that nothing beats is replaced in at most 5 of 100 searches.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from statistics import median

from .record import Trial

LEVEL = 0.05


def best_trial(trials: Sequence[Trial]) -> Trial | None:
    """The trial whose schedule is recommended, of one workload under one set of conditions.

    Where there were confirmation sessions, the last one of each rule counts, and the fastest of
    their winners is taken: each rule has its own default, and a session compares trials of one
    rule. Without a session a trial replaces the default only where its slowest sample is faster
    than the fastest one of the default: they did not take turns, so a smaller gain may be drift.
    """
    timed = [trial for trial in trials if trial.seconds is not None]
    confirmed = [trial for trial in timed if trial.method.session]
    if not confirmed:
        return _best_of_search(timed)
    last = {t.rule: t.method.session for t in sorted(confirmed, key=lambda trial: trial.time)}
    sessions = [[t for t in confirmed if t.method.session == one] for one in last.values()]
    return min(map(_best_of_session, sessions), key=_seconds)


def _best_of_search(trials: Sequence[Trial]) -> Trial | None:
    default = min((trial for trial in trials if trial.is_default), key=_seconds, default=None)
    if default is None:
        return min(trials, key=_seconds, default=None)
    faster = [trial for trial in trials if max(trial.samples) < min(default.samples)]
    return min(faster, key=_seconds, default=default)


def _best_of_session(trials: Sequence[Trial]) -> Trial:
    default = next((trial for trial in trials if trial.is_default), None)
    if default is None:
        return min(trials, key=_seconds)
    rivals = [trial for trial in trials if not trial.is_default]
    faster = [trial for trial in rivals if is_faster(trial, default, len(rivals))]
    return min(faster, key=lambda trial: _ratio(trial, default), default=default)


def is_faster(trial: Trial, other: Trial, rivals: int = 1) -> bool:
    """Whether a trial is significantly faster than another one of its session.

    rivals: the number of trials that are compared with the other one.
    """
    wins = [wins_most_rounds(mine, theirs) for mine, theirs in _units(trial, other)]
    return rivals * chance_of(sum(wins), len(wins)) <= LEVEL


def wins_most_rounds(mine: Sequence[float], theirs: Sequence[float]) -> bool:
    """Whether the samples of one candidate are faster than those of another in most rounds."""
    return median(a / b for a, b in zip(mine, theirs, strict=True)) < 1.0


def chance_of(wins: int, of: int) -> float:
    """The probability of at least so many wins when each has a chance of one half."""
    return sum(comb(of, n) for n in range(wins, of + 1)) / float(2**of)


def _units(trial: Trial, other: Trial) -> list[tuple[Sequence[float], Sequence[float]]]:
    """Pairs of samples, grouped by process; by round where there was one process."""
    many = trial.method.processes
    size = len(trial.samples) // many if many > 1 else 1
    starts = range(0, min(len(trial.samples), len(other.samples)), size)
    return [(trial.samples[n : n + size], other.samples[n : n + size]) for n in starts]


def _ratio(trial: Trial, other: Trial) -> float:
    """The median over the rounds of the ratio of both times."""
    return median(a / b for a, b in zip(trial.samples, other.samples, strict=False))


def _seconds(trial: Trial) -> float:
    assert trial.seconds is not None
    return trial.seconds
