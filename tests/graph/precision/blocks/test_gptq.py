"""GPTQ: what it makes is what the paper's equations make, one step at a time."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.graph.precision.blocks.block_rounding import grids, levels_on, round_to_nearest
from tilewright.graph.precision.blocks.gptq import DAMPING, round_for_data


def plainly(
    weights: np.ndarray, moments: np.ndarray, bits: int, group: int, symmetric: bool
) -> np.ndarray:
    """The weights that levels stand for, by equation (2) of the paper: after each step the inverse
    of the moments of those that are left is computed anew.
    """
    steps, columns = weights.shape
    damped = moments + DAMPING * np.diag(moments).mean() * np.eye(steps)
    left, made = weights.astype(np.float64), np.zeros((steps, columns))
    for step in range(steps):
        if step % group == 0:
            own = left[step : step + group].astype(np.float32)
            scale, zero = grids(own, np.dtype(np.float32), bits, symmetric=symmetric)
        level = levels_on(left[step].astype(np.float32), scale, zero, bits)
        made[step] = (level.astype(float) - zero) * scale
        inverse = np.linalg.inv(damped[step:, step:])
        left[step:] -= np.outer(inverse[:, 0], left[step] - made[step]) / inverse[0, 0]
    return made


def data(rows: int, steps: int) -> np.ndarray:
    """Rows whose steps go together."""
    rng = np.random.default_rng(rows)
    mix = rng.standard_normal((5, steps))
    return rng.standard_normal((rows, 5)) @ mix + 0.2 * rng.standard_normal((rows, steps))


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize(("steps", "group"), [(32, 16), (40, 16), (16, 32)])
@pytest.mark.parametrize("bits", [2, 4])
def test_it_is_the_plain_algorithm(bits: int, steps: int, group: int, symmetric: bool) -> None:
    weights = np.random.default_rng(steps).standard_normal((steps, 9)).astype(np.float32)
    x = data(200, steps)
    found = round_for_data(weights, x.T @ x, bits, group, symmetric=symmetric)
    expected = plainly(weights, x.T @ x, bits, group, symmetric)
    np.testing.assert_allclose(found.weights(steps), expected, rtol=1e-5, atol=1e-6)
    assert len(found.levels) % group == 0
    assert not found.weights(len(found.levels))[steps:].any()


def test_the_product_of_the_data_changes_less() -> None:
    weights = np.random.default_rng(0).standard_normal((128, 24)).astype(np.float32)
    x = data(400, 128)
    rounded = round_to_nearest(weights, 4, 32, symmetric=True).weights(128)
    fitted = round_for_data(weights, x.T @ x, 4, 32, symmetric=True).weights(128)
    plain, better = (np.linalg.norm(x @ (one - weights)) for one in (rounded, fitted))
    assert better < 0.6 * plain


def test_steps_without_data_are_rounded_to_the_nearest_level() -> None:
    weights = np.random.default_rng(1).standard_normal((32, 7)).astype(np.float32)
    found = round_for_data(weights, np.zeros((32, 32)), 4, 16, symmetric=False)
    nearest = round_to_nearest(weights, 4, 16, symmetric=False)
    assert (found.levels == nearest.levels).all()
    assert (found.scales == nearest.scales).all()
