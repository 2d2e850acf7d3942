"""tir/svg/scale.py: values on pixels, ticks at round values."""

from __future__ import annotations

import pytest

from tilewright.tir.svg.scale import Scale, tick_text, whole_text


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.0, 1.0, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)),
        (0.0, 39.0, (0.0, 10.0, 20.0, 30.0)),
        (0.0, 3.75, (0.0, 1.0, 2.0, 3.0)),
        (0.0, 9.3e-3, (0.0, 2e-3, 4e-3, 6e-3, 8e-3)),
        (10.0, 12.0, (10.0, 10.5, 11.0, 11.5, 12.0)),
    ],
)
def test_ticks_of_a_linear_scale_are_round(
    low: float, high: float, ticks: tuple[float, ...]
) -> None:
    assert Scale(low, high, 0, 100).ticks == ticks


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.7, 30.0, (1.0, 2.0, 5.0, 10.0, 20.0)),
        (0.15, 60.0, (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)),
        (1e-3, 1e3, (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0)),
        (1.0, 1e16, (1.0, 100.0, 1e4, 1e6, 1e8, 1e10, 1e12, 1e14, 1e16)),
    ],
)
def test_ticks_of_a_logarithmic_scale_are_round(
    low: float, high: float, ticks: tuple[float, ...]
) -> None:
    assert Scale(low, high, 0, 100, logarithmic=True).ticks == ticks


def test_values_have_pixels_within_the_scale() -> None:
    scale = Scale(0.0, 10.0, 100.0, 0.0)
    assert [scale(value) for value in (-1.0, 0.0, 5.0, 10.0, 20.0)] == [100, 100, 50, 0, 0]
    assert Scale(1.0, 100.0, 0.0, 10.0, logarithmic=True)(10.0) == pytest.approx(5.0)


def test_a_scale_holds_what_it_is_made_for() -> None:
    assert Scale.over([3.0, 7.0], 0, 1) == Scale(0.0, 7.0, 0, 1)
    assert Scale.over([], 0, 1) == Scale(0.0, 1.0, 0, 1)
    assert Scale.over([3.0, 6.0, 0.0], 0, 1, logarithmic=True) == Scale(2.0, 9.0, 0, 1, True)
    assert Scale.over([], 0, 1, logarithmic=True).ticks == (1.0,)


def test_ticks_are_written_short() -> None:
    values = (0.0, 0.5, 20.0, 0.001, 1e5, 1e-6)
    assert [tick_text(value) for value in values] == ["0", "0.5", "20", "0.001", "1e5", "1e-06"]
    assert [whole_text(value) for value in (0.0, 0.5, 20.0)] == ["0", "", "20"]
