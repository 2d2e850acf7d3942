"""Disturbance: how far the multiply-add probe of a machine was off while a trial was timed.

A trial keeps it as a note in its text. A note that was followed by another measurement is no
disturbance: the samples are of that measurement.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .record import Trial

_AGAIN = "; measured again"
_NOTE = re.compile(r"probe (?:of multiply-adds was|deviated by) (\d+)%[^;]*$")  # old, new


def note_of(drift: float) -> str:
    """The note of a deviation from what is usual, which is 1.0 for twice the rate."""
    return f"the multiply-add probe deviated by {drift:.0%} from its median"


def repeated(note: str) -> str:
    """The note of a measurement that was repeated."""
    return note + _AGAIN


def drift_in(text: str) -> float:
    """The deviation that a text of notes leaves; 0 where the machine was calm."""
    found = None if text.endswith(_AGAIN) else _NOTE.search(text)
    return 0.0 if found is None else int(found[1]) / 100


def drift_of(trial: Trial) -> float:
    """The deviation while a trial was timed; 0 where the machine was calm, or nothing was timed."""
    return drift_in(trial.text) if trial.seconds is not None else 0.0


def busy_text(trials: Sequence[Trial]) -> str:
    """How many trials were disturbed, as a sentence; empty where none was."""
    timed = [trial for trial in trials if trial.seconds is not None]
    disturbed = sum(drift_of(trial) > 0 for trial in timed)
    if not disturbed:
        return ""
    return f"machine busy: {disturbed} of {len(timed)} trials disturbed"
