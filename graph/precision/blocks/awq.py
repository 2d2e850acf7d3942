"""Weights of few bits for data whose channels differ in size: J. Lin, J. Tang, H. Tang, S. Yang,
W.-M. Chen, W.-C. Wang, G. Xiao, X. Dang, C. Gan, S. Han, "AWQ: Activation-aware Weight Quantization
for LLM Compression and Acceleration" (2023), arXiv 2306.00978.

The weights of a channel are multiplied with a factor, which its data are divided by: in a block,
the numbers that meet large data take more of the levels. The factors are the mean magnitudes of the
channels to a power, which is searched for, as are the ranges of blocks. What is small is the error
of the products on the data; it is computed from their second moments, without the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ...ir.ir import Graph
from ...ops.convolution import Conv
from ...types import Floats
from ..channels.channel_factors import Factors, readers_of
from .block_rounding import RoundedBlocks, Singles, grids, levels_on, round_to_nearest

Doubles = NDArray[np.float64]
POWERS = tuple(n / 20 for n in range(20))  # as in the paper: from no factors to 0.95
RATIOS = tuple(1 - n / 20 for n in range(10))  # of a block's range that are kept
_MOST = 1e4  # a factor, and one over the least


@dataclass(frozen=True, slots=True)
class DataMoments:
    """Of rows x of data: the sums of x x^T [K, K] and of |x| [K], in float64."""

    second: Doubles
    magnitudes: Doubles

    def __add__(self, other: DataMoments) -> DataMoments:
        return DataMoments(self.second + other.second, self.magnitudes + other.magnitudes)

    def divided(self, factors: Doubles) -> DataMoments:
        """Those of data whose channels are divided by factors."""
        return DataMoments(self.second / np.outer(factors, factors), self.magnitudes / factors)


def awq_factors(
    graph: Graph,
    weights: Mapping[str, Floats],
    moments: Mapping[str, DataMoments],
    bits: int,
    group: int,
    *,
    symmetric: bool,
) -> Factors:
    """The factors of the channels of values, by name; of none where the best power is 0.

    weights: [K, N] of the products that become levels, by their results. moments: of the values
    that they read.
    """
    found = {}
    for value, own in moments.items():
        products, _ = readers_of(graph, value)
        if any(isinstance(node.op, Conv) for node in products):  # along another axis
            continue
        read = [weights[n.outputs[0]] for n in products if n.outputs[0] in weights]
        if not read:
            continue

        def error(power: float, read: Sequence[Floats] = read, own: DataMoments = own) -> float:
            factors = _factors(own.magnitudes, power)
            return sum(
                _error_of_scaled(matrix, factors, own.second, bits, group, symmetric=symmetric)
                for matrix in read
            )

        best = min(POWERS, key=error)
        if best:
            found[value] = _factors(own.magnitudes, best).astype(np.float32)
    return found


def round_in_ranges(
    weights: Floats, moments: Doubles, bits: int, group: int, *, symmetric: bool
) -> RoundedBlocks:
    """The levels of weights [K, N] in blocks of `group` steps, whose range is the part of all that
    makes the least error on the data. moments: the sum of x x^T over rows x, [K, K], of which those
    within a block count.
    """
    steps, columns = weights.shape
    blocks = -(-steps // group)
    missing = blocks * group - steps
    wide = np.pad(weights.astype(np.float32), ((0, missing), (0, 0)))
    wide = wide.reshape(blocks, group, columns)
    whole = np.pad(moments, ((0, missing), (0, missing)))
    inside = whole.reshape(blocks, group, blocks, group)
    of_blocks = inside[np.arange(blocks), :, np.arange(blocks)]
    low, high = wide.min(axis=1, keepdims=True), wide.max(axis=1, keepdims=True)
    least = np.full((blocks, columns), np.inf)
    levels = np.zeros(wide.shape, np.uint8)
    scales = np.zeros((blocks, columns), weights.dtype)
    zeros = np.zeros((blocks, columns), np.uint8)
    for ratio in map(np.float32, RATIOS):
        kept = cast(Singles, np.clip(wide, low * ratio, high * ratio))
        scale, zero = grids(kept, weights.dtype, bits, symmetric=symmetric)
        level = levels_on(kept, scale[:, None], zero[:, None], bits)
        change = (level.astype(np.float64) - zero[:, None]) * scale[:, None] - wide
        error = np.einsum("bin,bin->bn", change, of_blocks @ change)
        better = error < least
        least = np.where(better, error, least)
        scales, zeros = np.where(better, scale, scales), np.where(better, zero, zeros)
        levels = np.where(better[:, None], level, levels)
    flat = levels.reshape(-1, columns)
    flat[steps:] = zeros[-1]
    return RoundedBlocks(flat, cast(Floats, scales.astype(weights.dtype)), zeros)


def _factors(magnitudes: Doubles, power: float) -> Doubles:
    """Magnitudes to a power, the largest and the least as far from 1; the least where all
    data are 0: such channels are to have no levels that others could have.
    """
    factors = np.ones(magnitudes.shape)
    some = magnitudes > 0
    if some.any():
        own = (magnitudes[some] / magnitudes[some].mean()) ** power
        factors[some] = np.clip(own / np.sqrt(own.max() * own.min()), 1 / _MOST, _MOST)
        factors[~some] = factors[some].min()
    return factors


def _error_of_scaled(
    weights: Floats, factors: Doubles, second: Doubles, bits: int, group: int, *, symmetric: bool
) -> float:
    """The sum of squares of what rounding weights that have factors changes in a product."""
    scaled = cast(Floats, (weights * factors[:, None]).astype(weights.dtype))
    rounded = round_to_nearest(scaled, bits, group, symmetric=symmetric)
    made = rounded.weights(len(weights)).astype(np.float64) / factors[:, None]
    change = made - weights.astype(np.float64)
    return float(np.einsum("kn,kn->", change, second @ change))
