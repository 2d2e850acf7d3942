"""graph/precision/blocks/block_rounding.py: bit for bit what onnxruntime's quantiser makes."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.graph.precision.blocks.block_rounding import round_to_nearest

from ..onnxruntime_blocks import quantised

CASES = {
    "normal": lambda rng: rng.standard_normal((256, 64)),
    "positive": lambda rng: rng.random((96, 33)),
    "negative": lambda rng: -rng.random((100, 7)),
    "halves of steps": lambda rng: rng.integers(-8, 9, (128, 40)) / 4,
    "zeros": lambda rng: np.zeros((64, 8)),
    "the end of a block": lambda rng: rng.standard_normal((70, 16)),
    "large and small": lambda rng: (
        rng.standard_normal((256, 31)) * 10.0 ** rng.integers(-4, 4, (1, 31))
    ),
}


@pytest.mark.parametrize("kind", ["float32", "float16"])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("group", [16, 32, 128])
@pytest.mark.parametrize("name", CASES)
def test_levels_scales_and_zeros_are_those_of_onnxruntime(
    name: str, group: int, bits: int, symmetric: bool, kind: str
) -> None:
    weights = CASES[name](np.random.default_rng(group)).astype(kind)
    given = quantised(weights, bits, group, symmetric)
    found = round_to_nearest(weights, bits, group, symmetric=symmetric)
    assert (found.levels[: len(weights)] == given.levels).all()
    assert found.scales.dtype == weights.dtype
    assert (found.scales == given.scales.T).all()
    assert (found.zeros == (1 << (bits - 1) if symmetric else given.zeros)).all()


@pytest.mark.parametrize("symmetric", [True, False])
def test_the_largest_number_of_a_block_is_a_level_and_so_is_zero(symmetric: bool) -> None:
    weights = np.array([[0.0], [-1.0], [3.0], [0.4]], np.float32)
    found = round_to_nearest(weights, 4, 8, symmetric=symmetric)
    made = found.weights(4)
    assert made.shape == (4, 1)
    np.testing.assert_allclose(made[0], 0.0, atol=0)
    np.testing.assert_allclose(made[2], 3.0, atol=3.0 / 15)
    assert (found.weights(8)[4:] == 0).all()  # behind the last step
