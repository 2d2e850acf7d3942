from __future__ import annotations

from dataclasses import replace

import pytest

from tilewright.autotune.log.disturbance import busy_text, drift_in, drift_of, note_of, repeated

from ..samples import trial


def test_a_note_is_read_back() -> None:
    assert drift_in(note_of(0.6)) == 0.6
    assert drift_in(repeated(note_of(0.6))) == 0.0
    assert drift_in(f"{repeated(note_of(0.6))}; {note_of(0.07)}") == 0.07


@pytest.mark.parametrize(
    ("text", "drift"),
    [
        ("", 0.0),
        ("the probe of multiply-adds was 112% off what is usual", 1.12),
        ("the probe of multiply-adds was 7% off what is usual; measured again", 0.0),
    ],
)
def test_older_notes_are_read_too(text: str, drift: float) -> None:
    assert drift_in(text) == drift


def test_disturbed_trials_are_counted_among_those_that_ran() -> None:
    noisy = replace(trial(1), text=note_of(0.2))
    failed = replace(trial(2, outcome="crashed"), text=note_of(0.2))
    assert drift_of(failed) == 0.0
    assert busy_text([trial(0), failed]) == ""
    assert busy_text([trial(0), noisy, failed]) == "machine busy: 1 of 2 trials disturbed"
