from __future__ import annotations

import math
import random
from collections.abc import Iterable

from tilewright.autotune.search.expected_improvement import (
    HORIZON,
    MIN_PICKS,
    NOTHING_LEFT,
    PRIOR_GAIN,
    RECENT,
    ExpectedImprovement,
    Pick,
    expected_improvement,
)


def dry(count: int, error: float = 0.02) -> list[Pick]:
    """Trials of which none was better; the model errs to both sides."""
    return [Pick(error * (-1) ** n, -0.1) for n in range(count)]


def late(errors: Iterable[float]) -> list[Pick]:
    """Trials of which the last were in vain, so that the model is heard, and believed."""
    return [Pick(error, 0.1 if n < RECENT - MIN_PICKS else -0.1) for n, error in enumerate(errors)]


def test_without_trials_of_the_model_anything_may_come() -> None:
    assert not expected_improvement([0.1] * 20, []).is_negligible
    assert expected_improvement([0.1] * 20, []).gain == PRIOR_GAIN


def test_without_candidates_nothing_may_come() -> None:
    assert expected_improvement([], dry(4)) == NOTHING_LEFT


def test_candidates_far_above_the_errors_of_the_model_end_a_search() -> None:
    assert expected_improvement([0.3] * 20, dry(16)).is_negligible
    assert not expected_improvement([0.3] * 20, dry(16, error=0.3)).is_negligible
    assert not expected_improvement([0.0] * 20, dry(16)).is_negligible


def test_trials_that_were_all_in_vain_end_a_search() -> None:
    assert not expected_improvement([0.0] * 20, dry(RECENT // 2)).is_negligible
    assert expected_improvement([0.0] * 20, dry(RECENT)).is_negligible
    assert not expected_improvement([0.0] * 20, [*dry(RECENT - 1), Pick(0.0, 0.05)]).is_negligible


def test_the_gain_falls_with_what_the_candidates_are_expected_to_take() -> None:
    picks = late(0.05 * (-1) ** n for n in range(RECENT))
    gains = [expected_improvement([over] * HORIZON, picks).gain for over in (0.0, 0.05, 0.1, 0.2)]
    assert gains == sorted(gains, reverse=True)
    assert 0.0 < gains[-1] < 0.001 < gains[0] < 0.05


def test_the_chance_is_kept_where_the_model_is_right_about_itself() -> None:
    """Of many searches whose errors are normal, as many find something as were promised to."""
    source, promised, kept = random.Random(0), 0.0, 0
    for _ in range(1000):
        picks = late(source.gauss(0.02, 0.05) for _ in range(RECENT))
        expected = [source.uniform(0.05, 0.15) for _ in range(HORIZON)]
        promised += expected_improvement(expected, picks).chance
        kept += any(over + source.gauss(0.02, 0.05) < math.log(0.99) for over in expected)
    assert abs(promised - kept) < 60


def test_an_improvement_prints_its_chance() -> None:
    assert str(ExpectedImprovement(0.074, 1e-4)) == (
        "an improvement of 1% is unlikely: its chance within the next 16 trials is 7%"
    )
    assert str(NOTHING_LEFT) == "the space is exhausted"
