"""Weights as levels of few bits, each block of steps with a scale and a zero, rounded to the
nearest level: bit for bit what onnxruntime's quantiser of MatMulNBits makes by default.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ...ops.block_matmul import block_weights
from ...types import Floats

Bytes = NDArray[np.uint8]
Singles = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class RoundedBlocks:
    """levels: uint8 [blocks * group, N]; scales [blocks, N], in the type of the weights; zeros:
    uint8 [blocks, N], all 2**(bits - 1) where blocks are symmetric.
    """

    levels: Bytes
    scales: Floats
    zeros: Bytes

    def weights(self, steps: int) -> Floats:
        """What the first `steps` rows of levels stand for."""
        return block_weights(len(self.levels) // len(self.scales), *self.parts)[:steps]

    @property
    def parts(self) -> tuple[Bytes, Floats, Bytes]:
        """Levels, scales and zeros."""
        return self.levels, self.scales, self.zeros


def round_to_nearest(weights: Floats, bits: int, group: int, *, symmetric: bool) -> RoundedBlocks:
    """The levels of weights [K, N], float32 or float16, in blocks of `group` steps; behind the last
    step they stand for 0. symmetric: as `grids` has it.
    """
    steps, columns = weights.shape
    blocks = -(-steps // group)
    padded = np.pad(weights.astype(np.float32), ((0, blocks * group - steps), (0, 0)))
    wide = padded.reshape(blocks, group, columns)
    scales, zeros = grids(wide, weights.dtype, bits, symmetric=symmetric)
    levels = levels_on(wide, scales[:, None, :], zeros[:, None, :], bits).reshape(-1, columns)
    levels[steps:] = zeros[-1]
    return RoundedBlocks(levels, scales, zeros)


def grids(
    wide: Singles, kind: np.dtype[np.generic], bits: int, *, symmetric: bool
) -> tuple[Floats, Bytes]:
    """The scales, in a type of floats, and the zeros [..., N] of blocks of weights [..., steps, N].

    symmetric: a block has its number of the largest magnitude, with its sign, at level 0, and 0 at
    2**(bits - 1). Else its least number, or 0, is at level 0 and its largest one, or 0, at the last
    level, with a zero that is rounded to a level.
    """
    top, middle = (1 << bits) - 1, 1 << (bits - 1)
    low, high = np.minimum(wide.min(axis=-2), 0), np.maximum(wide.max(axis=-2), 0)
    if symmetric:
        scale = np.where(np.abs(high) > np.abs(low), high, low) / np.float32(-middle)
        zero = np.full_like(scale, middle)
    else:
        scale = (high - low) / np.float32(top)
        zero = np.clip(_rounded(_over(-low, scale)), 0, top)
    return cast(Floats, scale.astype(kind)), zero.astype(np.uint8)


def levels_on(wide: Singles, scales: Floats, zeros: Bytes, bits: int) -> Bytes:
    """The nearest levels of numbers, with which scales and zeros broadcast. They are those of the
    scales that are stored, where zeros are those of scales that were not rounded yet.
    """
    step = scales.astype(np.float32)
    scaled = wide * _over(np.ones_like(step), step) + zeros.astype(np.float32)
    return np.clip(_rounded(scaled), 0, (1 << bits) - 1).astype(np.uint8)


def _rounded(numbers: Singles) -> Singles:
    """To the nearest whole number, halves away from zero."""
    return np.copysign(np.floor(np.abs(numbers) + np.float32(0.5)), numbers)


def _over(numbers: Singles, divisors: Singles) -> Singles:
    """The quotients, 0 where a divisor is 0."""
    return np.divide(numbers, divisors, out=np.zeros_like(numbers), where=divisors != 0)
