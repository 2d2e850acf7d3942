"""codegen/lower/math/round_quotient.py: the integers that a division gives."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.graph.passes.level_quotients import has_exact_reciprocal
from tilewright.tir.intrinsics import by_name

STEPS = [0.1, 0.017, 1.0, 3.0, 2.0**-60, 2.0**60, float(np.nextafter(np.float32(2), np.float32(1)))]


def near_ends(step: float) -> np.ndarray:
    """Floats around the ends of levels, of some more levels than there are, and any others."""
    draw = np.random.default_rng(0)
    ends = ((np.arange(-600, 600) + 0.5) * np.float64(step)).astype(np.float32)
    around = ends.view(np.int32)[:, None] + np.arange(-40, 41, dtype=np.int32)
    plain = (draw.uniform(-700, 700, 20_000) * step).astype(np.float32)
    return np.concatenate([around.view(np.float32).ravel(), plain])


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("step", [*STEPS, *(-step for step in STEPS)])
def test_it_is_the_rounded_quotient(step, fused, kind, expand) -> None:
    assert has_exact_reciprocal(np.float32(abs(step)))
    x = near_ends(step).astype(kind)
    y = np.full(x.shape, step, np.float32).astype(kind)
    expected = np.clip(np.rint(x / y), -512, 512)
    np.testing.assert_array_equal(expand("round_quotient", kind)(x, y, fused=fused), expected)
    np.testing.assert_array_equal(by_name("round_quotient").meaning(x, y), expected)


@pytest.mark.parametrize("fused", [True, False])
def test_what_is_no_number_stays_so_and_infinities_are_the_ends(fused, expand) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, -1e-45, -0.0], np.float32)
    expected = np.array([np.nan, 512, -512, 512, -512, 0, -0.0, -0.0], np.float32)
    code, meaning = expand("round_quotient", "float32"), by_name("round_quotient").meaning
    with np.errstate(all="ignore"):
        for step, sign in ((0.25, 1), (-0.25, -1)):
            y = np.full(x.shape, step, np.float32)
            np.testing.assert_array_equal(code(x, y, fused=fused), sign * expected)
            np.testing.assert_array_equal(meaning(x, y), sign * expected)


def test_one_product_would_not_do() -> None:
    """Why there are two: a product by the nearest float alone leaves some levels."""
    wrong = 0
    for step in np.random.default_rng(1).uniform(0.01, 0.1, 50).astype(np.float32):
        x, high = near_ends(float(step)), np.float32(1) / step
        wrong += np.any(np.rint(x * high) != np.rint(x / step))
    assert wrong > 10
