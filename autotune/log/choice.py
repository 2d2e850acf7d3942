"""The policy of what is best: the schedule that a build takes, and how well its time is known.

Everything that names a best trial asks `choose`: results, logs, builds, tables, figures.

A confirmed trial won a sign test. In a confirmation session the finalists and the default take
turns in several processes, one after the other. A finalist wins a process where it is faster in
most rounds, compared pair by pair, so that drift of the machine affects both. Memory placement is
the same for all rounds of a process and varies between processes, so processes are counted, not
rounds. If a finalist were no faster than the default, the number of its wins would be binomial; the
probability of as many wins must be at most `LEVEL`, divided by the number of finalists
(Bonferroni). So a default that nothing beats is replaced in at most 5 of 100 searches.

A session of a busy machine may hide a winner. Where it stays busy in spite of repetitions
(places/confirmation.py) and there is no winner, the function is undecided: a build takes the
default, and the next search confirms it first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import comb
from statistics import median
from typing import Literal

from ..sizes import SizeValues
from .disturbance import drift_of, note_of
from .record import Trial

LEVEL = 0.05
FINALISTS = 4  # of a session, beside the default
NEAR = 1.1  # a candidate slower than this many times the default is no finalist

State = Literal["default", "candidate", "confirmed", "undecided"]


@dataclass(frozen=True, slots=True)
class ScheduleChoice:
    """What is known of one workload under one set of conditions.

    best: the trial whose schedule a build takes; None where nothing ran. default: the trial of the
    default that it is compared with, in the session of the best trial where it took part.
    state: "confirmed" where the best trial won against the default in fresh processes; "candidate"
    where it was faster in the search alone; "undecided" where the default is taken since a busy
    machine disturbed the confirmation of what awaits it; else "default".
    why: it is undecided, in words; else empty.
    awaiting: the trials that a confirmation session has yet to decide, fastest first.
    """

    best: Trial | None
    default: Trial | None
    state: State
    awaiting: tuple[Trial, ...] = field(default=(), repr=False)
    why: str = field(default="", repr=False)

    @property
    def seconds(self) -> float | None:
        """Seconds of the best trial."""
        return None if self.best is None else self.best.seconds

    @property
    def default_seconds(self) -> float | None:
        """Seconds of the default schedule."""
        return None if self.default is None else self.default.seconds

    def seconds_at(self, values: SizeValues) -> float | None:
        """Seconds of the best trial at one choice of sizes; None where unknown."""
        return None if self.best is None else self.best.seconds_at(values)

    def default_seconds_at(self, values: SizeValues) -> float | None:
        """Seconds of the default schedule at one choice of sizes; None where unknown."""
        return None if self.default is None else self.default.seconds_at(values)

    @property
    def gain(self) -> float | None:
        """The time of the default over that of the best trial."""
        default, best = self.default_seconds, self.seconds
        return None if default is None or best is None else default / best

    @property
    def is_disturbed(self) -> bool:
        """Whether the machine was unsteady while the default or the best trial was timed."""
        return any(trial is not None and drift_of(trial) > 0 for trial in (self.best, self.default))

    def __str__(self) -> str:
        if self.state == "undecided":
            return "undecided: machine busy"
        return self.state + (" ~" if self.is_disturbed else "")


def choose(trials: Sequence[Trial]) -> ScheduleChoice:
    """The choice among the trials of one workload under one set of conditions.

    Where there were confirmation sessions, one of each rule counts, and the fastest of their best
    trials is taken: each rule has its own default, and a session compares trials of one rule.
    Without a session a trial replaces the default only where its slowest sample is faster than the
    fastest one of the default, by more than the machine was disturbed: they did not take turns, so
    a smaller gain may be drift.
    """
    by_rule = _by(trials, lambda trial: trial.rule)
    counted = [one for each in by_rule for one in _counted(_sessions(each))]
    awaiting = tuple(trial for each in by_rule for trial in finalists(each))
    if counted:
        session = min(counted, key=lambda one: _seconds(_best_of_session(one)[0]))
        best, default = _best_of_session(session)
        if not best.is_default:
            won: State = "candidate" if default is None else "confirmed"
            return ScheduleChoice(best, default, won, awaiting)
        drift = max(map(drift_of, session))
        if not drift or not any(trial.rule == best.rule for trial in awaiting):
            return ScheduleChoice(best, default, "default", awaiting)
        why = f"the machine was busy during its confirmation: {note_of(drift)}"
        return ScheduleChoice(best, default, "undecided", awaiting, why)
    timed = [t for t in trials if t.seconds is not None and not t.method.session]
    default = _default(timed)
    if default is None:
        return ScheduleChoice(
            min(timed, key=_seconds, default=None), None, "candidate" if timed else "default"
        )
    faster = [trial for trial in timed if _is_clearly_faster(trial, default)]
    best = min(faster, key=_seconds, default=default)
    return ScheduleChoice(best, default, "default" if best is default else "candidate", awaiting)


def finalists(trials: Sequence[Trial]) -> tuple[Trial, ...]:
    """The trials of one rule that await a confirmation session beside the default, fastest first;
    empty where sessions have decided about all of them.

    They are the winner of an earlier session, and the fastest candidates of the search that took
    at most `NEAR` times as long as the default, each code once.
    """
    searched = [t for t in trials if t.seconds is not None and not t.method.session]
    default = _default(searched)
    if default is None:
        return ()
    near = [t for t in searched if _seconds(t) <= NEAR * _seconds(default)]
    rivals = {trial.source: trial for trial in sorted(near, key=_seconds, reverse=True)}
    rivals.pop(default.source, None)
    sessions = _sessions(trials)
    counted = _counted(sessions)
    winners = {_best_of_session(session)[0].source for session in counted}
    first = sorted(
        rivals.values(), key=lambda trial: (trial.source not in winners, _seconds(trial))
    )
    decisive = [one for one in sessions if _is_calm(one) or (one in counted and _has_winner(one))]
    decided = {trial.source for session in decisive for trial in session}
    if all(trial.source in decided for trial in first[:FINALISTS]):
        return ()
    return tuple(sorted(first[:FINALISTS], key=_seconds))


def _sessions(trials: Sequence[Trial]) -> list[list[Trial]]:
    """The confirmation sessions of one rule in which something ran, in the order of their ends; a
    single trial, as a killed search may leave, compares nothing.
    """
    ordered = sorted((t for t in trials if t.method.session), key=lambda trial: trial.time)
    sessions = _by(reversed(ordered), lambda trial: trial.method.session)
    ran = [one for one in sessions if len(one) > 1 and any(t.seconds is not None for t in one)]
    return [session[::-1] for session in reversed(ran)]


def _counted(sessions: Sequence[list[Trial]]) -> list[list[Trial]]:
    """The session of one rule that counts, alone; empty where there was none.

    It is the last one of a calm machine, else the last one with a winner, else the last one: a
    disturbance can hide a winner, and its times are not those of the kernels.
    """
    return sorted(sessions, key=lambda one: (_is_calm(one), _has_winner(one)))[-1:]


def _is_calm(session: Sequence[Trial]) -> bool:
    return not any(drift_of(trial) for trial in session)


def _has_winner(session: Sequence[Trial]) -> bool:
    return not _best_of_session(session)[0].is_default


def _best_of_session(trials: Sequence[Trial]) -> tuple[Trial, Trial | None]:
    """The best trial of a session, and the default that it was compared with."""
    timed = [trial for trial in trials if trial.seconds is not None]
    default = next((trial for trial in timed if trial.is_default), None)
    if default is None:
        return min(timed, key=_seconds), None
    rivals = [trial for trial in timed if not trial.is_default]
    faster = [trial for trial in rivals if is_faster(trial, default, len(rivals))]
    return min(faster, key=lambda trial: _ratio(trial, default), default=default), default


def _is_clearly_faster(trial: Trial, default: Trial) -> bool:
    """Whether a trial that did not take turns with the default is faster beyond any drift."""
    margin = (1.0 + drift_of(trial)) * (1.0 + drift_of(default))
    return margin * max(trial.samples) < min(default.samples)


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


def _default(trials: Iterable[Trial]) -> Trial | None:
    """The fastest trial of the default, of those that a calm machine timed where there are any."""
    defaults = [trial for trial in trials if trial.is_default and trial.seconds is not None]
    return min(defaults, key=lambda one: (drift_of(one) > 0, _seconds(one)), default=None)


def _by(trials: Iterable[Trial], key: Callable[[Trial], str]) -> list[list[Trial]]:
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        groups.setdefault(key(trial), []).append(trial)
    return list(groups.values())


def _seconds(trial: Trial) -> float:
    assert trial.seconds is not None
    return trial.seconds
