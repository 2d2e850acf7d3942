"""Which trial a log recommends: the fastest of the last paired rounds; where they tie, the
default.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..runtime.timing import summarise
from .record import Trial


def chosen(trials: Sequence[Trial]) -> Trial | None:
    """The trial whose schedule is to be used, of one workload under one set of conditions.

    Where candidates took turns, those of the last session count: the fastest of them, but the
    default unless the 95 % interval of the ratios to it lies below 1. Else the fastest trial that
    ran alone.
    """
    right = [trial for trial in trials if trial.seconds is not None]
    sessions = [trial.method.session for trial in right if trial.method.session]
    if sessions:
        return _of_session([trial for trial in right if trial.method.session == sessions[-1]])
    return min(right, key=_seconds, default=None)


def _of_session(trials: Sequence[Trial]) -> Trial:
    best = min(trials, key=_seconds)
    default = next((trial for trial in trials if trial.is_default), None)
    return best if default is None or is_faster(best, default) else default


def is_faster(trial: Trial, other: Trial) -> bool:
    """Whether one trial took less than another in the same rounds, beyond their noise."""
    pairs = zip(trial.samples, other.samples, strict=True)
    return summarise([mine / theirs for mine, theirs in pairs]).high < 1.0


def _seconds(trial: Trial) -> float:
    assert trial.seconds is not None
    return trial.seconds
