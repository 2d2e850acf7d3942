"""What calls are given: seeded numbers."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
from jax import Array

Given = dict[str, np.ndarray]
Calls = list[Callable[[dict[str, Array]], object]]
key = jax.random.key


def numbers(*shape: int, seed: int = 0, low: float = -2.0, high: float = 2.0) -> np.ndarray:
    """Real numbers."""
    drawn = np.random.default_rng(seed).random(shape, np.float32)
    return drawn * np.float32(high - low) + np.float32(low)


def whole(*shape: int, low: int = -5, high: int = 6, seed: int = 0) -> np.ndarray:
    """Integers."""
    return np.random.default_rng(seed).integers(low, high, shape).astype(np.int32)
