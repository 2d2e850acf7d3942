from __future__ import annotations

import math
import random
from collections.abc import Iterable

from tilewright.autotune.search.expected_improvement import (
    BY,
    HORIZON,
    LEAST,
    NOTHING_LEFT,
    RECENT,
    Outlook,
    Pick,
    outlook,
)


def dry(count: int, error: float = 0.02) -> list[Pick]:
    """Trials of which none was better; the model errs to both sides."""
    return [Pick(error * (-1) ** n, -0.1) for n in range(count)]


def late(errors: Iterable[float]) -> list[Pick]:
    """Trials of which the last were in vain, so that the model is heard, and believed."""
    return [Pick(error, 0.1 if n < RECENT - LEAST else -0.1) for n, error in enumerate(errors)]


def test_without_trials_of_the_model_anything_may_come() -> None:
    assert not outlook([0.1] * 20, []).is_over
    assert outlook([0.1] * 20, []).gain == BY


def test_without_candidates_nothing_may_come() -> None:
    assert outlook([], dry(4)) == NOTHING_LEFT


def test_candidates_far_above_the_errors_of_the_model_end_a_search() -> None:
    assert outlook([0.3] * 20, dry(16)).is_over
    assert not outlook([0.3] * 20, dry(16, error=0.3)).is_over
    assert not outlook([0.0] * 20, dry(16)).is_over


def test_trials_that_were_all_in_vain_end_a_search() -> None:
    assert not outlook([0.0] * 20, dry(RECENT // 2)).is_over
    assert outlook([0.0] * 20, dry(RECENT)).is_over
    assert not outlook([0.0] * 20, [*dry(RECENT - 1), Pick(0.0, 0.05)]).is_over


def test_the_gain_falls_with_what_the_candidates_are_expected_to_take() -> None:
    picks = late(0.05 * (-1) ** n for n in range(RECENT))
    gains = [outlook([over] * HORIZON, picks).gain for over in (0.0, 0.05, 0.1, 0.2)]
    assert gains == sorted(gains, reverse=True)
    assert 0.0 < gains[-1] < 0.001 < gains[0] < 0.05


def test_the_chance_is_kept_where_the_model_is_right_about_itself() -> None:
    """Of many searches whose errors are normal, as many find something as were promised to."""
    source, promised, kept = random.Random(0), 0.0, 0
    for _ in range(1000):
        picks = late(source.gauss(0.02, 0.05) for _ in range(RECENT))
        expected = [source.uniform(0.05, 0.15) for _ in range(HORIZON)]
        promised += outlook(expected, picks).chance
        kept += any(over + source.gauss(0.02, 0.05) < math.log(0.99) for over in expected)
    assert abs(promised - kept) < 60


def test_an_outlook_is_told_in_words() -> None:
    assert str(Outlook(0.074, 1e-4)) == (
        "nothing 1% better is likely: the chance of it is 7% in the next 16 trials"
    )
    assert str(NOTHING_LEFT) == "the space is exhausted"
