"""autotune/report/search_picture.py: candidates, the best so far, failures, confirmation."""

from __future__ import annotations

from dataclasses import replace

from tests.autotune.samples import trial
from tilewright.autotune.report.search_picture import draw_search


def test_every_trial_has_its_mark() -> None:
    trials = [
        trial(0, seconds=4e-6),
        trial(1, seconds=3e-6),
        trial(2, outcome="crashed"),
        trial(3, seconds=9e-6),
    ]
    picture = draw_search(trials, "search")
    assert picture is not None
    titles = [part.partition("</title>")[0] for part in picture.svg.split("<title>")[1:]]
    assert titles == [
        "trial 1: 6 us",
        "trial 2: 4.5 us",
        *["trial 3: crashed"] * 2,
        "trial 4: 13.5 us",
    ]
    assert "dashed: default 6 us" in picture.svg


def test_confirmation_stands_behind_the_search() -> None:
    confirmed = replace(trial(1, seconds=2e-6), method=replace(trial().method, session="s"))
    picture = draw_search([trial(0), trial(1), confirmed], "search")
    assert picture is not None
    assert ">confirmation</text>" in picture.svg
    assert "confirmation of the candidate: 3 us" in picture.svg


def test_where_nothing_ran_there_is_no_picture() -> None:
    assert draw_search([trial(0, outcome="wrong")], "search") is None
