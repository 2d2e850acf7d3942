"""codegen/lower/math/round_quotient.py: the integers that a division gives."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.graph.passes.level_quotients import exact_reciprocal
from tilewright.tir.intrinsics import by_name

STEPS = [0.1, 0.017, 1.0, 3.0, 2.0**-60, 2.0**60, float(np.nextafter(np.float32(2), np.float32(1)))]


def operands(step: float) -> list[np.ndarray]:
    known = exact_reciprocal(np.float32(step))
    assert known is not None
    return [np.array([number]) for number in (known.step, known.high, known.low)]


def near_ends(step: float) -> np.ndarray:
    """Floats around the ends of levels, of some more levels than there are, and any others."""
    draw = np.random.default_rng(0)
    ends = ((np.arange(-600, 600) + 0.5) * np.float64(step)).astype(np.float32)
    around = ends.view(np.int32)[:, None] + np.arange(-40, 41, dtype=np.int32)
    plain = (draw.uniform(-700, 700, 20_000) * step).astype(np.float32)
    return np.concatenate([around.view(np.float32).ravel(), plain])


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("step", STEPS)
def test_it_is_the_rounded_quotient(step, fused, expand) -> None:
    x, numbers = near_ends(step), operands(step)
    expected = np.clip(np.rint(x / np.float32(step)), -512, 512)
    shaped = [np.broadcast_to(number, x.shape) for number in numbers]
    got = expand("round_quotient", "float32")(x, *shaped, fused=fused)
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(by_name("round_quotient").meaning(x, *shaped), expected)


@pytest.mark.parametrize("fused", [True, False])
def test_what_is_no_number_stays_so_and_infinities_are_the_ends(fused, expand) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, -1e-45, -0.0], np.float32)
    shaped = [np.broadcast_to(number, x.shape) for number in operands(0.25)]
    expected = np.array([np.nan, 512, -512, 512, -512, 0, -0.0, -0.0], np.float32)
    for got in (
        expand("round_quotient", "float32")(x, *shaped, fused=fused),
        by_name("round_quotient").meaning(x, *shaped),
    ):
        np.testing.assert_array_equal(got, expected)


def test_one_product_would_not_do() -> None:
    """Why there are two: a product by the nearest float alone leaves some levels."""
    wrong = 0
    for step in np.random.default_rng(1).uniform(0.01, 0.1, 50).astype(np.float32):
        x = near_ends(float(step))
        high = np.float32(1 / np.float64(step))
        wrong += np.any(np.rint(x * high) != np.rint(x / step))
    assert wrong > 10
